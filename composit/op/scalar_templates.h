// The functions of scalar expressions as templates over the compute type, one per name of
// composit/op/scalar_function.h. A function that a type does not have does not exist for it.
//
//   scalar::remainder(-7.0, 3.0) == 2.0;   scalar::min(std::nan(""), 1.0) is NaN
#pragma once

#include <cmath>
#include <complex>
#include <concepts>
#include <cstdint>
#include <limits>
#include <numbers>

#include "composit/op/compute_type.h"
#include "composit/op/special_functions.h"

namespace composit::scalar {

template <class T>
concept Integer = std::is_integral_v<T>;  // bool, too
template <class T>
concept Real = std::is_floating_point_v<T>;
template <class T>
concept Complex = kIsComplex<T>;
template <class T>
concept Float = Real<T> || Complex<T>;
template <class T>
concept Ordered = Integer<T> || Real<T>;

// --- Arithmetic -------------------------------------------------------------------------------

// Modulo 2^64, and for bool: whether the result is not zero.
template <Integer T>
constexpr uint64_t bits(T x) {
  return static_cast<uint64_t>(x);
}

template <class T>
T neg(T x) {
  if constexpr (Integer<T>)
    return static_cast<T>(-bits(x));
  else
    return -x;
}
template <class T>
T add(T x, T y) {
  if constexpr (Integer<T>)
    return static_cast<T>(bits(x) + bits(y));
  else
    return x + y;
}
template <class T>
T sub(T x, T y) {
  if constexpr (Integer<T>)
    return static_cast<T>(bits(x) - bits(y));
  else
    return x - y;
}
template <class T>
T mul(T x, T y) {
  if constexpr (Integer<T>)
    return static_cast<T>(bits(x) * bits(y));
  else if constexpr (Complex<T>)  // torch's: without the special cases of C's annex G
    return {x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()};
  else
    return x * y;
}
template <Float T>
T div(T x, T y) {
  return x / y;
}

template <Ordered T>
T abs(T x) {
  if constexpr (Integer<T>)
    return x < T(0) ? neg(x) : x;
  else
    return std::abs(x);
}
template <Complex T>
auto abs(T x) {
  return std::abs(x);
}
template <Ordered T>
T sign(T x) {
  return static_cast<T>((T(0) < x) - (x < T(0)));
}

// --- Division with rounding -------------------------------------------------------------------

template <Integer T>
T trunc_divide(T x, T y) {
  if (y == T(0)) return T(0);
  if (std::is_signed_v<T> && y == static_cast<T>(-1)) return neg(x);  // the least number has no -x
  return static_cast<T>(x / y);
}
template <Integer T>
T fmod(T x, T y) {
  return y == T(0) ? T(0) : sub(x, mul(trunc_divide(x, y), y));
}
template <Integer T>
T floor_divide(T x, T y) {
  const bool inexact_and_negative = fmod(x, y) != T(0) && (x < T(0)) != (y < T(0));
  return static_cast<T>(trunc_divide(x, y) - inexact_and_negative);
}
template <Integer T>
T remainder(T x, T y) {
  const T rest = fmod(x, y);
  return rest != T(0) && (rest < T(0)) != (y < T(0)) ? add(rest, y) : rest;
}

template <Real T>
T trunc_divide(T x, T y) {
  return std::trunc(x / y);
}
template <Real T>
T fmod(T x, T y) {
  return std::fmod(x, y);
}
template <Real T>
T remainder(T x, T y) {
  const T rest = std::fmod(x, y);
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}
// Python's: the quotient of what fmod leaves is an integer up to rounding.
template <Real T>
T floor_divide(T x, T y) {
  if (y == 0) return x / y;
  const T rest = std::fmod(x, y);
  T quotient = (x - rest) / y;
  if (rest != 0 && (y < 0) != (rest < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(T(0), x / y);
  const T floor = std::floor(quotient);
  return quotient - floor > T(0.5) ? floor + 1 : floor;
}

// --- Powers and roots -------------------------------------------------------------------------

// x^-n is an integer for x = 1 and x = -1 only; the others, 0 included, give 0.
template <Integer T>
T pow(T x, T n) {
  if (n < T(0))
    return x == T(1) || (x == neg(T(1)) && !(n & T(1))) ? T(1) : x == neg(T(1)) ? x : T(0);
  uint64_t result = 1, base = bits(x);
  for (uint64_t left = bits(n); left != 0; left >>= 1, base *= base)
    if (left & 1) result *= base;
  return static_cast<T>(result);
}
template <Float T>
T pow(T x, T y) {
  return std::pow(x, y);
}
template <Float T>
T rsqrt(T x) {
  return T(1) / std::sqrt(x);
}
template <Real T>
T hypot(T x, T y) {
  return std::hypot(x, y);
}

// --- Comparison and logic ---------------------------------------------------------------------

// clang-format off
template <Ordered T> bool lt(T x, T y) { return x < y; }
template <Ordered T> bool le(T x, T y) { return x <= y; }
template <Ordered T> bool gt(T x, T y) { return x > y; }
template <Ordered T> bool ge(T x, T y) { return x >= y; }
template <class T> bool eq(T x, T y) { return x == y; }
template <class T> bool ne(T x, T y) { return x != y; }
inline bool logical_and(bool x, bool y) { return x & y; }
inline bool logical_or(bool x, bool y) { return x | y; }
inline bool logical_not(bool x) { return !x; }

template <Integer T> bool isnan(T) { return false; }
template <Real T> bool isnan(T x) { return x != x; }
template <Complex T> bool isnan(T x) { return x != x; }

// The first operand where they are equal, as 0 and -0; NaN where either is.
template <Ordered T> T min(T x, T y) { return (y < x) | isnan(y) ? y : x; }
template <Ordered T> T max(T x, T y) { return (x < y) | isnan(y) ? y : x; }
// clang-format on

// --- Bits -------------------------------------------------------------------------------------

// clang-format off
template <Integer T> T bitwise_and(T x, T y) { return x & y; }
template <Integer T> T bitwise_or(T x, T y) { return x | y; }
template <Integer T> T bitwise_xor(T x, T y) { return x ^ y; }
template <Integer T> T bitwise_not(T x) { return x ^ static_cast<T>(-1); }
// clang-format on
// By less than 0 or more than the width: everything is shifted out.
template <Integer T>
T shift_left(T x, T by) {
  return bits(by) < 64 ? static_cast<T>(bits(x) << bits(by)) : T(0);
}
template <Integer T>
T shift_right(T x, T by) {
  if (bits(by) < 64) return static_cast<T>(x >> by);
  return x < T(0) ? static_cast<T>(-1) : T(0);
}

// --- Rounding; integers are round -------------------------------------------------------------

// clang-format off
template <Integer T> T floor(T x) { return x; }
template <Integer T> T ceil(T x) { return x; }
template <Integer T> T round(T x) { return x; }
template <Integer T> T trunc(T x) { return x; }
template <Real T> T floor(T x) { return std::floor(x); }
template <Real T> T ceil(T x) { return std::ceil(x); }
template <Real T> T round(T x) { return std::nearbyint(x); }  // half to even
template <Real T> T trunc(T x) { return std::trunc(x); }
template <Real T> T nextafter(T x, T y) { return std::nextafter(x, y); }
template <Real T> T copysign(T x, T y) { return std::copysign(x, y); }
// clang-format on

// --- Elementary functions ---------------------------------------------------------------------

#define COMPOSIT_STANDARD(name) \
  template <Float T>            \
  T name(T x) {                 \
    return std::name(x);        \
  }
COMPOSIT_STANDARD(exp)
COMPOSIT_STANDARD(log)
COMPOSIT_STANDARD(log10)
COMPOSIT_STANDARD(sqrt)
COMPOSIT_STANDARD(sin)
COMPOSIT_STANDARD(cos)
COMPOSIT_STANDARD(tan)
COMPOSIT_STANDARD(asin)
COMPOSIT_STANDARD(acos)
COMPOSIT_STANDARD(atan)
COMPOSIT_STANDARD(sinh)
COMPOSIT_STANDARD(cosh)
COMPOSIT_STANDARD(tanh)
COMPOSIT_STANDARD(asinh)
COMPOSIT_STANDARD(acosh)
COMPOSIT_STANDARD(atanh)
#undef COMPOSIT_STANDARD

template <Float T>
T exp2(T x) {
  if constexpr (Real<T>)
    return std::exp2(x);
  else
    return std::exp(x * std::numbers::ln2_v<typename T::value_type>);
}
template <Float T>
T log2(T x) {
  if constexpr (Real<T>)
    return std::log2(x);
  else
    return std::log(x) / std::numbers::ln2_v<typename T::value_type>;
}
template <Float T>
T expm1(T x) {
  if constexpr (Real<T>) {
    return std::expm1(x);
  } else {  // cos(b) = 1 - 2 sin(b / 2)^2
    const auto sine = std::sin(x.imag() / 2), growth = std::expm1(x.real());
    return {growth * std::cos(x.imag()) - 2 * sine * sine, (growth + 1) * std::sin(x.imag())};
  }
}
template <Float T>
T log1p(T x) {
  if constexpr (Real<T>) {
    return std::log1p(x);
  } else {  // |1 + x|^2 = 1 + a (2 + a) + b^2
    const auto a = x.real(), b = x.imag();
    const bool small = std::abs(a) < 0.5 && std::abs(b) < 0.5;
    return {small ? std::log1p(a * (2 + a) + b * b) / 2 : std::log(std::hypot(1 + a, b)),
            std::atan2(b, 1 + a)};
  }
}

// --- Of real numbers only ---------------------------------------------------------------------

// clang-format off
template <Real T> T atan2(T y, T x) { return std::atan2(y, x); }
template <Real T> T erf(T x) { return std::erf(x); }
template <Real T> T erfc(T x) { return std::erfc(x); }
template <Real T> T lgamma(T x) { return std::lgamma(x); }
template <Real T> T erfinv(T x) { return static_cast<T>(composit::erfinv(x)); }
template <Real T> T digamma(T x) { return static_cast<T>(composit::digamma(x)); }
template <Real T> T polygamma(T n, T x) { return static_cast<T>(composit::polygamma(n, x)); }
template <Real T> T zeta(T s, T q) { return static_cast<T>(composit::zeta(s, q)); }
// clang-format on

// --- Complex numbers --------------------------------------------------------------------------

// clang-format off
template <Real T> std::complex<T> complex(T real, T imaginary) { return {real, imaginary}; }
template <Ordered T> T real(T x) { return x; }
template <Ordered T> T imag(T) { return T(0); }
template <Ordered T> T conj(T x) { return x; }
template <Complex T> auto real(T x) { return x.real(); }
template <Complex T> auto imag(T x) { return x.imag(); }
template <Complex T> T conj(T x) { return std::conj(x); }
// clang-format on

}  // namespace composit::scalar
