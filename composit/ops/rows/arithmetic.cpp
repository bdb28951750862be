// Sums, products, comparisons: two tensors, or a tensor and a number.
#include "composit/ops/functions.h"

namespace composit {

// `other` times alpha; torch refuses a float alpha among integers.
static Expr scaled(const Expr& other, const Coefficient& alpha) {
  return is_literal(alpha, 1) ? other : alpha * other;
}

static Gradients both(const Vjp& v, const Tensor& a, const Tensor& b, const Tensor& da,
                      const Tensor& db) {
  return {v.wanted[0] ? sum_to_size(da, a.sizes()) : Tensor(),
          v.wanted[1] ? sum_to_size(db, b.sizes()) : Tensor()};
}

static void add_sums(OperationTable& rows) {
  rows.add({.schema = "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
            .scalar = [](Expr x, Expr y, Coefficient alpha) { return x + scaled(y, alpha); },
            .samples =
                "f32[2,3] f32[3] | f32[2,1] f32[3] 2 | i64[2,3] 2.5 | f32[2] 1 | i32[4] i64[] "
                "3 | bool[3] bool[3] | f64[2] f32[2,2] | i64[3] f32[] | c64[2] f32[2]",
            .bad = "f32[2,3] f32[2]: do not broadcast | i64[2] i64[2] 2.5: alpha"});
  rows.add({.schema = "aten::add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
            .scalar = [](Expr x, Expr y, Coefficient alpha) { return x + scaled(y, alpha); },
            .samples = "f32[2,3] 2 | i64[3] 2.5 | i64[3] 2 3 | f64[] 1"});
  rows.add({.schema = "aten::sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
            .scalar = [](Expr x, Expr y, Coefficient alpha) { return x - scaled(y, alpha); },
            .samples = "f32[2,3] f32[3] | f32[2,1] f32[3] 2 | i64[2,3] 2.5"});
  rows.add({.schema = "aten::sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
            .scalar = [](Expr x, Expr y, Coefficient alpha) { return x - scaled(y, alpha); },
            .samples = "f32[2,3] 2 | i64[3] 2.5 2"});
  rows.add({.schema = "aten::rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
            .scalar = [](Expr x, Expr y, Coefficient alpha) { return y - scaled(x, alpha); },
            .samples = "f32[2,3] 2 | i64[3] 2.5 | f32[3] 1 2"});
}

static void add_products(OperationTable& rows) {
  rows.add(
      {.schema = "aten::mul.Tensor(Tensor self, Tensor other) -> Tensor",
       .scalar = [](Expr x, Expr y) { return x * y; },
       .vjp =
           [](Vjp v, Tensor x, Tensor y) {
             const Tensor& g = v.cotangents[0];
             return both(v, x, y, g * conj(y), g * conj(x));
           },
       .samples = "f32[2,3] f32[3] | f32[2,1] f32[3] | i64[2,3] 2.5 | f32[2] 2 | c64[2] c64[2]",
       .bad = "f32[4] f32[3]: do not broadcast"});
  rows.add({.schema = "aten::mul.Scalar(Tensor self, Scalar other) -> Tensor",
            .scalar = [](Expr x, Expr y) { return x * y; },
            .samples = "f32[2,3] 2 | i64[3] 2.5"});
  rows.add({.schema = "aten::div.Tensor(Tensor self, Tensor other) -> Tensor",
            .promote = Promote::to_float,
            .scalar = [](Expr x, Expr y) { return x / y; },
            .samples = "f32[2,3] f32[3]=1..2 | i64[2,3] 2 | i64[4] i64[4]=1..5 | f32[2] 0.5"});
  rows.add({.schema = "aten::div.Scalar(Tensor self, Scalar other) -> Tensor",
            .promote = Promote::to_float,
            .scalar = [](Expr x, Expr y) { return x / y; },
            .samples = "f32[2,3] 2 | i64[3] 2.5"});
  rows.add({.schema = "aten::neg(Tensor self) -> Tensor",
            .scalar = [](Expr x) { return -x; },
            .samples = "f32[2,3] | i64[3] | c64[2]",
            .bad = "bool[2]: expected a number"});
}

// clang-format off
#define COMPOSIT_COMPARISON(name, expression)                                                     \
  rows.add({.schema = "aten::" #name ".Tensor(Tensor self, Tensor other) -> Tensor",              \
            .scalar = [](Expr x, Expr y) { return expression; },                                  \
            .samples = "f32[2,3] f32[3] | i64[4]<3 2 | f32[2,2] f64[] | bool[3] bool[3]"});       \
  rows.add({.schema = "aten::" #name ".Scalar(Tensor self, Scalar other) -> Tensor",              \
            .scalar = [](Expr x, Expr y) { return expression; },                                  \
            .samples = "f32[2,3] 0 | i64[3]<5 2.5 | i64[3]<3 1"});
// clang-format on

static void add_comparisons(OperationTable& rows) {
  COMPOSIT_COMPARISON(eq, eq(x, y))
  COMPOSIT_COMPARISON(ne, ne(x, y))
  COMPOSIT_COMPARISON(lt, x < y)
  COMPOSIT_COMPARISON(le, x <= y)
  COMPOSIT_COMPARISON(gt, x > y)
  COMPOSIT_COMPARISON(ge, x >= y)
}
#undef COMPOSIT_COMPARISON

static void add_choices(OperationTable& rows) {
  rows.add({.schema = "aten::where.self(Tensor condition, Tensor self, Tensor other) -> Tensor",
            .scalar = [](Condition c, Expr x, Expr y) { return select(c, x, y); },
            .samples = "bool[2,3] f32[2,3] f32[3] | bool[3] f32[2,3] 1 | bool[2,1] i64[3] f32[] | "
                       "bool[3] f64[3] 1.5",
            .bad = "f32[3] f32[3] f32[3]: condition"});
  rows.add({.schema = "aten::maximum(Tensor self, Tensor other) -> Tensor",
            .scalar = [](Expr x, Expr y) { return max(x, y); },
            .samples = "f32[2,3] f32[3] | i64[3] i64[3]"});
  rows.add({.schema = "aten::minimum(Tensor self, Tensor other) -> Tensor",
            .scalar = [](Expr x, Expr y) { return min(x, y); },
            .samples = "f32[2,3] f32[3] | i64[3] i64[3]"});
  rows.add(
      {.schema = "aten::masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor",
       .loops =
           [](In x, In mask, Scalar value) {
             Nest nest;
             const Index index = nest.parallel(broadcast_sizes({x.sizes(), mask.sizes()}));
             const Expr fill = cast(Expr(value), x.dtype());
             return nest.store(select(mask.broadcast(index), fill, x.broadcast(index))).loops();
           },
       .samples = "f32[2,3] bool[2,3] 0.5 | f32[2,3] bool[3] -1 | i64[2,2] bool[2,2] 3"});
}

void add_arithmetic_rows(OperationTable& rows) {
  add_sums(rows);
  add_products(rows);
  add_comparisons(rows);
  add_choices(rows);
}

}  // namespace composit
