// Types of numbers that C++ lacks, and conversions between types.
//
//   fl::float16(0.1f).bits == 0x2e66;   fl::truncated<int8_t>(300.7) == 44;
#pragma once

#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "composit/shipped/half_types.h"

namespace fl {

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
