// Functions of numbers that only generated code has: of real numbers, those that compilers can
// vectorize; of bools, operators that C++ does not have.
//
//   for (int i = 0; i < n; ++i) y[i] = fl::exp(x[i]);
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "composit/shipped/scalar_functions.h"
#include "flashlight/runtime/functions.hpp"

namespace fl {

namespace detail {
// The type that numbers of type T are computed in.
template <class T>
using Computed =
    std::conditional_t<std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>, float, T>;
}  // namespace detail

// Arithmetic in T. A result of bools is true if the number is not zero.
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

#define FLASHLIGHT_VECTORIZED(name)      \
  template <class T>                     \
  FLASHLIGHT_INLINE Float<T> name(T x) { \
    if constexpr (is_complex<T>::value)  \
      return std::name(x);               \
    else                                 \
      return detail::name(x);            \
  }
FLASHLIGHT_VECTORIZED(exp)
FLASHLIGHT_VECTORIZED(log)
FLASHLIGHT_VECTORIZED(tanh)
FLASHLIGHT_VECTORIZED(sin)
FLASHLIGHT_VECTORIZED(cos)
#undef FLASHLIGHT_VECTORIZED

template <class T>
FLASHLIGHT_INLINE Real<T> expm1(T x) {
  return detail::expm1(x);
}
template <class T>
FLASHLIGHT_INLINE Real<T> log1p(T x) {
  return detail::log1p(x);
}
template <class T>
FLASHLIGHT_INLINE Real<T> erf(T x) {
  return detail::erf(x);
}
template <class T>
FLASHLIGHT_INLINE Float<T> pow(T x, T y) {
  if constexpr (std::is_same_v<T, float>)
    return detail::pow(x, y);
  else
    return std::pow(x, y);
}

// The same number as `truncated` of it as a double. What fits is told by its bits: g++ makes
// branches of comparisons with the bounds that a program may have clamped it to, and loops with
// branches are no vector code.
template <class To>
FLASHLIGHT_INLINE To truncated(float x) {
  if constexpr (sizeof(To) < 4 || std::is_same_v<To, int32_t>) {
    const bool fits = (detail::bit_cast<uint32_t>(x) & 0x7fffffffu) < 0x4f000000u;  // |x| < 2^31
    return static_cast<To>(fits ? static_cast<int32_t>(x) : std::numeric_limits<int32_t>::min());
  } else {
    return truncated<To>(static_cast<double>(x));
  }
}

// A number that is data of a call, which passes the bits of a double.
template <class T>
T real_of(int64_t bits) {
  double value;
  std::memcpy(&value, &bits, sizeof value);
  return static_cast<T>(value);
}

}  // namespace fl
