// Divisors, exponents and signs of single numbers.
#include <cmath>
#include <numeric>

#include "composit/op/promotion.h"
#include "composit/ops/functions.h"
#include "composit/ops/native.h"

namespace composit {
namespace {

void expect_integers(const LazyTensor& x) {
  if (category(x.dtype()) != DTypeCategory::integer)
    throw UserError("expected integers, received " + std::string(name(x.dtype())));
}

// Both operands in the common dtype and sizes.
std::pair<LazyTensor, LazyTensor> matched(const LazyTensor& x, const LazyTensor& y) {
  const LazyTensor both = x * y;
  return {expand(to(x, both.dtype()), both.sizes()), expand(to(y, both.dtype()), both.sizes())};
}

// composit::gcd is that of operands that need neither broadcasting nor promotion.
void add_divisors(OperationTable& rows) {
  rows.add({.schema = "composit::gcd(Tensor self, Tensor other) -> Tensor",
            .infer =
                [](LazyTensor x, LazyTensor y) {
                  expect_integers(x);
                  if (x.type() != y.type()) throw UserError("expected operands of one type");
                  return std::vector<Type>{tensor_type(x.dtype(), x.type().sizes)};
                },
            .native =
                [](Array x, Array y) {
                  std::vector<int64_t> a = elements<int64_t>(x);
                  const std::vector<int64_t> b = elements<int64_t>(y);
                  for (size_t i = 0; i < a.size(); ++i) a[i] = std::gcd(a[i], b[i]);
                  return std::vector<Array>{
                      array_of(tensor_type(x.type().dtype, x.type().sizes), a)};
                },
            .runtime = "parts::gcd",
            .samples = "i64[4]=-20..20 i64[4]=-20..20 | i64[3]=[0,0,6] i64[3]=[0,4,0]",
            .bad = "f32[2] f32[2]: expected integers"});
  rows.add({.schema = "aten::gcd(Tensor self, Tensor other) -> Tensor",
            .decompose =
                [](LazyTensor x, LazyTensor y) {
                  const auto [a, b] = matched(x, y);
                  return apply("composit::gcd", {a, b});
                },
            .samples = "i64[2,3]=-20..20 i64[3]=-20..20 | i64[3]=[0,0,6] i64[3]=[0,4,0]",
            .bad = "f32[2] f32[2]: expected integers"});
  rows.add({.schema = "aten::lcm(Tensor self, Tensor other) -> Tensor",
            .decompose =
                [](LazyTensor x, LazyTensor y) {
                  const auto [a, b] = matched(x, y);
                  const LazyTensor common = apply_one("composit::gcd", {a, b});
                  const LazyTensor part =
                      apply_one("aten::floor_divide", {a, where(eq(common, 0), 1, common)});
                  return LazyTensors{abs(part * b)};
                },
            .samples = "i64[2,3]=-20..20 i64[3]=-20..20 | i64[3]=[0,0,6] i64[3]=[0,4,0]",
            .bad = "f32[2] f32[2]: expected integers"});
}

double mantissa(double x) {
  int exponent = 0;
  return std::frexp(x, &exponent);
}
int64_t exponent_of(double x) {
  int exponent = 0;
  std::frexp(x, &exponent);
  return std::isfinite(x) ? exponent : 0;
}

void add_exponents(OperationTable& rows) {
  rows.add(
      {.schema = "aten::frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)",
       .infer =
           [](LazyTensor x) {
             if (category(x.dtype()) != DTypeCategory::floating)
               throw UserError("expected a floating point dtype, received " +
                               std::string(name(x.dtype())));
             return std::vector<Type>{tensor_type(x.dtype(), x.type().sizes),
                                      tensor_type(DType::int32, x.type().sizes)};
           },
       .native =
           [](Array x) {
             std::vector<double> parts = elements<double>(x);
             std::vector<int64_t> exponents;
             for (double& value : parts) {
               exponents.push_back(exponent_of(value));
               value = mantissa(value);
             }
             const Dims& sizes = x.type().sizes;
             return std::vector<Array>{array_of(tensor_type(x.type().dtype, sizes), parts),
                                       array_of(tensor_type(DType::int32, sizes), exponents)};
           },
       .runtime = "parts::frexp",
       .vjp =
           [](Vjp v, LazyTensor) {
             return Gradients{apply_one("aten::ldexp.Tensor", {v.cotangents[0], -v.results[1]})};
           },
       .samples = "f32[5]=-90..90 | f64[4]=[0,1,-0.5,inf]",
       .bad = "i64[2]: floating point"});
  rows.add({.schema = "aten::ldexp.Tensor(Tensor self, Tensor other) -> Tensor",
            .decompose =
                [](LazyTensor x, LazyTensor exponent) {
                  return LazyTensors{x * apply_one("aten::pow.Scalar", {2.0, exponent})};
                },
            .samples = "f32[2,3] i64[3] | f32[3] f32[3] | i64[2] i64[2]"});
  rows.add(
      {.schema = "aten::heaviside(Tensor self, Tensor values) -> Tensor",
       .scalar = [](Expr x,
                    Expr at_zero) { return select(eq(x, 0), at_zero, cast(x > 0, x.dtype())); },
       .samples = "f32[2,3] f32[3] | f32[3]=[0,-1,2] f32[3] | i64[3]=[0,-1,2] i64[3]",
       .nondifferentiable = "self values"});
}

}  // namespace

void add_number_parts_rows(OperationTable& rows) {
  add_divisors(rows);
  add_exponents(rows);
}

}  // namespace composit
