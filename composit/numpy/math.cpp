#include "composit/numpy/math.h"

#include "composit/ir/error.h"
#include "composit/numpy/reductions.h"
#include "composit/numpy/result_type.h"
#include "composit/op/promotion.h"

namespace composit::numpy {
namespace {

NdArray call(std::string_view op, const NdArray& x) { return apply_one(op, {x}); }
// Computed in the float dtype that NumPy has for the dtype of x.
NdArray inexact(std::string_view op, const NdArray& x) {
  return call(op, to(x, inexact_dtype(x.dtype())));
}
NdArray inexact_real(std::string_view function, std::string_view op, const NdArray& x) {
  expect_real(function, x.dtype());
  return inexact(op, x);
}

bool is_integral(const NdArray& x) { return category(x.dtype()) < DTypeCategory::floating; }

// Integers are whole already.
NdArray rounded(std::string_view function, std::string_view op, const NdArray& x) {
  expect_real(function, x.dtype());
  return is_integral(x) ? x : call(op, x);
}

NdArray absolute_of(const NdArray& x) {
  return x.dtype() == DType::bool_ ? x : call("aten::abs", x);
}

}  // namespace

NdArray absolute(const NdArray& x) { return absolute_of(x); }
NdArray abs(const NdArray& x) { return absolute_of(x); }
NdArray fabs(const NdArray& x) { return inexact_real("fabs", "aten::abs", x); }
NdArray negative(const NdArray& x) {
  expect_no_bool("negative", x.dtype());
  return call("aten::neg", x);
}
NdArray positive(const NdArray& x) {
  expect_no_bool("positive", x.dtype());
  return x;
}
NdArray sign(const NdArray& x) {
  expect_no_bool("sign", x.dtype());
  const NdArray signs = call("aten::sgn", x);
  return is_integral(x) ? signs : where(isnan(x), x, signs);
}
NdArray square(const NdArray& x) { return call("aten::square", to(x, number_dtype(x.dtype()))); }
NdArray sqrt(const NdArray& x) { return inexact("aten::sqrt", x); }
// One step of Newton's method after the power mends its last bits.
NdArray cbrt(const NdArray& x) {
  expect_real("cbrt", x.dtype());
  const NdArray y = to(x, inexact_dtype(x.dtype()));
  const NdArray root = call("aten::sgn", y) * pow(abs(y), 1.0 / 3);
  const NdArray better = root - (root * root * root - y) / (3 * root * root);
  return where(isfinite(y) & (y != 0), better, root);
}
// For integers, 1 / x is rounded towards zero.
NdArray reciprocal(const NdArray& x) {
  if (!is_integral(x)) return call("aten::reciprocal", x);
  const NdArray y = to(x, number_dtype(x.dtype()));
  return apply_one("aten::div.Tensor_mode",
                   {LazyTensor(composit::ones_like(y)), LazyTensor(y), "trunc"});
}
NdArray exp(const NdArray& x) { return inexact("aten::exp", x); }
NdArray exp2(const NdArray& x) { return inexact("aten::exp2", x); }
NdArray expm1(const NdArray& x) { return inexact("aten::expm1", x); }
NdArray log(const NdArray& x) { return inexact("aten::log", x); }
NdArray log2(const NdArray& x) { return inexact("aten::log2", x); }
NdArray log10(const NdArray& x) { return inexact("aten::log10", x); }
NdArray log1p(const NdArray& x) { return inexact("aten::log1p", x); }
NdArray sin(const NdArray& x) { return inexact("aten::sin", x); }
NdArray cos(const NdArray& x) { return inexact("aten::cos", x); }
NdArray tan(const NdArray& x) { return inexact("aten::tan", x); }
NdArray arcsin(const NdArray& x) { return inexact("aten::asin", x); }
NdArray arccos(const NdArray& x) { return inexact("aten::acos", x); }
NdArray arctan(const NdArray& x) { return inexact("aten::atan", x); }
NdArray sinh(const NdArray& x) { return inexact("aten::sinh", x); }
NdArray cosh(const NdArray& x) { return inexact("aten::cosh", x); }
NdArray tanh(const NdArray& x) { return inexact("aten::tanh", x); }
NdArray arcsinh(const NdArray& x) { return inexact("aten::asinh", x); }
NdArray arccosh(const NdArray& x) { return inexact("aten::acosh", x); }
NdArray arctanh(const NdArray& x) { return inexact("aten::atanh", x); }
NdArray degrees(const NdArray& x) { return inexact_real("degrees", "aten::rad2deg", x); }
NdArray radians(const NdArray& x) { return inexact_real("radians", "aten::deg2rad", x); }
NdArray deg2rad(const NdArray& x) { return radians(x); }
NdArray rad2deg(const NdArray& x) { return degrees(x); }
NdArray sinc(const NdArray& x) { return call("aten::sinc", to(x, divided_dtype(x.dtype()))); }
NdArray floor(const NdArray& x) { return rounded("floor", "aten::floor", x); }
NdArray ceil(const NdArray& x) { return rounded("ceil", "aten::ceil", x); }
NdArray trunc(const NdArray& x) { return rounded("trunc", "aten::trunc", x); }
NdArray fix(const NdArray& x) { return rounded("fix", "aten::trunc", x); }
NdArray rint(const NdArray& x) { return inexact_real("rint", "aten::round", x); }
NdArray isnan(const NdArray& x) { return call("aten::isnan", x); }
NdArray isinf(const NdArray& x) { return call("aten::isinf", x); }
NdArray isfinite(const NdArray& x) { return call("aten::isfinite", x); }
NdArray isneginf(const NdArray& x) { return call("aten::isneginf", x); }
NdArray isposinf(const NdArray& x) { return call("aten::isposinf", x); }
NdArray isreal(const NdArray& x) { return call("aten::isreal", x); }
NdArray iscomplex(const NdArray& x) { return logical_not(isreal(x)); }
NdArray signbit(const NdArray& x) {
  expect_real("signbit", x.dtype());
  return call("aten::signbit", x);
}
NdArray logical_not(const NdArray& x) { return call("aten::logical_not", x); }
NdArray invert(const NdArray& x) { return call_as("invert", "aten::bitwise_not", {x}); }
NdArray bitwise_not(const NdArray& x) { return invert(x); }
NdArray conjugate(const NdArray& x) { return composit::conj(to(x, number_dtype(x.dtype()))); }
NdArray conj(const NdArray& x) { return conjugate(x); }
NdArray real(const NdArray& x) { return is_complex(x.dtype()) ? call("aten::real", x) : x; }
NdArray imag(const NdArray& x) {
  return is_complex(x.dtype()) ? call("aten::imag", x) : NdArray(zeros_like(x));
}
NdArray angle(const NdArray& x) {
  if (is_complex(x.dtype())) return call("aten::angle", x);
  return arctan2(0, x);
}

NdArray clip(const NdArray& x, const std::optional<Operand>& min,
             const std::optional<Operand>& max) {
  NdArray y = x;
  if (min) y = detail::maximum(y, *min);
  if (max) y = detail::minimum(y, *max);
  return y;
}

NdArray round(const NdArray& x, int64_t decimals) {
  expect_real("round", x.dtype());
  if (x.dtype() == DType::bool_) {
    if (decimals != 0) expect_no_bool("round", x.dtype());
    return to(x, DType::float16);
  }
  if (decimals == 0) return is_integral(x) ? x : call("aten::round", x);
  if (!is_integral(x)) return apply_one("aten::round.decimals", {x, decimals});
  if (decimals > 0) return x;
  const NdArray y = apply_one("aten::round.decimals", {to(x, DType::float64), decimals});
  return to(y, x.dtype());
}

std::pair<NdArray, NdArray> modf(const NdArray& x) {
  expect_real("modf", x.dtype());
  const NdArray y = to(x, inexact_dtype(x.dtype()));
  const NdArray whole = call("aten::trunc", y);
  const NdArray fraction = where(isinf(y), 0.0, y - whole);
  return {copysign(fraction, y), whole};
}

std::pair<NdArray, NdArray> divmod(const Operand& a, const Operand& b) {
  return {detail::floor_divide(a, b), detail::remainder(a, b)};
}

NdArray nan_to_num(const NdArray& x, const NanToNum& options) {
  if (is_integral(x)) return x;
  std::vector<ArgumentValue> arguments{x, options.nan};
  for (const auto& limit : {options.posinf, options.neginf})
    arguments.push_back(limit ? ArgumentValue(*limit) : ArgumentValue());
  return apply_one("aten::nan_to_num", arguments);
}

NdArray isclose(const Operand& a, const Operand& b, const Tolerance& tolerance) {
  const DType dtype = divided_dtype(result_type("isclose", {a, b}));
  return apply_one("aten::isclose", {LazyTensor(as_array(a, dtype)), LazyTensor(as_array(b, dtype)),
                                     tolerance.rtol, tolerance.atol, tolerance.equal_nan});
}

NdArray allclose(const Operand& a, const Operand& b, const Tolerance& tolerance) {
  return all(isclose(a, b, tolerance));
}

NdArray array_equal(const NdArray& a, const NdArray& b) {
  if (a.shape() != b.shape()) return composit::full({}, false, DType::bool_);
  return all(equal(a, b));
}

}  // namespace composit::numpy
