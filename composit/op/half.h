// The 16-bit floats: storage only, arithmetic on them is done in float.
//
//   Half h(0.1f);   static_cast<float>(h) == 0.0999755859375f;   h.bits == 0x2e66;
//
// Conversion from float rounds to nearest, ties to even; what is too large becomes infinity; a NaN
// stays one.
#pragma once

#include <bit>
#include <cstdint>

namespace composit {

// IEEE 754 binary16: 5 bits of exponent, 10 of fraction.
struct Half {
  uint16_t bits = 0;
  Half() = default;
  explicit Half(float x) : bits(round(std::bit_cast<uint32_t>(x))) {}
  explicit operator float() const {
    const uint32_t sign = uint32_t{bits & 0x8000u} << 16, magnitude = bits & 0x7fffu;
    uint32_t value;
    if (magnitude >= 0x7c00)  // infinity and NaN keep their fraction
      value = (magnitude << 13) | 0x7f800000;
    else if (magnitude < 0x0400)  // subnormal: a multiple of 2^-24
      value = std::bit_cast<uint32_t>(static_cast<float>(magnitude) * 0x1p-24f);
    else
      value = (magnitude << 13) + kBias;
    return std::bit_cast<float>(sign | value);
  }

 private:
  static constexpr uint32_t kBias = (127 - 15) << 23;  // between the two formats' exponents

  static uint16_t round(uint32_t x) {
    const uint32_t sign = (x >> 16) & 0x8000, magnitude = x & 0x7fffffff;
    uint32_t value;
    if (magnitude > 0x7f800000)
      value = 0x7e00;
    else if (magnitude >= 0x47800000)  // 2^16; what is less may round to it
      value = 0x7c00;
    else if (magnitude < 0x38800000)  // below 2^-14: the last place of 0.5f is 2^-24
      value = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) -
              std::bit_cast<uint32_t>(0.5f);
    else
      value = (magnitude - kBias + 0xfff + ((magnitude >> 13) & 1)) >> 13;
    return static_cast<uint16_t>(sign | value);
  }
};

// The upper half of a float.
struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float x) : bits(round(std::bit_cast<uint32_t>(x))) {}
  explicit operator float() const { return std::bit_cast<float>(uint32_t{bits} << 16); }

 private:
  static uint16_t round(uint32_t x) {
    if ((x & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>((x >> 16) | 0x40);
    return static_cast<uint16_t>((x + 0x7fff + ((x >> 16) & 1)) >> 16);
  }
};

}  // namespace composit
