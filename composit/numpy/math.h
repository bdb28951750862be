// NumPy's functions of elements (https://numpy.org/doc/stable/reference/ufuncs.html), and
// operators.
//
//   cnp::NdArray y = cnp::exp(-cnp::square(x)) / 2;
//   cnp::NdArray z = cnp::where(x > 0, x, 0.1 * x);
//
// Operands broadcast; dtypes follow NumPy: see composit/numpy/result_type.h. UserErrors: operands
// that do not broadcast, dtypes a function has no meaning for.
#pragma once

#include <optional>
#include <utility>

#include "composit/numpy/ndarray.h"

namespace composit::numpy {

// clang-format off
#define COMPOSIT_NUMPY_UNARY(f)                                                                     \
  f(absolute) f(abs) f(fabs) f(negative) f(positive) f(sign) f(square) f(sqrt) f(cbrt)              \
  f(reciprocal) f(exp) f(exp2) f(expm1) f(log) f(log2) f(log10) f(log1p) f(sin) f(cos) f(tan)       \
  f(arcsin) f(arccos) f(arctan) f(sinh) f(cosh) f(tanh) f(arcsinh) f(arccosh) f(arctanh)            \
  f(degrees) f(radians) f(deg2rad) f(rad2deg) f(sinc) f(floor) f(ceil) f(trunc) f(fix) f(rint)      \
  f(isnan) f(isinf) f(isfinite) f(isneginf) f(isposinf) f(isreal) f(iscomplex) f(signbit)           \
  f(logical_not) f(invert) f(bitwise_not) f(conjugate) f(conj) f(real) f(imag)                      \
  f(angle)
#define COMPOSIT_NUMPY_BINARY(f)                                                                    \
  f(add) f(subtract) f(multiply) f(divide) f(true_divide) f(floor_divide) f(remainder) f(mod)       \
  f(fmod) f(power) f(pow) f(float_power) f(maximum) f(minimum) f(fmax) f(fmin) f(arctan2)           \
  f(hypot) f(copysign) f(nextafter) f(logaddexp) f(logaddexp2) f(heaviside) f(equal) f(not_equal)   \
  f(less) f(less_equal) f(greater) f(greater_equal) f(logical_and) f(logical_or) f(logical_xor)     \
  f(bitwise_and) f(bitwise_or) f(bitwise_xor) f(left_shift) f(right_shift)
#define COMPOSIT_NUMPY_OPERATORS(f)                                                                 \
  f(operator+, add) f(operator-, subtract) f(operator*, multiply) f(operator/, divide)              \
  f(operator%, remainder) f(operator==, equal) f(operator!=, not_equal) f(operator<, less)          \
  f(operator<=, less_equal) f(operator>, greater) f(operator>=, greater_equal)                      \
  f(operator&, bitwise_and) f(operator|, bitwise_or) f(operator^, bitwise_xor)                      \
  f(operator<<, left_shift) f(operator>>, right_shift)

#define COMPOSIT_DECLARE(name) NdArray name(const NdArray& x);
// NumPy's functions of one element, of the shape of x. UserError for a dtype that has no such function.
COMPOSIT_NUMPY_UNARY(COMPOSIT_DECLARE)
#undef COMPOSIT_DECLARE

namespace detail {
#define COMPOSIT_DECLARE(name) NdArray name(const Operand& a, const Operand& b);
COMPOSIT_NUMPY_BINARY(COMPOSIT_DECLARE)
#undef COMPOSIT_DECLARE
NdArray where(const NdArray& condition, const Operand& x, const Operand& y);
}  // namespace detail

// NumPy's functions of two elements; operands broadcast. UserError for a dtype that has no such
// function. Templates, so that no function of tensors fits as well.
#define COMPOSIT_DECLARE(name)                                            \
  template <class A, class B>                                             \
  requires OperandPair<A, B> NdArray name(const A& a, const B& b) {       \
    return detail::name(Operand(a), Operand(b));                          \
  }
COMPOSIT_NUMPY_BINARY(COMPOSIT_DECLARE)
#undef COMPOSIT_DECLARE

// `a == b` compares elements. Both numbers, or no NdArray among them: not these operators.
#define COMPOSIT_DECLARE(op, name)                                                            \
  template <class A, class B>                                                                 \
  requires OperandPair<A, B> &&(std::same_as<A, NdArray> || std::same_as<B, NdArray>)NdArray \
  op(const A& a, const B& b) {                                                                \
    return detail::name(Operand(a), Operand(b));                                              \
  }
COMPOSIT_NUMPY_OPERATORS(COMPOSIT_DECLARE)
#undef COMPOSIT_DECLARE
// clang-format on

// `a += b` makes `a` another array, of the dtype it had. UserError where that is of a lower kind
// than the sum.
NdArray& assign(NdArray& a, const NdArray& result, std::string_view function);
inline NdArray& operator+=(NdArray& a, const Operand& b) {
  return assign(a, detail::add(a, b), "add");
}
inline NdArray& operator-=(NdArray& a, const Operand& b) {
  return assign(a, detail::subtract(a, b), "subtract");
}
inline NdArray& operator*=(NdArray& a, const Operand& b) {
  return assign(a, detail::multiply(a, b), "multiply");
}
inline NdArray& operator/=(NdArray& a, const Operand& b) {
  return assign(a, detail::divide(a, b), "divide");
}

// NumPy's unary operators, on each element.
inline NdArray operator-(const NdArray& x) { return negative(x); }
inline NdArray operator+(const NdArray& x) { return positive(x); }
inline NdArray operator~(const NdArray& x) { return invert(x); }

// x where condition is true, y elsewhere. Two numbers have the dtypes int64, float64, …
template <class X, class Y>
requires std::convertible_to<X, Operand> && std::convertible_to<Y, Operand> NdArray
where(const NdArray& condition, const X& x, const Y& y) {
  return detail::where(condition, Operand(x), Operand(y));
}

// Limits are arrays, numbers, or none.
// Elements moved between the limits.
NdArray clip(const NdArray& x, const std::optional<Operand>& min,
             const std::optional<Operand>& max);
// Rounds to this number of decimals, halves to even.
NdArray round(const NdArray& x, int64_t decimals = 0);
inline NdArray around(const NdArray& x, int64_t decimals = 0) { return round(x, decimals); }
// Fraction and integral part, of the sign of x.
std::pair<NdArray, NdArray> modf(const NdArray& x);
// Quotient and remainder, rounded down.
std::pair<NdArray, NdArray> divmod(const Operand& a, const Operand& b);

// The numbers that replace NaN and infinities.
struct NanToNum {
  double nan = 0;                                  // replaces NaN
  std::optional<double> posinf = {}, neginf = {};  // the greatest and the least number, if absent
};
// x without NaN and infinities.
NdArray nan_to_num(const NdArray& x, const NanToNum& options = {});

// The largest difference of two elements that are close.
struct Tolerance {
  double rtol = 1e-5, atol = 1e-8;  // |a - b| is at most atol + rtol |b|
  bool equal_nan = false;           // two NaN are close
};
// True, as bool, for each pair of elements that are close.
NdArray isclose(const Operand& a, const Operand& b, const Tolerance& tolerance = {});
// Zero-dimensional, bool.
NdArray allclose(const Operand& a, const Operand& b, const Tolerance& tolerance = {});
NdArray array_equal(const NdArray& a, const NdArray& b);

}  // namespace composit::numpy
