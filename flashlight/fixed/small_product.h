// Products of small matrices, whose sizes the compiler knows: accumulators are registers.
//
//   small_product<float, 8, 16, 32>(a, b, c);      // c[8][32] = a[8][16] b[16][32], row-major
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "flashlight/runtime/vectors.hpp"

namespace flashlight::fixed::detail {

// The vector registers of the instruction set.
#if defined(__AVX512F__) || defined(__aarch64__)
inline constexpr int64_t kRegisters = 32;
#else
inline constexpr int64_t kRegisters = 16;
#endif

// kRows x (kVectors vectors of kLanes columns) of a product of kTerms terms. kColumns: of b and c.
template <class T, int64_t kRows, int64_t kTerms, int64_t kColumns, int kLanes, int64_t kVectors>
inline __attribute__((always_inline)) void product_block(const T* a, const T* b, T* c) {
  using Lanes = fl::detail::Vectors<T, kLanes* static_cast<int>(sizeof(T))>;
  typename Lanes::Vector sums[kRows][kVectors] = {};
#pragma GCC unroll 8
  for (int64_t k = 0; k < kTerms; ++k) {
    typename Lanes::Vector row[kVectors];
#pragma GCC unroll 32
    for (int64_t j = 0; j < kVectors; ++j) row[j] = Lanes::load(b + k * kColumns + j * kLanes);
#pragma GCC unroll 32
    for (int64_t i = 0; i < kRows; ++i)
#pragma GCC unroll 32
      for (int64_t j = 0; j < kVectors; ++j) sums[i][j] += a[i * kTerms + k] * row[j];
  }
#pragma GCC unroll 32
  for (int64_t i = 0; i < kRows; ++i)
#pragma GCC unroll 32
    for (int64_t j = 0; j < kVectors; ++j)
      std::memcpy(c + i * kColumns + j * kLanes, &sums[i][j], sizeof sums[i][j]);
}

// All rows of these columns, in blocks of nearly equal height.
template <class T, int64_t kRows, int64_t kTerms, int64_t kColumns, int kLanes, int64_t kVectors>
inline __attribute__((always_inline)) void product_columns(const T* a, const T* b, T* c) {
  constexpr int64_t kMost = (kRegisters - kVectors - 1) / kVectors;
  constexpr int64_t kBlocks = (kRows + kMost - 1) / kMost,
                    kHeight = (kRows + kBlocks - 1) / kBlocks;
  constexpr int64_t kWhole = kRows / kHeight, kRest = kRows % kHeight;
  for (int64_t block = 0; block < kWhole; ++block)
    product_block<T, kHeight, kTerms, kColumns, kLanes, kVectors>(a + block * kHeight * kTerms, b,
                                                                  c + block * kHeight * kColumns);
  if constexpr (kRest > 0)
    product_block<T, kRest, kTerms, kColumns, kLanes, kVectors>(a + kWhole * kHeight * kTerms, b,
                                                                c + kWhole * kHeight * kColumns);
}

// Columns from kFirst on: as many whole vectors as there are, then narrower ones.
template <class T, int64_t kRows, int64_t kTerms, int64_t kColumns, int kLanes, int64_t kFirst = 0>
inline __attribute__((always_inline)) void product_from(const T* a, const T* b, T* c) {
  constexpr int64_t kLeft = kColumns - kFirst, kVectors = kLeft / kLanes;
  constexpr int64_t kWide = kRegisters == 32 ? 4 : 2;  // vectors of a block
  if constexpr (kLeft > 0 && kRows > 0) {
    if constexpr (kVectors == 0) {
      product_from<T, kRows, kTerms, kColumns, kLanes / 2, kFirst>(a, b, c);
    } else {
      constexpr int64_t kNow = kVectors < kWide ? kVectors : kWide;
      product_columns<T, kRows, kTerms, kColumns, kLanes, kNow>(a, b + kFirst, c + kFirst);
      product_from<T, kRows, kTerms, kColumns, kLanes, kFirst + kNow * kLanes>(a, b, c);
    }
  }
}

// Square matrices that are one vector each: term k is a's column k beside itself times b's row k
// below itself.
template <class T, int kSide, int... kAt>
inline void product_in_vectors(const T* a, const T* b, T* c, std::integer_sequence<int, kAt...>) {
  using Lanes = fl::detail::Vectors<T, kSide * kSide* static_cast<int>(sizeof(T))>;
  const typename Lanes::Vector left = Lanes::load(a), right = Lanes::load(b);
  typename Lanes::Vector sum = {};
  const auto add = [&]<int kTerm>(std::integral_constant<int, kTerm>) {
#if defined(__clang__)
    sum += __builtin_shufflevector(left, left, (kAt / kSide * kSide + kTerm)...) *
           __builtin_shufflevector(right, right, (kAt % kSide + kTerm * kSide)...);
#else
    using Index = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
    using Order = typename fl::detail::Vectors<Index, sizeof left>::Vector;
    sum += __builtin_shuffle(left, Order{(kAt / kSide * kSide + kTerm)...}) *
           __builtin_shuffle(right, Order{(kAt % kSide + kTerm * kSide)...});
#endif
  };
  [&]<int... kTerms>(std::integer_sequence<int, kTerms...>) {
    (add(std::integral_constant<int, kTerms>()), ...);
  }
  (std::make_integer_sequence<int, kSide>());
  std::memcpy(c, &sum, sizeof sum);
}

#if __has_builtin(__builtin_shufflevector)
// Square matrices that are two vectors each: term k of two rows' half is a's column k beside itself
// times b's row k repeated.
template <class T, int kSide, int... kAt>
inline void product_in_halves(const T* a, const T* b, T* c, std::integer_sequence<int, kAt...>) {
  using Row = fl::detail::Vectors<T, kSide* static_cast<int>(sizeof(T))>;
  using Lanes = fl::detail::Vectors<T, static_cast<int>(sizeof...(kAt) * sizeof(T))>;
  const auto half = [&]<int... kTerms>(int64_t first, std::integer_sequence<int, kTerms...>) {
    const typename Lanes::Vector left = Lanes::load(a + first);
    typename Lanes::Vector sum = {};
    const auto add = [&]<int kTerm>(std::integral_constant<int, kTerm>) {
      const typename Row::Vector row = Row::load(b + kTerm * kSide);
      sum += __builtin_shufflevector(left, left, (kAt / kSide * kSide + kTerm)...) *
             __builtin_shufflevector(row, row, (kAt % kSide)...);
    };
    (add(std::integral_constant<int, kTerms>()), ...);
    std::memcpy(c + first, &sum, sizeof sum);
  };
  half(0, std::make_integer_sequence<int, kSide>());
  half(sizeof...(kAt), std::make_integer_sequence<int, kSide>());
}
#endif

// c = a b of matrices [kRows][kTerms] and [kTerms][kColumns], row-major, that do not overlap.
template <class T, int64_t kRows, int64_t kTerms, int64_t kColumns>
inline void small_product(const T* a, const T* b, T* c) {
  constexpr int kLanes = fl::detail::Vectors<T>::kLanes;
  constexpr bool kSquare = kRows == kTerms && kTerms == kColumns;
  if constexpr (std::is_floating_point_v<T> && kSquare && (kRows == 2 || kRows == 4) &&
                kRows * kRows <= kLanes)
    product_in_vectors<T, kRows>(a, b, c, std::make_integer_sequence<int, kRows * kRows>());
#if __has_builtin(__builtin_shufflevector)
  else if constexpr (std::is_floating_point_v<T> && kSquare && kRows * kRows == 2 * kLanes)
    product_in_halves<T, kRows>(a, b, c, std::make_integer_sequence<int, kLanes>());
#endif
  else if constexpr (std::is_floating_point_v<T>)
    product_from<T, kRows, kTerms, kColumns, kLanes>(a, b, c);
  else
    for (int64_t i = 0; i < kRows; ++i)
      for (int64_t j = 0; j < kColumns; ++j) {
        T sum = 0;
        for (int64_t k = 0; k < kTerms; ++k)
          sum = static_cast<T>(sum + a[i * kTerms + k] * b[k * kColumns + j]);
        c[i * kColumns + j] = sum;
      }
}

}  // namespace flashlight::fixed::detail
