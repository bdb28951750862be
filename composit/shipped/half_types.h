// 16-bit floats: storage only, arithmetic on them is done in float.
//
//   fl::float16(0.1f).bits == 0x2e66;   fl::rounded<fl::bfloat16>(0.1f) == 0.10009765625f;
//
// Conversion from float rounds to nearest, ties to even; what is too large becomes infinity; a NaN
// stays one.
#pragma once

#include <cstdint>
#include <cstring>

// A call that is left in a loop keeps it from vectors.
#define FLASHLIGHT_INLINE [[gnu::always_inline]] inline

// nvcc compiles these functions for the host and for the device.
#ifdef __CUDACC__
#define FLASHLIGHT_EVERYWHERE __host__ __device__
#else
#define FLASHLIGHT_EVERYWHERE
#endif

namespace fl {

namespace detail {
template <class To, class From>
FLASHLIGHT_INLINE FLASHLIGHT_EVERYWHERE To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}
}  // namespace detail

// IEEE 754 binary16: 5 bits of exponent, 10 of fraction.
struct float16 {
  uint16_t bits = 0;
  float16() = default;
  FLASHLIGHT_EVERYWHERE float16(float x) : bits(round(detail::bit_cast<uint32_t>(x))) {}
  FLASHLIGHT_EVERYWHERE static constexpr float16 of_bits(uint16_t bits) {
    float16 number;
    number.bits = bits;
    return number;
  }
  FLASHLIGHT_EVERYWHERE operator float() const {
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

  FLASHLIGHT_EVERYWHERE static uint16_t round(uint32_t x) {
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
  FLASHLIGHT_EVERYWHERE bfloat16(float x) : bits(round(detail::bit_cast<uint32_t>(x))) {}
  FLASHLIGHT_EVERYWHERE static constexpr bfloat16 of_bits(uint16_t bits) {
    bfloat16 number;
    number.bits = bits;
    return number;
  }
  FLASHLIGHT_EVERYWHERE operator float() const {
    return detail::bit_cast<float>(uint32_t{bits} << 16);
  }

 private:
  FLASHLIGHT_EVERYWHERE static uint16_t round(uint32_t x) {
    if ((x & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((x >> 16) | 0x40u);
    return static_cast<uint16_t>((x + 0x7fffu + ((x >> 16) & 1u)) >> 16);
  }
};

// As it would be read again after it was stored.
template <class T>
FLASHLIGHT_EVERYWHERE float rounded(float x) {
  return T(x);
}

namespace detail {
// The neighbours of 16-bit floats are their own.
template <class T>
FLASHLIGHT_EVERYWHERE T next_half(T x, T y) {
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
}  // namespace detail
FLASHLIGHT_EVERYWHERE inline float16 nextafter(float16 x, float16 y) {
  return detail::next_half(x, y);
}
FLASHLIGHT_EVERYWHERE inline bfloat16 nextafter(bfloat16 x, bfloat16 y) {
  return detail::next_half(x, y);
}

}  // namespace fl
