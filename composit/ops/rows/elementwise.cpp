// Functions of elements: exponentials, trigonometry, rounding, powers.
#include <cmath>
#include <complex>
#include <numbers>
#include <optional>
#include <type_traits>
#include <variant>

#include "composit/op/promotion.h"
#include "composit/ops/functions.h"

namespace composit {

// clang-format off
// After the samples: other names of the operation.
#define COMPOSIT_UNARY(name, expression, samples_, ...)              \
  rows.add({.schema = "aten::" #name "(Tensor self) -> Tensor",      \
            .scalar = [](Expr x) { return expression; },             \
            .samples = samples_,                                     \
            .also = {__VA_ARGS__}});
#define COMPOSIT_FLOAT_UNARY(name, expression, samples_, ...)        \
  rows.add({.schema = "aten::" #name "(Tensor self) -> Tensor",      \
            .promote = Promote::to_float,                            \
            .scalar = [](Expr x) { return expression; },             \
            .samples = samples_,                                     \
            .also = {__VA_ARGS__}});

static void add_exponentials(OperationTable& rows) {
  COMPOSIT_FLOAT_UNARY(exp, exp(x), "f32[2,3] | f32[7]=-110..90 | i64[3] | c64[3]")
  COMPOSIT_FLOAT_UNARY(exp2, exp2(x), "f32[2,3] | i64[3]", "aten::special_exp2")
  COMPOSIT_FLOAT_UNARY(expm1, expm1(x), "f32[2,3] | f64[5]=-0.001..0.001 | i64[3]",
                       "aten::special_expm1")
  COMPOSIT_FLOAT_UNARY(log, log(x), "f32[2,3]=0.1..5 | f32[5]=-1..1 | i64[3]=1..9")
  COMPOSIT_FLOAT_UNARY(log2, log2(x), "f32[2,3]=0.1..5 | i64[3]=1..9")
  COMPOSIT_FLOAT_UNARY(log10, log10(x), "f32[2,3]=0.1..5 | i64[3]=1..9")
  COMPOSIT_FLOAT_UNARY(log1p, log1p(x), "f32[2,3]=-0.5..5 | f64[5]=-0.001..0.001 | i64[3]=1..9",
                       "aten::special_log1p")
  COMPOSIT_FLOAT_UNARY(sqrt, sqrt(x), "f32[2,3]=0.1..5 | f32[5]=-1..1 | i64[3]=1..9 | c64[3]")
  COMPOSIT_FLOAT_UNARY(rsqrt, rsqrt(x), "f32[2,3]=0.1..5 | i64[3]=1..9")
  COMPOSIT_FLOAT_UNARY(reciprocal, 1 / x, "f32[2,3]=0.1..5 | i64[3]=1..9 | c64[3]")
}

static void add_trigonometry(OperationTable& rows) {
  COMPOSIT_FLOAT_UNARY(sin, sin(x), "f32[2,3] | i64[3] | c64[3]")
  COMPOSIT_FLOAT_UNARY(cos, cos(x), "f32[2,3] | i64[3] | c64[3]")
  COMPOSIT_FLOAT_UNARY(tan, tan(x), "f32[2,3]=-1..1 | i64[3]")
  COMPOSIT_FLOAT_UNARY(asin, asin(x), "f32[2,3]=-0.9..0.9", "aten::arcsin")
  COMPOSIT_FLOAT_UNARY(acos, acos(x), "f32[2,3]=-0.9..0.9", "aten::arccos")
  COMPOSIT_FLOAT_UNARY(atan, atan(x), "f32[2,3] | i64[3]", "aten::arctan")
  COMPOSIT_FLOAT_UNARY(sinh, sinh(x), "f32[2,3]")
  COMPOSIT_FLOAT_UNARY(cosh, cosh(x), "f32[2,3]")
  COMPOSIT_FLOAT_UNARY(asinh, asinh(x), "f32[2,3]", "aten::arcsinh")
  COMPOSIT_FLOAT_UNARY(acosh, acosh(x), "f32[2,3]=1.1..5", "aten::arccosh")
  COMPOSIT_FLOAT_UNARY(atanh, atanh(x), "f32[2,3]=-0.9..0.9", "aten::arctanh")
  COMPOSIT_FLOAT_UNARY(deg2rad, x * (std::numbers::pi / 180), "f32[2,3]=-180..180 | i64[3]")
  COMPOSIT_FLOAT_UNARY(rad2deg, x * (180 / std::numbers::pi), "f32[2,3] | i64[3]")
}
// clang-format on

// The angle of a real number: 0 or pi.
static Expr angle(const Expr& x) {
  if (is_complex(x.dtype())) return atan2(imag(x), real(x));
  return select(isnan(x), NAN, select(x < 0, cast(std::numbers::pi, x.dtype()), 0));
}

static Expr sgn(const Expr& x) {
  if (!is_complex(x.dtype())) return sign(x);
  const Expr magnitude = abs(x);
  return select(eq(magnitude, 0), 0, x / magnitude);
}

static Expr fraction(const Expr& x) {
  expect_floating(x.dtype());
  return x - trunc(x);
}

// Rounds to a number of digits after the point; before it, if `decimals` is negative.
static Expr rounded(const Expr& x, int64_t decimals) {
  if (decimals == 0 || category(x.dtype()) < DTypeCategory::floating) return round(x);
  const double power = std::pow(10, std::abs(decimals));
  return decimals > 0 ? round(x * power) / power : round(x / power) * power;
}

// clang-format off
static void add_rounding(OperationTable& rows) {
  COMPOSIT_UNARY(abs, abs(x), "f32[2,3] | i64[3] | c64[3]", "aten::absolute")
  COMPOSIT_UNARY(sign, sign(x), "f32[2,3] | i64[3] | bool[2]")
  COMPOSIT_UNARY(sgn, sgn(x), "f32[2,3] | i64[3] | c64[3]")
  COMPOSIT_FLOAT_UNARY(angle, angle(x), "f32[2,3] | i64[3] | c64[3] | f32[3]=nan")
  COMPOSIT_UNARY(floor, floor(x), "f32[2,3] | i64[3]")
  COMPOSIT_UNARY(ceil, ceil(x), "f32[2,3] | i64[3]")
  COMPOSIT_UNARY(round, round(x), "f32[2,3] | f32[5]=[0.5,1.5,2.5,-0.5,-1.5]")
  COMPOSIT_UNARY(trunc, trunc(x), "f32[2,3] | i64[3]", "aten::fix")
  COMPOSIT_UNARY(frac, fraction(x), "f32[2,3] | f32[3]=[-1.5,2,0]")
  rows.add({.schema = "aten::round.decimals(Tensor self, *, int decimals) -> Tensor",
            .scalar = [](Expr x, int64_t decimals) { return rounded(x, decimals); },
            .samples = "f32[2,3] 1 | f32[2,3]=-90..90 -1 | f32[3] 0"});
}
// clang-format on

// The real number that a literal is, of any type.
static std::optional<double> real_number(const Expr& y) {
  if (y.kind() != ExprKind::literal) return std::nullopt;
  if (const auto* complex = std::get_if<std::complex<double>>(&y.value()))
    return complex->imag() == 0 ? std::optional(complex->real()) : std::nullopt;
  return std::visit(
      [](const auto& value) -> std::optional<double> {
        if constexpr (std::is_arithmetic_v<std::decay_t<decltype(value)>>)
          return static_cast<double>(value);
        return std::nullopt;
      },
      y.value());
}

// As torch computes powers by these numbers: of -0 and of -infinity, and of complex numbers that
// are 0 or infinite, C's power has other values.
static Expr power(const Expr& x, const Expr& y) {
  const std::optional<double> exponent = real_number(y);
  if (exponent == 2) return x * x;
  if (category(y.dtype()) == DTypeCategory::integer && exponent < 0.0)
    throw UserError("integers have no negative powers; cast one of them to a float");
  const bool is_real = is_floating_point(x.dtype()) && !is_complex(y.dtype());
  if (!exponent || !(is_real || is_complex(x.dtype()))) return pow(x, y);
  if (*exponent == 0) return cast(Expr(1), x.dtype());
  if (*exponent == 1) return x;
  if (*exponent == 3) return x * x * x;
  if (x.dtype() == DType::float16 && std::abs(*exponent) == 0.5) return pow(x, y);  // torch's, too
  if (*exponent == 0.5) return sqrt(x);
  if (*exponent == -0.5) return rsqrt(x);
  if (*exponent == -1) return 1 / x;
  if (*exponent == -2) return 1 / (x * x);
  return pow(x, y);
}

static DType double_dtype(DType dtype) {
  return is_complex(dtype) ? DType::complex128 : DType::float64;
}
static DType double_dtype(const Scalar& number) {
  return std::holds_alternative<std::complex<double>>(number.value) ? DType::complex128
                                                                    : DType::float64;
}

static void add_powers(OperationTable& rows) {
  rows.add({.schema = "aten::square(Tensor self) -> Tensor",
            .scalar =
                [](Expr x) {  // a power of bools is a number
                  const Expr base = x.dtype() == DType::bool_ ? cast(x, DType::int64) : x;
                  return base * base;
                },
            .samples = "f32[2,3] | i64[3] | bool[2]"});
  rows.add({.schema = "aten::pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
            .scalar = [](Expr x, Expr y) { return power(x, y); },
            .samples =
                "f32[2,3] 2 | f32[2,3]=0.1..3 0.5 | f32[2,3]=0.5..2 -1 | i64[3] 3 | i64[3] 2.0 "
                "| f32[3]=[0,1,-1] 2 | f32[3]=[0,1,-1] 0",
            .bad = "i64[2] -1: negative powers"});
  rows.add({.schema = "aten::pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
            .scalar = [](Expr x, Expr y) { return pow(x, y); },
            .samples = "f32[2,3]=0.5..2 f32[3] | i64[3] i64[3]<4"});
  rows.add({.schema = "aten::pow.Scalar(Scalar self, Tensor exponent) -> Tensor",
            .scalar = [](Expr x, Expr y) { return pow(x, y); },
            .samples = "2 f32[3] | 0.5 f32[2,3] | 2 i64[3]<4 | 2.5 i64[3] | 0 i64[2]=[0,2]"});
  rows.add({.schema = "aten::float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
            .decompose =
                [](LazyTensor x, LazyTensor y) {
                  const DType dtype = promote(double_dtype(x.dtype()), double_dtype(y.dtype()));
                  return LazyTensors{pow(to(x, dtype), to(y, dtype))};
                },
            .samples = "f32[2,3]=0.5..2 f32[3] | i64[3]=1..4 i64[3]<4"});
  rows.add({.schema = "aten::float_power.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
            .decompose =
                [](LazyTensor x, Scalar y) {
                  const DType dtype = promote(double_dtype(x.dtype()), double_dtype(y));
                  return apply("aten::pow.Tensor_Scalar", {to(x, dtype), y});
                },
            .samples = "f32[2,3]=0.5..2 2.5 | i64[3] 2 | i64[3]=1..4 -1"});
  rows.add({.schema = "aten::float_power.Scalar(Scalar self, Tensor exponent) -> Tensor",
            .decompose =
                [](Scalar x, LazyTensor y) {
                  const DType dtype = promote(double_dtype(x), double_dtype(y.dtype()));
                  return apply("aten::pow.Scalar", {x, to(y, dtype)});
                },
            .samples = "2.5 f32[2,3] | 2 i64[3]"});
}

static void add_functions_of_two(OperationTable& rows) {
  rows.add({.schema = "aten::atan2(Tensor self, Tensor other) -> Tensor",
            .promote = Promote::to_float,
            .scalar = [](Expr y, Expr x) { return atan2(y, x); },
            .samples = "f32[2,3] f32[3] | i64[3] i64[3] | f32[2]=[0,-1] f32[2]=[1,0]",
            .also = {"aten::arctan2"}});
  rows.add({.schema = "aten::hypot(Tensor self, Tensor other) -> Tensor",
            .scalar =
                [](Expr x, Expr y) {
                  expect_floating(x.dtype());
                  return hypot(x, y);
                },
            .samples = "f32[2,3] f32[3] | f32[2] 2",
            .bad = "i64[2] i64[2]: floating point"});
  rows.add({.schema = "aten::copysign.Tensor(Tensor self, Tensor other) -> Tensor",
            .promote = Promote::to_float,
            .scalar = [](Expr x, Expr y) { return copysign(x, y); },
            .samples = "f32[2,3] f32[3] | i64[3] i64[3] | f32[3] f32[3]=[0,-0.0,1]"});
  rows.add({.schema = "aten::copysign.Scalar(Tensor self, Scalar other) -> Tensor",
            .promote = Promote::to_float,
            .scalar = [](Expr x, Expr y) { return copysign(x, y); },
            .samples = "f32[2,3] -1 | i64[3] 2.5"});
  rows.add({.schema = "aten::nextafter(Tensor self, Tensor other) -> Tensor",
            .scalar =
                [](Expr x, Expr y) {
                  expect_floating(x.dtype());
                  return nextafter(x, y);
                },
            .vjp =
                [](Vjp v, LazyTensor x, LazyTensor y) {
                  const LazyTensor g = where(eq(x, y), 0, v.cotangents[0]);
                  return Gradients{sum_to_size(g, x.sizes()), zeros_like(y)};
                },
            .samples = "f32[2,3] f32[3] | f32[2]=[0,1] f32[2]=[1,1]",
            .bad = "i64[2] i64[2]: floating point"});
}

void add_elementwise_rows(OperationTable& rows) {
  add_exponentials(rows);
  add_trigonometry(rows);
  add_rounding(rows);
  add_powers(rows);
  add_functions_of_two(rows);
}

}  // namespace composit
