// Numbers as the definitions of operations have them: 16-bit floats, integers that wrap, functions.
//
//   fl::remainder(-7, 3) == 2;   fl::max(x, NAN) is NaN;   fl::float16(0.1f).bits == 0x2e66
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <type_traits>

#include "composit/op/special_series.h"
#include "flashlight/runtime/functions.hpp"

namespace fl {

// ---- 16-bit floats ------------------------------------------------------------------------------

namespace detail {
inline uint32_t bits_of(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}
inline float float_of(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}
}  // namespace detail

// IEEE 754 binary16, rounded to nearest even.
struct float16 {
  uint16_t bits = 0;
  float16() = default;
  float16(float x) : bits(round(detail::bits_of(x))) {}
  operator float() const {
    const uint32_t sign = uint32_t{bits & 0x8000u} << 16, magnitude = bits & 0x7fffu;
    if (magnitude >= 0x7c00) return detail::float_of(sign | (magnitude << 13) | 0x7f800000u);
    if (magnitude < 0x0400)
      return detail::float_of(sign | detail::bits_of(static_cast<float>(magnitude) * 0x1p-24f));
    return detail::float_of(sign | ((magnitude << 13) + (112u << 23)));
  }

 private:
  static uint16_t round(uint32_t x) {
    const uint32_t sign = (x >> 16) & 0x8000u, magnitude = x & 0x7fffffffu;
    uint32_t value;
    if (magnitude > 0x7f800000u)
      value = 0x7e00;
    else if (magnitude >= 0x47800000u)
      value = 0x7c00;
    else if (magnitude < 0x38800000u)
      value = detail::bits_of(detail::float_of(magnitude) + 0.5f) - detail::bits_of(0.5f);
    else
      value = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    return static_cast<uint16_t>(sign | value);
  }
};

// The upper half of a float.
struct bfloat16 {
  uint16_t bits = 0;
  bfloat16() = default;
  bfloat16(float x) : bits(round(detail::bits_of(x))) {}
  operator float() const { return detail::float_of(uint32_t{bits} << 16); }

 private:
  static uint16_t round(uint32_t x) {
    if ((x & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((x >> 16) | 0x40u);
    return static_cast<uint16_t>((x + 0x7fffu + ((x >> 16) & 1u)) >> 16);
  }
};

namespace detail {
// What numbers of type T are computed in.
template <class T>
using Computed =
    std::conditional_t<std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>, float, T>;
}  // namespace detail

// As it would be read again after it was stored.
template <class T>
float rounded(float x) {
  return T(x);
}

// ---- integers -----------------------------------------------------------------------------------

// Toward zero; what does not fit, and NaN, becomes the least int32 or int64, as on x86, of which
// narrower types take the low bits.
template <class To>
To truncated(double x) {
  using Wide =
      std::conditional_t<(sizeof(To) < 4) || std::is_same_v<To, int32_t>, int32_t, int64_t>;
  constexpr Wide kLeast = std::numeric_limits<Wide>::min();
  constexpr double kLimit = -static_cast<double>(kLeast);
  if (std::is_same_v<To, uint64_t> && x >= 0x1p63)
    return static_cast<To>(truncated<int64_t>(x - 0x1p63) ^ std::numeric_limits<int64_t>::min());
  return static_cast<To>(x > -kLimit - 1 && x < kLimit ? static_cast<Wide>(x) : kLeast);
}

// Modulo 2^64, of which narrower types keep the low bits.
template <class T>
T negated(T x) {
  return static_cast<T>(uint64_t{0} - static_cast<uint64_t>(x));
}

template <class T>
T trunc_divide(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::trunc(x / y);
  } else {
    if (y == T(0)) throw std::domain_error("integer division by zero");
    if (std::is_signed_v<T> && y == static_cast<T>(-1)) return negated(x);
    return static_cast<T>(x / y);
  }
}
template <class T>
T fmod(T x, T y) {
  if constexpr (std::is_floating_point_v<T>)
    return std::fmod(x, y);
  else
    return std::is_signed_v<T> && y == static_cast<T>(-1)
               ? T(0)
               : static_cast<T>(x - trunc_divide(x, y) * y);
}
// Toward minus infinity.
template <class T>
T remainder(T x, T y) {
  const T rest = fl::fmod<T>(x, y);
  return rest != T(0) && (rest < T(0)) != (y < T(0)) ? static_cast<T>(rest + y) : rest;
}
template <class T>
T floor_divide(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    if (y == T(0)) return x / y;
    const T rest = std::fmod(x, y);
    T quotient = (x - rest) / y;
    if (rest != T(0) && (y < T(0)) != (rest < T(0))) quotient -= T(1);
    if (quotient == T(0)) return std::copysign(T(0), x / y);
    const T floor = std::floor(quotient);
    return quotient - floor > T(0.5) ? floor + T(1) : floor;
  } else {
    const T rest = fl::fmod<T>(x, y);
    const bool below = rest != T(0) && (rest < T(0)) != (y < T(0));
    return static_cast<T>(trunc_divide(x, y) - T(below));
  }
}

template <class T>
T bitwise_not(T x) {
  if constexpr (std::is_same_v<T, bool>)
    return !x;
  else
    return static_cast<T>(~x);
}
// By less than 0 or more than the width: everything is shifted out.
template <class T>
T shift_left(T x, T by) {
  const auto count = static_cast<uint64_t>(by);
  return count < 64 ? static_cast<T>(static_cast<uint64_t>(x) << count) : T(0);
}
template <class T>
T shift_right(T x, T by) {
  using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
  const auto count = static_cast<uint64_t>(by);
  if (count < 64) return static_cast<T>(static_cast<Wide>(x) >> count);
  return x < T(0) ? static_cast<T>(-1) : T(0);
}

// ---- numbers ------------------------------------------------------------------------------------

template <class T>
struct is_complex : std::false_type {};
template <class T>
struct is_complex<std::complex<T>> : std::true_type {};

template <class T>
bool isnan(T x) {
  return x != x;
}
// NaN where either is.
template <class T>
T min(T x, T y) {
  return ((y < x) | (y != y)) ? y : x;
}
template <class T>
T max(T x, T y) {
  return ((x < y) | (y != y)) ? y : x;
}
template <class T>
T sign(T x) {
  return static_cast<T>((T(0) < x) - (x < T(0)));
}
template <class T>
auto abs(T x) {
  if constexpr (std::is_unsigned_v<T> || std::is_same_v<T, bool>)
    return x;
  else if constexpr (std::is_integral_v<T>)
    return x < T(0) ? negated(x) : x;
  else
    return std::abs(x);
}
// Of bools, whether the number is not zero.
template <class T>
T add(T x, T y) {
  return static_cast<T>(x | y);
}
template <class T>
T sub(T x, T y) {
  return static_cast<T>(x ^ y);
}
template <class T>
T mul(T x, T y) {
  return static_cast<T>(x & y);
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
template <class T>
std::complex<T> complex(T x, T y) {
  return {x, y};
}
template <class T>
T rsqrt(T x) {
  return T(1) / std::sqrt(x);
}
template <class T>
FLASHLIGHT_INLINE T pow(T x, T y) {
  if constexpr (std::is_same_v<T, float>) {
    return detail::pow(x, y);
  } else if constexpr (!std::is_integral_v<T>) {
    return std::pow(x, y);
  } else {
    if (y < T(0))
      return x == T(1) || (x == static_cast<T>(-1) && y % 2 == 0)
                 ? T(1)
                 : (x == static_cast<T>(-1) ? x : T(0));
    uint64_t result = 1, base = static_cast<uint64_t>(x);
    for (auto left = static_cast<uint64_t>(y); left != 0; left >>= 1, base *= base)
      if ((left & 1) != 0) result *= base;
    return static_cast<T>(result);
  }
}
template <class T>
T round(T x) {
  if constexpr (std::is_integral_v<T>)
    return x;
  else
    return std::nearbyint(x);
}

#define FLASHLIGHT_STANDARD(name)        \
  template <class T>                     \
  T name(T x) {                          \
    if constexpr (std::is_integral_v<T>) \
      return x;                          \
    else                                 \
      return std::name(x);               \
  }
FLASHLIGHT_STANDARD(floor)
FLASHLIGHT_STANDARD(ceil)
FLASHLIGHT_STANDARD(trunc)
#undef FLASHLIGHT_STANDARD

#define FLASHLIGHT_STANDARD(name) \
  template <class T>              \
  T name(T x) {                   \
    return std::name(x);          \
  }
FLASHLIGHT_STANDARD(log10)
FLASHLIGHT_STANDARD(sqrt)
FLASHLIGHT_STANDARD(tan)
FLASHLIGHT_STANDARD(asin)
FLASHLIGHT_STANDARD(acos)
FLASHLIGHT_STANDARD(atan)
FLASHLIGHT_STANDARD(sinh)
FLASHLIGHT_STANDARD(cosh)
FLASHLIGHT_STANDARD(asinh)
FLASHLIGHT_STANDARD(acosh)
FLASHLIGHT_STANDARD(atanh)
FLASHLIGHT_STANDARD(erfc)
FLASHLIGHT_STANDARD(lgamma)
#undef FLASHLIGHT_STANDARD

#define FLASHLIGHT_VECTORIZED(name)     \
  template <class T>                    \
  FLASHLIGHT_INLINE T name(T x) {       \
    if constexpr (is_complex<T>::value) \
      return std::name(x);              \
    else                                \
      return detail::name(x);           \
  }
FLASHLIGHT_VECTORIZED(exp)
FLASHLIGHT_VECTORIZED(log)
FLASHLIGHT_VECTORIZED(tanh)
FLASHLIGHT_VECTORIZED(sin)
FLASHLIGHT_VECTORIZED(cos)
#undef FLASHLIGHT_VECTORIZED

template <class T>
FLASHLIGHT_INLINE T erf(T x) {
  return detail::erf(x);
}

// Of real numbers, in double.
#define FLASHLIGHT_SPECIAL(name)                                \
  template <class T, class... More>                             \
  T name(T x, More... more) {                                   \
    return static_cast<T>(special_functions::name(x, more...)); \
  }
FLASHLIGHT_SPECIAL(erfinv)
FLASHLIGHT_SPECIAL(digamma)
FLASHLIGHT_SPECIAL(polygamma)
FLASHLIGHT_SPECIAL(zeta)
#undef FLASHLIGHT_SPECIAL

template <class T>
T exp2(T x) {
  if constexpr (is_complex<T>::value)
    return std::exp(x * static_cast<typename T::value_type>(0.693147180559945309417));
  else
    return std::exp2(x);
}
template <class T>
T log2(T x) {
  if constexpr (is_complex<T>::value)
    return std::log(x) / static_cast<typename T::value_type>(0.693147180559945309417);
  else
    return std::log2(x);
}
template <class T>
FLASHLIGHT_INLINE T expm1(T x) {
  if constexpr (is_complex<T>::value) {  // cos(b) = 1 - 2 sin(b / 2)^2
    using R = typename T::value_type;
    const R sine = std::sin(x.imag() / R(2)), growth = std::expm1(x.real());
    return {growth * std::cos(x.imag()) - R(2) * sine * sine, (growth + R(1)) * std::sin(x.imag())};
  } else {
    return detail::expm1(x);
  }
}
template <class T>
FLASHLIGHT_INLINE T log1p(T x) {
  if constexpr (is_complex<T>::value) {  // |1 + x|^2 = 1 + a (2 + a) + b^2
    using R = typename T::value_type;
    const R a = x.real(), b = x.imag();
    const bool small = std::abs(a) < R(0.5) && std::abs(b) < R(0.5);
    return {small ? std::log1p(a * (R(2) + a) + b * b) / R(2) : std::log(std::hypot(R(1) + a, b)),
            std::atan2(b, R(1) + a)};
  } else {
    return detail::log1p(x);
  }
}
template <class T>
T atan2(T y, T x) {
  return std::atan2(y, x);
}
template <class T>
T hypot(T x, T y) {
  return std::hypot(x, y);
}
template <class T>
T copysign(T x, T y) {
  return std::copysign(x, y);
}
template <class T>
T nextafter(T x, T y) {
  return std::nextafter(x, y);
}
// The neighbours of 16-bit floats are their own.
template <class T>
T next_half(T x, T y) {
  const float from = x, to = y;
  if (!(from < to || to < from)) return from == to ? y : T(from + to);
  constexpr unsigned kLeast = 1, kSign = 0x8000;
  T next;
  if (from == 0)
    next.bits = static_cast<uint16_t>(to < 0 ? kSign | kLeast : kLeast);
  else
    next.bits = static_cast<uint16_t>((from < to) == (from > 0) ? x.bits + 1 : x.bits - 1);
  return next;
}
template <>
inline float16 nextafter(float16 x, float16 y) {
  return next_half(x, y);
}
template <>
inline bfloat16 nextafter(bfloat16 x, bfloat16 y) {
  return next_half(x, y);
}

}  // namespace fl
