// Bytes of a row of results, as what is computed behind a product reads and writes them: a panel of
// numbers at a time.
//
//   int32_t bytes[kPanel<int32_t>];
//   load_bytes(from, columns, bytes);
//   store_bytes<128>(numbers, -128.0f, 127.0f, columns, to);
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "flashlight/runtime/contraction.hpp"
#include "flashlight/runtime/numbers.hpp"
#include "flashlight/runtime/vectors.hpp"

namespace fl {

// numbers[i] = from[i].
template <class Byte>
FLASHLIGHT_INLINE void load_bytes(const Byte* from, int count, int32_t* numbers) {
  static_assert(sizeof(Byte) == 1);
  int i = 0;
#if defined(__AVX512F__)
  // g++ widens halves of a vector, and a vector that is read of two stores waits for them.
  typedef Byte Bytes __attribute__((vector_size(16)));
  constexpr int kLanes = 16;
  for (; i + kLanes <= count; i += kLanes) {
    Bytes bytes;
    std::memcpy(&bytes, from + i, sizeof bytes);
    typename detail::Vectors<int32_t>::Vector wide;
    if constexpr (std::is_signed_v<Byte>)
      asm("vpmovsxbd %1, %0" : "=v"(wide) : "v"(bytes));
    else
      asm("vpmovzxbd %1, %0" : "=v"(wide) : "v"(bytes));
    std::memcpy(numbers + i, &wide, sizeof wide);
  }
#endif
  for (; i < count; ++i) numbers[i] = from[i];
}

// to[i] = the low byte of numbers[i].
template <class Byte>
FLASHLIGHT_INLINE void store_bytes(const int32_t* numbers, int count, Byte* to) {
  static_assert(sizeof(Byte) == 1);
#if defined(__AVX512F__)
  typedef uint8_t Bytes __attribute__((vector_size(16)));
  constexpr int kLanes = 16;
  int i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Bytes bytes;
    asm("vpmovdb %1, %0" : "=v"(bytes) : "v"(detail::load(numbers + i)));
    std::memcpy(to + i, &bytes, sizeof bytes);
  }
  for (; i < count; ++i) to[i] = static_cast<Byte>(numbers[i]);
#else
  for (int i = 0; i < count; ++i) to[i] = static_cast<Byte>(numbers[i]);
#endif
}

// to[i] = the low byte of truncated<int32_t>(x) ^ kFlips, where x is numbers[i] or the bound that
// it is beyond.
template <int kFlips, class Byte>
FLASHLIGHT_INLINE void store_bytes(const float* numbers, float low, float high, int count,
                                   Byte* to) {
  int32_t whole[kPanel<int32_t>];
  int i = 0;
#if defined(__AVX512F__)
  // g++ takes comparisons and masks for what two instructions do. NaN stays, as their last operand.
  using Floats = detail::Vectors<float>;
  const Floats::Vector lows = Floats::all(low), highs = Floats::all(high);
  for (; i + Floats::kLanes <= count; i += Floats::kLanes) {
    Floats::Vector x = Floats::load(numbers + i);
    typename detail::Vectors<int32_t>::Vector cut;
    asm("vmaxps %1, %2, %0" : "=v"(x) : "v"(x), "v"(lows));
    asm("vminps %1, %2, %0" : "=v"(x) : "v"(x), "v"(highs));
    asm("vcvttps2dq %1, %0" : "=v"(cut) : "v"(x));
    cut ^= kFlips;
    std::memcpy(whole + i, &cut, sizeof cut);
  }
#endif
  for (; i < count; ++i) {
    const float x = numbers[i] < low ? low : numbers[i];
    whole[i] = truncated<int32_t>(x > high ? high : x) ^ kFlips;
  }
  store_bytes(whole, count, to);
}

}  // namespace fl
