// Types of numbers that C++ lacks, and conversions between types.
//
//   fl::float16(0.1f).bits == 0x2e66;   fl::truncated<int8_t>(300.7) == 44;
#pragma once

#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

// A call that is left in a loop keeps it from vectors.
#define FLASHLIGHT_INLINE [[gnu::always_inline]] inline

namespace fl {

namespace detail {
template <class To, class From>
FLASHLIGHT_INLINE To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}
}  // namespace detail

// ---- 16-bit floats: storage only, arithmetic on them is done in float ---------------------------

// Conversion from float rounds to nearest, ties to even; what is too large becomes infinity; a NaN
// stays one.

// IEEE 754 binary16: 5 bits of exponent, 10 of fraction.
struct float16 {
  uint16_t bits = 0;
  float16() = default;
  float16(float x) : bits(round(detail::bit_cast<uint32_t>(x))) {}
  operator float() const {
    const uint32_t sign = uint32_t{bits & 0x8000u} << 16, magnitude = bits & 0x7fffu;
    if (magnitude >= 0x7c00)  // infinity and NaN keep their fraction
      return detail::bit_cast<float>(sign | (magnitude << 13) | 0x7f800000u);
    if (magnitude < 0x0400)  // subnormal: a multiple of 2^-24
      return detail::bit_cast<float>(
          sign | detail::bit_cast<uint32_t>(static_cast<float>(magnitude) * 0x1p-24f));
    return detail::bit_cast<float>(sign | ((magnitude << 13) + kBias));
  }

 private:
  static constexpr uint32_t kBias = (127 - 15) << 23;  // between the two formats' exponents

  static uint16_t round(uint32_t x) {
    const uint32_t sign = (x >> 16) & 0x8000u, magnitude = x & 0x7fffffffu;
    uint32_t value;
    if (magnitude > 0x7f800000u)
      value = 0x7e00;
    else if (magnitude >= 0x47800000u)  // 2^16; what is less may round to it
      value = 0x7c00;
    else if (magnitude < 0x38800000u)  // below 2^-14: the last place of 0.5f is 2^-24
      value = detail::bit_cast<uint32_t>(detail::bit_cast<float>(magnitude) + 0.5f) -
              detail::bit_cast<uint32_t>(0.5f);
    else
      value = (magnitude - kBias + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    return static_cast<uint16_t>(sign | value);
  }
};

// The upper half of a float.
struct bfloat16 {
  uint16_t bits = 0;
  bfloat16() = default;
  bfloat16(float x) : bits(round(detail::bit_cast<uint32_t>(x))) {}
  operator float() const { return detail::bit_cast<float>(uint32_t{bits} << 16); }

 private:
  static uint16_t round(uint32_t x) {
    if ((x & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((x >> 16) | 0x40u);
    return static_cast<uint16_t>((x + 0x7fffu + ((x >> 16) & 1u)) >> 16);
  }
};

// ---- kinds of types -----------------------------------------------------------------------------

template <class T>
struct is_complex : std::false_type {};
template <class T>
struct is_complex<std::complex<T>> : std::true_type {};

// T where it is of the kind. A function that gives one does not exist for other types.
template <class T>
using Integer = std::enable_if_t<std::is_integral_v<T>, T>;  // bool, too
template <class T>
using Real = std::enable_if_t<std::is_floating_point_v<T>, T>;
template <class T>
using Complex = std::enable_if_t<is_complex<T>::value, T>;
template <class T>
using Ordered = std::enable_if_t<std::is_arithmetic_v<T>, T>;  // integers and real numbers
template <class T>
using Float = std::enable_if_t<std::is_floating_point_v<T> || is_complex<T>::value, T>;

// The tolerance for results of the same computation in another order, relative to the largest
// result.
template <class T>
constexpr double kTolerance = 0;
template <>
inline constexpr double kTolerance<float16> = 1e-2;
template <>
inline constexpr double kTolerance<bfloat16> = 5e-2;
template <>
inline constexpr double kTolerance<float> = 1e-4;
template <>
inline constexpr double kTolerance<double> = 1e-10;
template <class T>
inline constexpr double kTolerance<std::complex<T>> = kTolerance<T>;

// ---- conversions --------------------------------------------------------------------------------

// Toward zero; what does not fit, and NaN, becomes the least int32 or int64, as on x86, of which
// narrower types take the low bits. torch's results are these.
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

}  // namespace fl
