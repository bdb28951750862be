// NumPy's functions of two operands, and `where`.
#include "composit/ir/error.h"
#include "composit/numpy/math.h"
#include "composit/numpy/result_type.h"
#include "composit/op/promotion.h"

namespace composit::numpy::detail {
namespace {

using ToDtype = DType (*)(DType);
DType as_is(DType dtype) { return dtype; }

// True if operations themselves cast the two arrays to `dtype` by torch's rules. Only for floats,
// since the rules differ for integers.
bool promote_to(DType dtype, const Operand& a, const Operand& b) {
  const auto is_float = [](const Operand& x) {
    return !x.is_number() && category(x.array().dtype()) >= DTypeCategory::floating;
  };
  if (!is_float(a) || !is_float(b)) return false;
  Promotion promotion;
  promotion.add(a.array().type());
  promotion.add(b.array().type());
  return promotion.result() == dtype;
}

// Both in the dtype that NumPy computes in.
NdArray call(std::string_view function, std::string_view op, const Operand& a, const Operand& b,
             ToDtype computed_in = as_is) {
  const DType dtype = computed_in(result_type(function, {a, b}));
  if (promote_to(dtype, a, b)) return call_as(function, op, {a.array(), b.array()});
  return call_as(function, op, {argument(a, dtype), argument(b, dtype)});
}
NdArray call_real(std::string_view function, std::string_view op, const Operand& a,
                  const Operand& b, ToDtype computed_in = as_is) {
  expect_real(function, result_type(function, {a, b}));
  return call(function, op, a, b, computed_in);
}

// The dtype in which `array` and `number` are compared: wide enough for a number that `array`'s
// dtype cannot hold.
DType compared_in(DType array, int64_t number) {
  if (array != DType::uint64) return DType::int64;
  return number < 0 ? DType::float64 : DType::uint64;
}

NdArray compare(std::string_view function, std::string_view op, const Operand& a,
                const Operand& b) {
  const Operand& number = a.is_number() ? a : b;
  const Operand& other = a.is_number() ? b : a;
  const auto* integer = number.is_number() ? std::get_if<int64_t>(&number.number()) : nullptr;
  const bool exact =
      integer != nullptr && category(other.array().dtype()) <= DTypeCategory::integer;
  const DType dtype =
      exact ? compared_in(other.array().dtype(), *integer) : result_type(function, {a, b});
  return call_as(function, op, {argument(a, dtype), argument(b, dtype)});
}

NdArray divide_rounded(std::string_view function, const Operand& a, const Operand& b,
                       const char* mode) {
  expect_real(function, result_type(function, {a, b}));
  const DType dtype = number_dtype(result_type(function, {a, b}));
  return call_as(function, "aten::div.Tensor_mode", {argument(a, dtype), argument(b, dtype), mode});
}

// Two arguments where a row is declared for two tensors only.
NdArray call_arrays(std::string_view function, std::string_view op, const Operand& a,
                    const Operand& b, ToDtype computed_in) {
  expect_real(function, result_type(function, {a, b}));
  const DType dtype = computed_in(result_type(function, {a, b}));
  return call_as(function, op, {as_array(a, dtype), as_array(b, dtype)});
}

NdArray power_of(std::string_view function, const Operand& a, const Operand& b, DType dtype) {
  if (b.is_number()) {
    const auto* integer = std::get_if<int64_t>(&b.number());
    if (category(dtype) == DTypeCategory::integer && integer != nullptr && *integer < 0)
      refuse(function, "integers have no negative powers; cast one of them to a float");
    return call_as(function, "aten::pow.Tensor_Scalar", {argument(a, dtype), Scalar(b.number())});
  }
  if (a.is_number())
    return call_as(function, "aten::pow.Scalar", {Scalar(a.number()), argument(b, dtype)});
  return call_as(function, "aten::pow.Tensor_Tensor", {argument(a, dtype), argument(b, dtype)});
}

DType double_dtype(DType dtype) { return is_complex(dtype) ? DType::complex128 : DType::float64; }

}  // namespace

NdArray add(const Operand& a, const Operand& b) {
  const DType dtype = result_type("add", {a, b});
  if (dtype == DType::bool_) return logical_or(a, b);
  return call("add", "aten::add.Tensor", a, b);
}
NdArray subtract(const Operand& a, const Operand& b) {
  expect_no_bool("subtract", result_type("subtract", {a, b}));
  return call("subtract", "aten::sub.Tensor", a, b);
}
NdArray multiply(const Operand& a, const Operand& b) {
  return call("multiply", "aten::mul.Tensor", a, b);
}
NdArray divide(const Operand& a, const Operand& b) {
  return call("divide", "aten::div.Tensor", a, b, divided_dtype);
}
NdArray true_divide(const Operand& a, const Operand& b) { return divide(a, b); }
NdArray floor_divide(const Operand& a, const Operand& b) {
  return divide_rounded("floor_divide", a, b, "floor");
}
NdArray remainder(const Operand& a, const Operand& b) {
  return call_real("remainder", "aten::remainder.Tensor", a, b, number_dtype);
}
NdArray mod(const Operand& a, const Operand& b) { return remainder(a, b); }
NdArray fmod(const Operand& a, const Operand& b) {
  return call_real("fmod", "aten::fmod.Tensor", a, b, number_dtype);
}
NdArray power(const Operand& a, const Operand& b) {
  return power_of("power", a, b, number_dtype(result_type("power", {a, b})));
}
NdArray pow(const Operand& a, const Operand& b) { return power(a, b); }
NdArray float_power(const Operand& a, const Operand& b) {
  return power_of("float_power", a, b, double_dtype(result_type("float_power", {a, b})));
}
NdArray maximum(const Operand& a, const Operand& b) {
  return call_real("maximum", "aten::maximum", a, b);
}
NdArray minimum(const Operand& a, const Operand& b) {
  return call_real("minimum", "aten::minimum", a, b);
}
NdArray fmax(const Operand& a, const Operand& b) { return call_real("fmax", "aten::fmax", a, b); }
NdArray fmin(const Operand& a, const Operand& b) { return call_real("fmin", "aten::fmin", a, b); }
NdArray arctan2(const Operand& a, const Operand& b) {
  return call_arrays("arctan2", "aten::atan2", a, b, inexact_dtype);
}
NdArray hypot(const Operand& a, const Operand& b) {
  return call_arrays("hypot", "aten::hypot", a, b, inexact_dtype);
}
NdArray copysign(const Operand& a, const Operand& b) {
  return call_arrays("copysign", "aten::copysign.Tensor", a, b, inexact_dtype);
}
NdArray nextafter(const Operand& a, const Operand& b) {
  return call_arrays("nextafter", "aten::nextafter", a, b, inexact_dtype);
}
NdArray logaddexp(const Operand& a, const Operand& b) {
  return call_arrays("logaddexp", "aten::logaddexp", a, b, inexact_dtype);
}
NdArray logaddexp2(const Operand& a, const Operand& b) {
  return call_arrays("logaddexp2", "aten::logaddexp2", a, b, inexact_dtype);
}
// 0 below zero, 1 above, `b` at zero; NaN stays.
NdArray heaviside(const Operand& a, const Operand& b) {
  expect_real("heaviside", result_type("heaviside", {a, b}));
  const DType dtype = inexact_dtype(result_type("heaviside", {a, b}));
  const NdArray x = as_array(a, dtype);
  const NdArray elsewhere = where(numpy::isnan(x), x, NdArray(to(x > 0, dtype)));
  return where(numpy::equal(x, 0), as_array(b, dtype), elsewhere);
}

NdArray equal(const Operand& a, const Operand& b) {
  return compare("equal", "aten::eq.Tensor", a, b);
}
NdArray not_equal(const Operand& a, const Operand& b) {
  return compare("not_equal", "aten::ne.Tensor", a, b);
}
NdArray less(const Operand& a, const Operand& b) {
  return compare("less", "aten::lt.Tensor", a, b);
}
NdArray less_equal(const Operand& a, const Operand& b) {
  return compare("less_equal", "aten::le.Tensor", a, b);
}
NdArray greater(const Operand& a, const Operand& b) {
  return compare("greater", "aten::gt.Tensor", a, b);
}
NdArray greater_equal(const Operand& a, const Operand& b) {
  return compare("greater_equal", "aten::ge.Tensor", a, b);
}

NdArray logical_and(const Operand& a, const Operand& b) {
  return call("logical_and", "aten::logical_and", a, b);
}
NdArray logical_or(const Operand& a, const Operand& b) {
  return call("logical_or", "aten::logical_or", a, b);
}
NdArray logical_xor(const Operand& a, const Operand& b) {
  return call("logical_xor", "aten::logical_xor", a, b);
}
NdArray bitwise_and(const Operand& a, const Operand& b) {
  return call("bitwise_and", "aten::bitwise_and.Tensor", a, b);
}
NdArray bitwise_or(const Operand& a, const Operand& b) {
  return call("bitwise_or", "aten::bitwise_or.Tensor", a, b);
}
NdArray bitwise_xor(const Operand& a, const Operand& b) {
  return call("bitwise_xor", "aten::bitwise_xor.Tensor", a, b);
}
NdArray left_shift(const Operand& a, const Operand& b) {
  return call("left_shift", "aten::bitwise_left_shift.Tensor", a, b, number_dtype);
}
NdArray right_shift(const Operand& a, const Operand& b) {
  return call("right_shift", "aten::bitwise_right_shift.Tensor", a, b, number_dtype);
}

NdArray where(const NdArray& condition, const Operand& x, const Operand& y) {
  // Two numbers beside no array are of NumPy's default dtypes: those of bool beside them.
  const NdArray plain = composit::full({}, false, DType::bool_);
  const DType dtype = x.is_number() && y.is_number() ? result_type("where", {plain, x, y})
                                                     : result_type("where", {x, y});
  return call_as("where", "aten::where.self",
                 {to(condition, DType::bool_), as_array(x, dtype), as_array(y, dtype)});
}

}  // namespace composit::numpy::detail

namespace composit::numpy {

NdArray& assign(NdArray& a, const NdArray& result, std::string_view function) {
  if (category(result.dtype()) > category(a.dtype()) || result.shape() != a.shape())
    refuse(function, "expected a result of " + std::string(name(a.dtype())) + str(a.shape()) +
                         ", in place of an operand, received " + std::string(name(result.dtype())) +
                         str(result.shape()));
  return a = to(result, a.dtype());
}

}  // namespace composit::numpy
