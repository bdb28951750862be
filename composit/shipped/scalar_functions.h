// Functions of one or two numbers as operations define them: integers wrap, min and max give NaN
// where an operand is NaN.
//
//   fl::remainder(-7, 3) == 2;   fl::max(x, NAN) is NaN;   fl::truncated<int8_t>(300.7) == 44
//
// exp, log, expm1, log1p, tanh, sin, cos, erf and pow are missing here for the types for which
// generated code has versions that compilers can vectorize, and composit the standard library's.
#pragma once

#include <cmath>
#include <stdexcept>

#include "composit/shipped/number_types.h"
#include "composit/shipped/special_series.h"

namespace fl {

// ---- division with rounding ---------------------------------------------------------------------

// Modulo 2^64, of which narrower types keep the low bits.
template <class T>
Integer<T> negated(T x) {
  return static_cast<T>(uint64_t{0} - static_cast<uint64_t>(x));
}

template <class T>
Integer<T> trunc_divide(T x, T y) {
  if (y == T(0)) throw std::domain_error("integer division by zero");
  if (std::is_signed_v<T> && y == static_cast<T>(-1)) return negated(x);  // the least has no -x
  return static_cast<T>(x / y);
}
template <class T>
Integer<T> fmod(T x, T y) {
  return std::is_signed_v<T> && y == static_cast<T>(-1)
             ? T(0)
             : static_cast<T>(x - trunc_divide(x, y) * y);
}
template <class T>
Integer<T> floor_divide(T x, T y) {
  const T rest = fl::fmod<T>(x, y);
  const bool below = rest != T(0) && (rest < T(0)) != (y < T(0));
  return static_cast<T>(trunc_divide(x, y) - T(below));
}

template <class T>
Real<T> trunc_divide(T x, T y) {
  return std::trunc(x / y);
}
template <class T>
Real<T> fmod(T x, T y) {
  return std::fmod(x, y);
}
// Python's: the quotient of what fmod leaves is an integer up to rounding.
template <class T>
Real<T> floor_divide(T x, T y) {
  if (y == T(0)) return x / y;
  const T rest = std::fmod(x, y);
  T quotient = (x - rest) / y;
  if (rest != T(0) && (y < T(0)) != (rest < T(0))) quotient -= T(1);
  if (quotient == T(0)) return std::copysign(T(0), x / y);
  const T floor = std::floor(quotient);
  return quotient - floor > T(0.5) ? floor + T(1) : floor;
}

// With the sign of `y`.
template <class T>
Ordered<T> remainder(T x, T y) {
  const T rest = fl::fmod<T>(x, y);
  return rest != T(0) && (rest < T(0)) != (y < T(0)) ? static_cast<T>(rest + y) : rest;
}

// ---- bits ---------------------------------------------------------------------------------------

template <class T>
Integer<T> bitwise_not(T x) {
  if constexpr (std::is_same_v<T, bool>)
    return !x;
  else
    return static_cast<T>(~x);
}
// By less than 0 or more than the width: everything is shifted out.
template <class T>
Integer<T> shift_left(T x, T by) {
  const auto count = static_cast<uint64_t>(by);
  return count < 64 ? static_cast<T>(static_cast<uint64_t>(x) << count) : T(0);
}
template <class T>
Integer<T> shift_right(T x, T by) {
  using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
  const auto count = static_cast<uint64_t>(by);
  if (count < 64) return static_cast<T>(static_cast<Wide>(x) >> count);
  return x < T(0) ? static_cast<T>(-1) : T(0);
}

// ---- order and signs ----------------------------------------------------------------------------

template <class T>
bool isnan(T x) {
  return x != x;
}
// The first operand where they are equal, as 0 and -0; NaN where either is.
template <class T>
Ordered<T> min(T x, T y) {
  return ((y < x) | (y != y)) ? y : x;
}
template <class T>
Ordered<T> max(T x, T y) {
  return ((x < y) | (y != y)) ? y : x;
}
template <class T>
Ordered<T> sign(T x) {
  return static_cast<T>((T(0) < x) - (x < T(0)));
}
template <class T>
Integer<T> abs(T x) {
  if constexpr (std::is_unsigned_v<T>)
    return x;
  else
    return x < T(0) ? negated(x) : x;
}
template <class T>
Real<T> abs(T x) {
  return std::abs(x);
}
template <class T>
typename Complex<T>::value_type abs(T x) {
  return std::abs(x);
}
template <class T>
Real<T> copysign(T x, T y) {
  return std::copysign(x, y);
}

// ---- rounding; integers are round ---------------------------------------------------------------

#define FLASHLIGHT_ROUNDING(name, rounded) \
  template <class T>                       \
  Ordered<T> name(T x) {                   \
    if constexpr (std::is_integral_v<T>)   \
      return x;                            \
    else                                   \
      return std::rounded(x);              \
  }
FLASHLIGHT_ROUNDING(floor, floor)
FLASHLIGHT_ROUNDING(ceil, ceil)
FLASHLIGHT_ROUNDING(trunc, trunc)
FLASHLIGHT_ROUNDING(round, nearbyint)  // half to even
#undef FLASHLIGHT_ROUNDING

template <class T>
Real<T> nextafter(T x, T y) {
  return std::nextafter(x, y);
}

// ---- powers and elementary functions ------------------------------------------------------------

// x^-n is an integer for x = 1 and x = -1 only; the others, 0 included, give 0.
template <class T>
Integer<T> pow(T x, T n) {
  if (n < T(0))
    return x == T(1) || (x == static_cast<T>(-1) && n % 2 == 0)
               ? T(1)
               : (x == static_cast<T>(-1) ? x : T(0));
  uint64_t result = 1, base = static_cast<uint64_t>(x);
  for (auto left = static_cast<uint64_t>(n); left != 0; left >>= 1, base *= base)
    if ((left & 1) != 0) result *= base;
  return static_cast<T>(result);
}
template <class T>
Float<T> rsqrt(T x) {
  return T(1) / std::sqrt(x);
}
template <class T>
Real<T> hypot(T x, T y) {
  return std::hypot(x, y);
}
template <class T>
Real<T> atan2(T y, T x) {
  return std::atan2(y, x);
}

#define FLASHLIGHT_STANDARD(Kind, name) \
  template <class T>                    \
  Kind<T> name(T x) {                   \
    return std::name(x);                \
  }
FLASHLIGHT_STANDARD(Float, log10)
FLASHLIGHT_STANDARD(Float, sqrt)
FLASHLIGHT_STANDARD(Float, tan)
FLASHLIGHT_STANDARD(Float, asin)
FLASHLIGHT_STANDARD(Float, acos)
FLASHLIGHT_STANDARD(Float, atan)
FLASHLIGHT_STANDARD(Float, sinh)
FLASHLIGHT_STANDARD(Float, cosh)
FLASHLIGHT_STANDARD(Float, asinh)
FLASHLIGHT_STANDARD(Float, acosh)
FLASHLIGHT_STANDARD(Float, atanh)
FLASHLIGHT_STANDARD(Real, exp2)
FLASHLIGHT_STANDARD(Real, log2)
FLASHLIGHT_STANDARD(Real, erfc)
FLASHLIGHT_STANDARD(Real, lgamma)
#undef FLASHLIGHT_STANDARD

template <class T>
Complex<T> exp2(T x) {
  return std::exp(x * static_cast<typename T::value_type>(0.693147180559945309417));
}
template <class T>
Complex<T> log2(T x) {
  return std::log(x) / static_cast<typename T::value_type>(0.693147180559945309417);
}
template <class T>
Complex<T> expm1(T x) {  // cos(b) = 1 - 2 sin(b / 2)^2
  using R = typename T::value_type;
  const R sine = std::sin(x.imag() / R(2)), growth = std::expm1(x.real());
  return {growth * std::cos(x.imag()) - R(2) * sine * sine, (growth + R(1)) * std::sin(x.imag())};
}
template <class T>
Complex<T> log1p(T x) {  // |1 + x|^2 = 1 + a (2 + a) + b^2
  using R = typename T::value_type;
  const R a = x.real(), b = x.imag();
  const bool small = std::abs(a) < R(0.5) && std::abs(b) < R(0.5);
  return {small ? std::log1p(a * (R(2) + a) + b * b) / R(2) : std::log(std::hypot(R(1) + a, b)),
          std::atan2(b, R(1) + a)};
}

// ---- special functions, computed in double ------------------------------------------------------

template <class T>
Real<T> erfinv(T x) {
  return static_cast<T>(special_functions::erfinv(x));
}
template <class T>
Real<T> digamma(T x) {
  return static_cast<T>(special_functions::digamma(x));
}
template <class T>
Real<T> polygamma(T n, T x) {
  return static_cast<T>(special_functions::polygamma(n, x));
}
template <class T>
Real<T> zeta(T s, T q) {
  return static_cast<T>(special_functions::zeta(s, q));
}

// ---- complex numbers ----------------------------------------------------------------------------

template <class T>
std::complex<Real<T>> complex(T x, T y) {
  return {x, y};
}
template <class T>
T conj(T x) {
  if constexpr (is_complex<T>::value)
    return std::conj(x);
  else
    return x;
}
template <class T>
auto real(T x) {
  if constexpr (is_complex<T>::value)
    return x.real();
  else
    return x;
}
template <class T>
auto imag(T x) {
  if constexpr (is_complex<T>::value)
    return x.imag();
  else
    return T(0);
}

}  // namespace fl
