// The functions of scalar expressions as templates over the compute type, one per name of
// composit/op/scalar_function.h. A function that a type does not have does not exist for it.
//
//   scalar::remainder(-7.0, 3.0) == 2.0;   scalar::min(std::nan(""), 1.0) is NaN
//
// Most are those that generated code has, composit/shipped/scalar_functions.h. Here are operators,
// which generated code writes as such, and functions that it computes in its own, faster way.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>

#include "composit/shipped/scalar_functions.h"

namespace composit::scalar {

using namespace fl;

// --- Arithmetic -------------------------------------------------------------------------------

// Modulo 2^64, and for bool: whether the result is not zero.
template <class T>
constexpr uint64_t bits(T x) {
  return static_cast<uint64_t>(x);
}

template <class T>
T neg(T x) {
  if constexpr (std::is_integral_v<T>)
    return fl::negated(x);
  else
    return -x;
}
template <class T>
T add(T x, T y) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(bits(x) + bits(y));
  else
    return x + y;
}
template <class T>
T sub(T x, T y) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(bits(x) - bits(y));
  else
    return x - y;
}
template <class T>
T mul(T x, T y) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(bits(x) * bits(y));
  else if constexpr (fl::is_complex<T>::value)  // torch's: without the special cases of C's annex G
    return {x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()};
  else
    return x * y;
}
template <class T>
Float<T> div(T x, T y) {
  return x / y;
}

// Blocks of values are computed as a whole: an integer that is not read is 0 where it is divided by
// 0.
#define COMPOSIT_DIVISION(name)                                                        \
  template <class T>                                                                   \
  Ordered<T> name(T x, T y) {                                                          \
    return std::is_integral_v<T> && y == T(0) ? T(0) : static_cast<T>(fl::name(x, y)); \
  }
COMPOSIT_DIVISION(trunc_divide)
COMPOSIT_DIVISION(floor_divide)
COMPOSIT_DIVISION(remainder)
COMPOSIT_DIVISION(fmod)
#undef COMPOSIT_DIVISION

// --- Comparison, logic, bits ------------------------------------------------------------------

// clang-format off
template <class T> bool lt(T x, Ordered<T> y) { return x < y; }
template <class T> bool le(T x, Ordered<T> y) { return x <= y; }
template <class T> bool gt(T x, Ordered<T> y) { return x > y; }
template <class T> bool ge(T x, Ordered<T> y) { return x >= y; }
template <class T> bool eq(T x, T y) { return x == y; }
template <class T> bool ne(T x, T y) { return x != y; }
inline bool logical_and(bool x, bool y) { return x & y; }
inline bool logical_or(bool x, bool y) { return x | y; }
inline bool logical_not(bool x) { return !x; }

template <class T> Integer<T> bitwise_and(T x, T y) { return x & y; }
template <class T> Integer<T> bitwise_or(T x, T y) { return x | y; }
template <class T> Integer<T> bitwise_xor(T x, T y) { return x ^ y; }
// clang-format on

// --- Elementary functions ---------------------------------------------------------------------

// clang-format off
template <class T> Float<T> exp(T x) { return std::exp(x); }
template <class T> Float<T> log(T x) { return std::log(x); }
template <class T> Float<T> sin(T x) { return std::sin(x); }
template <class T> Float<T> cos(T x) { return std::cos(x); }
template <class T> Float<T> tanh(T x) { return std::tanh(x); }
template <class T> Float<T> pow(T x, T y) { return std::pow(x, y); }
template <class T> Integer<T> pow(T x, T n) { return fl::pow(x, n); }
template <class T> Real<T> erf(T x) { return std::erf(x); }
template <class T> Real<T> expm1(T x) { return std::expm1(x); }
template <class T> Complex<T> expm1(T x) { return fl::expm1(x); }
template <class T> Real<T> log1p(T x) { return std::log1p(x); }
template <class T> Complex<T> log1p(T x) { return fl::log1p(x); }
// clang-format on

}  // namespace composit::scalar
