// Sums, products, quotients, comparisons, choices: two tensors, or a tensor and a number.
#include <functional>

#include "composit/ops/functions.h"

namespace composit {

// The dtype an operand has before it is cast to the common one.
static DType own_dtype(const Expr& x) { return x.is(Function::cast) ? x[0].dtype() : x.dtype(); }

// `other` times alpha; torch refuses a float alpha among integers.
static Expr scaled(const Expr& other, const Coefficient& alpha) {
  return is_literal(alpha, 1) ? other : alpha * other;
}

static Expr difference(const Expr& x, const Expr& y) {
  if (own_dtype(x) == DType::bool_ || own_dtype(y) == DType::bool_)
    throw UserError("expected numbers, received bool; logical_xor and logical_not take bools");
  return x - y;
}

// On the way from x to y, from the nearer end: exact at both.
static Expr between(const Expr& x, const Expr& y, const Expr& weight) {
  expect_floating(x.dtype());
  return select(abs(weight) < 0.5, x + weight * (y - x), y - (y - x) * (1 - weight));
}

static Gradients both(const Vjp& v, const LazyTensor& a, const LazyTensor& b, const LazyTensor& da,
                      const LazyTensor& db) {
  return {v.wanted[0] ? sum_to_size(da, a.sizes()) : LazyTensor(),
          v.wanted[1] ? sum_to_size(db, b.sizes()) : LazyTensor()};
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
  rows.add(
      {.schema = "aten::sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
       .scalar = [](Expr x, Expr y, Coefficient alpha) { return difference(x, scaled(y, alpha)); },
       .samples = "f32[2,3] f32[3] | f32[2,1] f32[3] 2 | i64[2,3] 2.5 | f32[0,3] f32[3]",
       .bad = "bool[2] bool[2]: received bool | i64[2] bool[2]: received bool",
       .also = {"aten::subtract.Tensor"}});
  rows.add(
      {.schema = "aten::sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
       .scalar = [](Expr x, Expr y, Coefficient alpha) { return difference(x, scaled(y, alpha)); },
       .samples = "f32[2,3] 2 | i64[3] 2.5 2",
       .also = {"aten::subtract.Scalar"}});
  rows.add(
      {.schema = "aten::rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
       .scalar = [](Expr x, Expr y, Coefficient alpha) { return difference(y, scaled(x, alpha)); },
       .samples = "f32[2,3] f32[3] | f32[2,1] f32[3] 2 | i64[2,3] 2.5",
       .bad = "bool[2] f32[2]: received bool"});
  rows.add(
      {.schema = "aten::rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
       .scalar = [](Expr x, Expr y, Coefficient alpha) { return difference(y, scaled(x, alpha)); },
       .samples = "f32[2,3] 2 | i64[3] 2.5 | f32[3] 1 2"});
}

static void add_products(OperationTable& rows) {
  rows.add(
      {.schema = "aten::mul.Tensor(Tensor self, Tensor other) -> Tensor",
       .wide_numbers = true,
       .scalar = [](Expr x, Expr y) { return x * y; },
       .vjp =
           [](Vjp v, LazyTensor x, LazyTensor y) {
             const LazyTensor& g = v.cotangents[0];
             return both(v, x, y, g * conj(y), g * conj(x));
           },
       .samples = "f32[2,3] f32[3] | f32[2,1] f32[3] | i64[2,3] 2.5 | f32[2] 2 | c64[2] c64[2]",
       .bad = "f32[4] f32[3]: do not broadcast",
       .also = {"aten::multiply.Tensor"}});
  rows.add({.schema = "aten::mul.Scalar(Tensor self, Scalar other) -> Tensor",
            .wide_numbers = true,
            .scalar = [](Expr x, Expr y) { return x * y; },
            .samples = "f32[2,3] 2 | i64[3] 2.5",
            .also = {"aten::multiply.Scalar"}});
  rows.add({.schema = "aten::neg(Tensor self) -> Tensor",
            .scalar = [](Expr x) { return -x; },
            .samples = "f32[2,3] | i64[3] | c64[2]",
            .bad = "bool[2]: expected a number",
            .also = {"aten::negative", "aten::_neg_view"}});
  rows.add(
      {.schema = "aten::addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar "
                 "value=1) -> Tensor",
       .wide_numbers = true,
       .scalar = [](Expr x, Expr y, Expr z, Coefficient value) { return x + scaled(y, value) * z; },
       .samples = "f32[2,3] f32[3] f32[2,1] | f32[2] f32[2] f32[2] -0.5 | i64[3] i64[3] "
                  "i64[3] 2 | f32[3] f32[] f32[3] 2"});
  rows.add({.schema = "aten::addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar "
                      "value=1) -> Tensor",
            .wide_numbers = true,
            .scalar =
                [](Expr x, Expr y, Expr z, Coefficient value) {
                  expect_floating(x.dtype());
                  return x + scaled(y, value) / z;
                },
            .samples = "f32[2,3] f32[3] f32[2,1] | f32[2] f32[2] f32[2] -0.5",
            .bad = "i64[2] i64[2] i64[2]: floating point"});
  rows.add({.schema = "aten::lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor",
            .wide_numbers = true,
            .scalar = [](Expr x, Expr y, Coefficient weight) { return between(x, y, weight); },
            .samples = "f32[2,3] f32[2,3] 0.3 | f32[2,1] f32[3] 0.75 | f32[2] f32[2] 1",
            .bad = "i64[2] i64[2] 1: floating point"});
  rows.add(
      {.schema = "aten::lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor",
       .scalar = [](Expr x, Expr y, Expr weight) { return between(x, y, weight); },
       .samples = "f32[2,3] f32[3] f32[2,1] | f32[3] f32[3] f32[3]=0..1 | f32[3] f32[3] f32[]"});
}

static void expect_number(const Expr& x) {
  if (x.dtype() == DType::bool_) throw UserError("expected numbers, received bool");
}

// `rounding`: none is true division, for which integers become floats.
static Expr quotient(const Expr& x, const Expr& y, const std::optional<std::string>& rounding) {
  if (!rounding) return x / y;
  expect_number(x);
  if (*rounding == "floor") return floor_divide(x, y);
  if (*rounding == "trunc") return trunc_divide(x, y);
  throw UserError("expected rounding_mode 'floor', 'trunc' or None, received '" + *rounding + "'");
}

static void add_quotients(OperationTable& rows) {
  rows.add({.schema = "aten::div.Tensor(Tensor self, Tensor other) -> Tensor",
            .promote = Promote::to_float,
            .wide_numbers = true,
            .scalar = [](Expr x, Expr y) { return x / y; },
            .samples = "f32[2,3] f32[3]=1..2 | i64[2,3] 2 | i64[4] i64[4]=1..5 | f32[2] 0.5 | "
                       "f32[3]=[1,0,-1] f32[3]=[0,0,0]",
            .also = {"aten::divide.Tensor", "aten::true_divide.Tensor"}});
  rows.add({.schema = "aten::div.Scalar(Tensor self, Scalar other) -> Tensor",
            .promote = Promote::to_float,
            .wide_numbers = true,
            .scalar = [](Expr x, Expr y) { return x / y; },
            .samples = "f32[2,3] 2 | i64[3] 2.5",
            .also = {"aten::divide.Scalar", "aten::true_divide.Scalar"}});
  rows.add({.schema = "aten::div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> "
                      "Tensor",
            .wide_numbers = true,
            .scalar = [](Expr x, Expr y,
                         std::optional<std::string> mode) { return quotient(x, y, mode); },
            .samples = "f32[2,3] f32[3] None | f32[2,3] f32[3] 'floor' | f32[2,3] f32[3] 'trunc' | "
                       "i64[2,3] i64[3]=1..4 'floor' | i64[2,3] i64[3]=1..4 'trunc' | i64[3] -2 "
                       "None | i32[3] 2.5 'floor' | f32[2] f32[2]=[0,-0.5] 'floor'",
            .bad = "f32[2] f32[2] 'ceil': expected rounding_mode | bool[2] bool[2] 'floor': "
                   "received bool",
            .also = {"aten::divide.Tensor_mode"}});
  rows.add({.schema = "aten::div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> "
                      "Tensor",
            .wide_numbers = true,
            .scalar = [](Expr x, Expr y,
                         std::optional<std::string> mode) { return quotient(x, y, mode); },
            .samples = "f32[2,3] 0.7 None | f32[2,3] -0.7 'floor' | i64[5] 2 'trunc'",
            .also = {"aten::divide.Scalar_mode"}});
}

// With the sign of y.
static Expr remainder_of(const Expr& x, const Expr& y) {
  expect_number(x);
  return remainder(x, y);
}
// With the sign of x.
static Expr truncated_remainder(const Expr& x, const Expr& y) {
  expect_number(x);
  return fmod(x, y);
}

// clang-format off
#define COMPOSIT_BY_TENSOR_OR_NUMBER(tensor, number, wide, expression)                            \
  rows.add({.schema = "aten::" tensor "(Tensor self, Tensor other) -> Tensor",                    \
            .wide_numbers = wide,                                                                 \
            .scalar = [](Expr x, Expr y) { return expression; },                                  \
            .samples = "f32[2,3] f32[3] | i64[5] i64[5]=1..4 | i64[5] i64[]=[-3] | i32[4] 3 | "   \
                       "f32[4]=[3,-3,3,-3] f32[4]=[2,2,-2,-2] | f32[2]=[1,-1] f32[2]=[0,0]",      \
            .bad = "bool[2] bool[2]: received bool"});                                            \
  rows.add({.schema = "aten::" number "(Tensor self, Scalar other) -> Tensor",                    \
            .wide_numbers = wide,                                                                 \
            .scalar = [](Expr x, Expr y) { return expression; },                                  \
            .samples = "f32[2,3] 0.7 | f32[2,3] -0.7 | i64[5] 3 | i64[5] -3 | i64[3] 2.5"});
// clang-format on

static void add_remainders(OperationTable& rows) {
  COMPOSIT_BY_TENSOR_OR_NUMBER("floor_divide", "floor_divide.Scalar", true, quotient(x, y, "floor"))
  COMPOSIT_BY_TENSOR_OR_NUMBER("remainder.Tensor", "remainder.Scalar", false, remainder_of(x, y))
  COMPOSIT_BY_TENSOR_OR_NUMBER("fmod.Tensor", "fmod.Scalar", false, truncated_remainder(x, y))
  rows.add({.schema = "aten::remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
            .scalar = [](Expr x, Expr y) { return remainder_of(x, y); },
            .samples = "7.5 f32[3] | -7 i64[3]=1..5 | 2.5 i64[3]=1..5"});
}
#undef COMPOSIT_BY_TENSOR_OR_NUMBER

// clang-format off
#define COMPOSIT_COMPARISON(name, expression, ...)                                                \
  rows.add({.schema = "aten::" #name ".Tensor(Tensor self, Tensor other) -> Tensor",              \
            .scalar = [](Expr x, Expr y) { return expression; },                                  \
            .samples = "f32[2,3] f32[3] | i64[4]<3 2 | f32[2,2] f64[] | bool[3] bool[3] | "       \
                       "f32[3]=nan f32[3]=nan",                                                   \
            .also = {__VA_OPT__("aten::" __VA_ARGS__ ".Tensor")}});                               \
  rows.add({.schema = "aten::" #name ".Scalar(Tensor self, Scalar other) -> Tensor",              \
            .scalar = [](Expr x, Expr y) { return expression; },                                  \
            .samples = "f32[2,3] 0 | i64[3]<5 2.5 | i64[3]<3 1",                                  \
            .also = {__VA_OPT__("aten::" __VA_ARGS__ ".Scalar")}});
// clang-format on

static void add_comparisons(OperationTable& rows) {
  COMPOSIT_COMPARISON(eq, eq(x, y))
  COMPOSIT_COMPARISON(ne, ne(x, y), "not_equal")
  COMPOSIT_COMPARISON(lt, x < y, "less")
  COMPOSIT_COMPARISON(le, x <= y, "less_equal")
  COMPOSIT_COMPARISON(gt, x > y, "greater")
  COMPOSIT_COMPARISON(ge, x >= y, "greater_equal")
}
#undef COMPOSIT_COMPARISON

void add_arithmetic_rows(OperationTable& rows) {
  add_sums(rows);
  add_products(rows);
  add_quotients(rows);
  add_remainders(rows);
  add_comparisons(rows);
}

}  // namespace composit
