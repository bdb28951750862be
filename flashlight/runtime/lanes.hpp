// Functions of vectors, and the transposition of matrices by them.
//
//   exp2_of_negative<float>(x);                          // each lane
//   transpose(x, 768, 32, 64, panel, 32);                // [32][64] of rows that are 768 apart
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "flashlight/runtime/flashlight.hpp"

// Before a loop: no round of it reads or writes what another one writes.
#if defined(__clang__)
#define FLASHLIGHT_INDEPENDENT_ROUNDS _Pragma("clang loop vectorize(assume_safety)")
#else
#define FLASHLIGHT_INDEPENDENT_ROUNDS _Pragma("GCC ivdep")
#endif

namespace fl::detail {

template <class T>
using Vector = typename Vectors<T>::Vector;
template <class T>
using Signed = std::conditional_t<sizeof(T) == 2, int16_t,
                                  std::conditional_t<sizeof(T) == 4, int32_t, int64_t>>;

template <class T>
FLASHLIGHT_INLINE Vector<T> load(const T* from) {
  return Vectors<T>::load(from);
}
template <class T>
FLASHLIGHT_INLINE void store(Vector<T> x, T* to) {
  std::memcpy(to, &x, sizeof x);
}

// The elements at `from` as a vector of T. 16-bit floats are widened without rounding.
template <class T>
FLASHLIGHT_INLINE Vector<T> load_as(const T* from) {
  return load(from);
}
template <class Half>
FLASHLIGHT_INLINE Vector<uint32_t> load_bits(const Half* from) {
  typedef uint16_t Bits __attribute__((vector_size(kVectorBytes / 2)));
  Bits bits;
  std::memcpy(&bits, from, sizeof bits);
  return __builtin_convertvector(bits, Vector<uint32_t>);
}
template <class T>
FLASHLIGHT_INLINE Vector<T> load_as(const bfloat16* from) {
  return bit_cast<Vector<T>>(load_bits(from) << 16);
}
template <class T>
FLASHLIGHT_INLINE Vector<T> load_as(const float16* from) {
#if defined(__AVX512F__) || (defined(__F16C__) && defined(__AVX__))
  typedef uint16_t Bits __attribute__((vector_size(kVectorBytes / 2)));
  Bits bits;
  std::memcpy(&bits, from, sizeof bits);
  Vector<T> x;
  asm("vcvtph2ps %1, %0" : "=v"(x) : "v"(bits));
  return x;
#else
  const Vector<uint32_t> bits = load_bits(from), magnitude = bits & 0x7fffu,
                         sign = (bits & 0x8000u) << 16;
  // The difference of the exponents' biases; subnormal numbers are normal behind it.
  const Vector<T> scaled = bit_cast<Vector<T>>(magnitude << 13) * T(0x1p112);
  const auto special = bit_cast<Vector<uint32_t>>(magnitude >= 0x7c00u);  // infinity and NaN
  return bit_cast<Vector<T>>(bit_cast<Vector<uint32_t>>(scaled) | (special & 0x7f800000u) | sign);
#endif
}

// to[i] = from[i * step], as T.
template <class T, class From>
FLASHLIGHT_INLINE void widen(const From* from, int64_t step, int64_t count, T* to) {
  constexpr int64_t kLanes = Vectors<T>::kLanes;
  int64_t i = 0;
  if (step == 1)
    for (; i + kLanes <= count; i += kLanes) store<T>(load_as<T>(from + i), to + i);
  for (; i < count; ++i) to[i] = static_cast<T>(from[i * step]);
}

// From one row of so many elements to the next, so that rows of a tile are in different sets of the
// cache.
template <class T>
constexpr int64_t row_pitch(int64_t elements) {
  constexpr int64_t kLanes = Vectors<T>::kLanes;
  const int64_t pitch = (elements + kLanes - 1) / kLanes * kLanes;
  return pitch % 256 == 0 ? pitch + kLanes : pitch;
}

// Coefficients of 2^x on [-1/2, 1/2]: relative errors of 2e-9, and 3e-18 (Remez).
template <class T>
struct PowerSeries;
template <>
struct PowerSeries<float> {
  static constexpr int kDegree = 6;
  static constexpr float kTerms[] = {1,
                                     0.693147207f,
                                     0.240226509f,
                                     0.0555032723f,
                                     0.00961805668f,
                                     0.00134004282f,
                                     0.000154614447f};
};
template <>
struct PowerSeries<double> {
  static constexpr int kDegree = 11;
  static constexpr double kTerms[] = {1,
                                      0.69314718055994531,
                                      0.2402265069591016,
                                      0.055504108664821627,
                                      0.0096181291075872567,
                                      0.0013333558146406471,
                                      0.00015403530463724354,
                                      1.5252733841556773e-5,
                                      1.3215432535912376e-6,
                                      1.0178057087733941e-7,
                                      7.074194297288521e-9,
                                      4.4558179083360645e-10};
};

// 2^x for x that are not positive: 0 where that is no normal number, NaN of NaN.
template <class T>
FLASHLIGHT_INLINE Vector<T> exp2_of_negative(Vector<T> x) {
  using Lanes = Vectors<Signed<T>>;
  using L = Layout<T>;
  constexpr T kLowest = sizeof(T) == 4 ? T(-125) : T(-1021);
  // n + kRounder has the whole number next to n + the exponent's bias in its last places.
  constexpr T kRounder = L::kRounder + static_cast<T>(L::kBias);
  const Vector<T> zero = {}, least = zero - (-kLowest);
  const auto tiny = x < least;
  const Vector<T> bounded = tiny ? least : x, rounded = bounded + kRounder;
  const Vector<T> rest = bounded - (rounded - kRounder);
  Vector<T> power = rest * PowerSeries<T>::kTerms[PowerSeries<T>::kDegree];
#pragma GCC unroll 16
  for (int i = PowerSeries<T>::kDegree - 1; i > 0; --i)
    power = (power + PowerSeries<T>::kTerms[i]) * rest;
  const auto exponent = bit_cast<typename Lanes::Vector>(rounded)
                        << static_cast<Signed<T>>(L::kFraction);
  const auto scale = bit_cast<Vector<T>>(exponent);
  return tiny ? zero : power * scale + scale;
}

// The first (kHigh: the second) halves of a and b, lane by lane in turns.
template <class T, bool kHigh, std::size_t... kIndices>
FLASHLIGHT_INLINE Vector<T> interleave(Vector<T> a, Vector<T> b, std::index_sequence<kIndices...>) {
  constexpr int kLanes = Vectors<T>::kLanes, kFirst = kHigh ? kLanes / 2 : 0;
#if defined(__clang__)
  return __builtin_shufflevector(
      a, b, (static_cast<int>(kIndices) / 2 + kFirst + (kIndices % 2 == 1 ? kLanes : 0))...);
#else
  const typename Vectors<Signed<T>>::Vector order = {
      (static_cast<int>(kIndices) / 2 + kFirst + (kIndices % 2 == 1 ? kLanes : 0))...};
  return __builtin_shuffle(a, b, order);
#endif
}

// A square as wide as a vector: every round turns one bit of the lane's number into one of the
// row's.
template <class T>
FLASHLIGHT_INLINE void transpose_square(const T* from, int64_t pitch, T* to, int64_t to_pitch) {
  constexpr int kLanes = Vectors<T>::kLanes;
  using Lanes = std::make_index_sequence<kLanes>;
  Vector<T> rows[kLanes], turned[kLanes];
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) rows[i] = load(from + i * pitch);
#pragma GCC unroll 4
  for (int width = 1; width < kLanes; width *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < kLanes / 2; ++i) {
      turned[2 * i] = interleave<T, false>(rows[i], rows[i + kLanes / 2], Lanes());
      turned[2 * i + 1] = interleave<T, true>(rows[i], rows[i + kLanes / 2], Lanes());
    }
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) rows[i] = turned[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) store<T>(rows[i], to + i * to_pitch);
}

// to[j][i] = from[i][j]. Squares at the ends overlap others.
template <class T>
void transpose(const T* from, int64_t pitch, int64_t rows, int64_t columns, T* to,
               int64_t to_pitch) {
  constexpr int64_t kLanes = Vectors<T>::kLanes;
  if (rows >= kLanes && columns >= kLanes) {
    for (int64_t row = 0; row < rows; row += kLanes)
      for (int64_t column = 0; column < columns; column += kLanes) {
        const int64_t i = std::min(row, rows - kLanes), j = std::min(column, columns - kLanes);
        transpose_square(from + i * pitch + j, pitch, to + j * to_pitch + i, to_pitch);
      }
    return;
  }
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) to[j * to_pitch + i] = from[i * pitch + j];
}

// Memory that the thread keeps for `kPurpose`, aligned to vectors.
template <class T, int kPurpose>
T* aligned_scratch(int64_t count) {
  constexpr std::size_t kLanes = static_cast<std::size_t>(Vectors<T>::kLanes);
  T* const memory = scratch<T, kPurpose>(static_cast<std::size_t>(count) + kLanes);
  const std::size_t over = reinterpret_cast<std::uintptr_t>(memory) % kVectorBytes;
  return over == 0 ? memory : memory + (kVectorBytes - over) / sizeof(T);
}

}  // namespace fl::detail
