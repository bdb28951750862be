// One of two values: by a condition, or the larger and the smaller one.
#include <cmath>

#include "composit/op/promotion.h"
#include "composit/ops/functions.h"

namespace composit {

static void add_where(OperationTable& rows) {
  rows.add({.schema = "aten::where.self(Tensor condition, Tensor self, Tensor other) -> Tensor",
            .scalar = [](Condition c, Expr x, Expr y) { return select(c, x, y); },
            .samples = "bool[2,3] f32[2,3] f32[3] | bool[3] f32[2,3] 1 | bool[2,1] i64[3] f32[] | "
                       "bool[3] f64[3] 1.5",
            .bad = "f32[3] f32[3] f32[3]: condition"});
  rows.add({.schema = "aten::where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> "
                      "Tensor",
            .scalar = [](Condition c, Expr x, Expr y) { return select(c, x, y); },
            .samples = "bool[2,3] f32[2,3] -1.5 | bool[3] i64[2,3] 2.5 | bool[2,1] i64[3] 2"});
  rows.add({.schema = "aten::where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> "
                      "Tensor",
            .scalar = [](Condition c, Expr x, Expr y) { return select(c, x, y); },
            .samples = "bool[2,3] -1.5 f32[2,3] | bool[3] 2.5 i64[2,3]"});
  rows.add({.schema = "aten::where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor",
            .scalar = [](Condition c, Expr x, Expr y) { return select(c, x, y); },
            .samples = "bool[2,3] 1 2 | bool[3] 1 2.5 | bool[] True False"});
}

static Loops masked_fill(const In& x, const In& mask, const Expr& value) {
  if (mask.dtype() != DType::bool_)
    throw UserError("expected a mask of bool, received " + std::string(name(mask.dtype())));
  Nest nest;
  const Index index = nest.parallel(broadcast_sizes({x.sizes(), mask.sizes()}));
  const Expr fill = cast(value, x.dtype());
  return nest.store(select(mask.broadcast(index), fill, x.broadcast(index))).loops();
}

static void add_masked_fill(OperationTable& rows) {
  rows.add({.schema = "aten::masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor",
            .loops = [](In x, In mask, Scalar value) { return masked_fill(x, mask, Expr(value)); },
            .samples = "f32[2,3] bool[2,3] 0.5 | f32[2,3] bool[3] -1 | i64[2,2] bool[2,2] 3 | "
                       "f32[3] bool[2,1] -inf | i64[3] bool[3] 2.5",
            .bad = "f32[2] i64[2] 1: mask of bool"});
  rows.add({.schema = "aten::masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor",
            .loops =
                [](In x, In mask, In value) {
                  if (value.rank() > 0)
                    throw UserError("expected a value without axes, received sizes " +
                                    str(value.sizes()));
                  return masked_fill(x, mask, value(Index{}));
                },
            .samples = "f32[2,3] bool[2,3] f32[] | f32[2,3] bool[3] -1.5 | i64[3] bool[3] i64[]",
            .bad = "f32[2] bool[2] f32[2]: without axes"});
}

// The larger of x and a number, which is the result if it is NaN.
static Expr at_least(const Expr& x, const Expr& low) {
  return select(x < low || isnan(low), low, x);
}
static Expr at_most(const Expr& x, const Expr& high) {
  return select(x > high || isnan(high), high, x);
}

// The larger of two elements, and a NaN that nothing flows back from where they have no order.
static Expr larger(const Expr& x, const Expr& low) {
  if (category(x.dtype()) < DTypeCategory::floating) return max(x, low);
  return select(x >= low, x, select(x < low, low, NAN));
}
static Expr smaller(const Expr& x, const Expr& high) {
  if (category(x.dtype()) < DTypeCategory::floating) return min(x, high);
  return select(x <= high, x, select(x > high, high, NAN));
}

using Bound = Expr (*)(const Expr& x, const Expr& bound);
static Expr clamped(Expr x, const std::optional<Expr>& low, Bound above,
                    const std::optional<Expr>& high, Bound below) {
  if (!low && !high) throw UserError("expected min, max or both, received none");
  if (low) x = above(x, *low);
  return high ? below(x, *high) : x;
}

// The cotangent where x is within its bounds.
static Gradients clamp_back(const Vjp& v, const LazyTensor& x, const std::optional<Scalar>& low,
                            const std::optional<Scalar>& high) {
  LazyTensor inside;
  if (low) inside = x >= Number(*low);
  if (high) inside = low ? logical_and(inside, x <= Number(*high)) : x <= Number(*high);
  return {where(inside, v.cotangents[0], 0)};
}

static void add_clamps(OperationTable& rows) {
  rows.add(
      {.schema = "aten::clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
       .scalar = [](Expr x, std::optional<Expr> low,
                    std::optional<Expr> high) { return clamped(x, low, at_least, high, at_most); },
       .vjp = [](Vjp v, LazyTensor x, std::optional<Scalar> low,
                 std::optional<Scalar> high) { return clamp_back(v, x, low, high); },
       .samples = "f32[2,3] -0.5 0.5 | f32[3] None 0 | i64[4] 1 | f32[3]=nan 0 1 | i64[3] 0.5 "
                  "| f32[3] nan | f32[3]=[0,1,2] 0 1",
       .bad = "f32[2]: expected min",
       .also = {"aten::clip"}});
  rows.add(
      {.schema = "aten::clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> "
                 "Tensor",
       .scalar = [](Expr x, std::optional<Expr> low,
                    std::optional<Expr> high) { return clamped(x, low, larger, high, smaller); },
       .samples = "f32[2,3] f32[3]=-1..0 f32[2,1]=0..1 | f32[3] None f32[3] | i64[4] i64[] | "
                  "f32[3]=nan f32[3] | f32[3] f32[3]=nan | i64[3] f32[3]",
       .bad = "f32[2]: expected min",
       .also = {"aten::clip.Tensor"}});
  rows.add({.schema = "aten::clamp_min(Tensor self, Scalar min) -> Tensor",
            .scalar = [](Expr x, Expr low) { return at_least(x, low); },
            .vjp = [](Vjp v, LazyTensor x, Scalar low) { return clamp_back(v, x, low, {}); },
            .samples = "f32[2,3] 0 | i64[4] 0.5 | f32[3]=nan 0 | f32[2]=[0,1] 0"});
  rows.add({.schema = "aten::clamp_min.Tensor(Tensor self, Tensor min) -> Tensor",
            .scalar = [](Expr x, Expr low) { return larger(x, low); },
            .samples = "f32[2,3] f32[3] | i64[4] i64[4] | f32[3]=nan f32[]"});
  rows.add({.schema = "aten::clamp_max(Tensor self, Scalar max) -> Tensor",
            .scalar = [](Expr x, Expr high) { return at_most(x, high); },
            .vjp = [](Vjp v, LazyTensor x, Scalar high) { return clamp_back(v, x, {}, high); },
            .samples = "f32[2,3] 0 | i64[4] 0.5 | f32[3]=nan 0 | f32[2]=[0,-1] 0"});
  rows.add({.schema = "aten::clamp_max.Tensor(Tensor self, Tensor max) -> Tensor",
            .scalar = [](Expr x, Expr high) { return smaller(x, high); },
            .samples = "f32[2,3] f32[3] | i64[4] i64[4] | f32[3]=nan f32[]"});
}

static void add_extrema(OperationTable& rows) {
  rows.add({.schema = "aten::maximum(Tensor self, Tensor other) -> Tensor",
            .scalar = [](Expr x, Expr y) { return max(x, y); },
            .samples = "f32[2,3] f32[3] | i64[3] i64[3] | f32[3]=nan f32[3] | f32[3]=[1,2,3] "
                       "f32[3]=[1,3,2] | bool[3] bool[3]",
            .also = {"aten::max.other"}});
  rows.add({.schema = "aten::minimum(Tensor self, Tensor other) -> Tensor",
            .scalar = [](Expr x, Expr y) { return min(x, y); },
            .samples = "f32[2,3] f32[3] | i64[3] i64[3] | f32[3]=nan f32[3] | f32[3]=[1,2,3] "
                       "f32[3]=[1,3,2] | bool[3] bool[3]",
            .also = {"aten::min.other"}});
  // A number rather than NaN; of equal ones the first has the derivative.
  rows.add({.schema = "aten::fmax(Tensor self, Tensor other) -> Tensor",
            .scalar = [](Expr x, Expr y) { return select(x >= y || isnan(y), x, y); },
            .samples = "f32[2,3] f32[3] | i64[3] i64[3] | f32[3]=nan f32[3] | f32[3] f32[3]=nan | "
                       "f32[3]=[1,2,3] f32[3]=[1,3,2]"});
  rows.add({.schema = "aten::fmin(Tensor self, Tensor other) -> Tensor",
            .scalar = [](Expr x, Expr y) { return select(x <= y || isnan(y), x, y); },
            .samples = "f32[2,3] f32[3] | i64[3] i64[3] | f32[3]=nan f32[3] | f32[3] f32[3]=nan | "
                       "f32[3]=[1,2,3] f32[3]=[1,3,2]"});
}

void add_choice_rows(OperationTable& rows) {
  add_where(rows);
  add_masked_fill(rows);
  add_clamps(rows);
  add_extrema(rows);
}

}  // namespace composit
