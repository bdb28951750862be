// Products of matrices whose elements are given by functions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

namespace fl {

namespace detail {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64, kTileRows = 12;
#elif defined(__AVX__)
constexpr int kVectorBytes = 32, kTileRows = 6;
#else
constexpr int kVectorBytes = 16, kTileRows = 4;
#endif

template <class T>
struct Tile {
  static constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));
  static constexpr int kRows = kTileRows, kColumns = 2 * kLanes;
  typedef T Vector __attribute__((vector_size(kVectorBytes)));

  // sums[i][j] = sum over k of left[k][i] * right[k][j].
  static void multiply(int terms, const T* left, const T* right, T (*sums)[kColumns]) {
    Vector total[kRows][2] = {};
    for (int k = 0; k < terms; ++k, left += kRows, right += kColumns) {
      Vector first, second;
      std::memcpy(&first, right, sizeof first);
      std::memcpy(&second, right + kLanes, sizeof second);
      for (int i = 0; i < kRows; ++i) {
        total[i][0] += first * left[i];
        total[i][1] += second * left[i];
      }
    }
    for (int i = 0; i < kRows; ++i) {
      std::memcpy(sums[i], &total[i][0], sizeof(Vector));
      std::memcpy(sums[i] + kLanes, &total[i][1], sizeof(Vector));
    }
  }
};

template <class T>
T* scratch(std::size_t count) {
  static thread_local std::vector<T> memory;
  if (memory.size() < count) memory.resize(count);
  return memory.data();
}

}  // namespace detail

// store(i, j, sum over k of left(i, k) * right(k, j)) for every row i and column j. Each element of
// a side is asked for once, and packed for the vector unit.
template <class T, class Left, class Right, class Store>
void product(int rows, int columns, int terms, Left left, Right right, Store store) {
  using Tile = detail::Tile<T>;
  constexpr int kRows = Tile::kRows, kColumns = Tile::kColumns;
  const int blocks = (rows + kRows - 1) / kRows;
  const auto panel = static_cast<std::size_t>(terms);
  T* const packed_left =
      detail::scratch<T>(panel * static_cast<std::size_t>(blocks * kRows + kColumns));
  T* const packed_right = packed_left + panel * static_cast<std::size_t>(blocks * kRows);
  for (int block = 0; block < blocks; ++block) {
    T* const to = packed_left + panel * static_cast<std::size_t>(block * kRows);
    for (int i = 0; i < kRows; ++i)
      for (int k = 0; k < terms; ++k)
        to[k * kRows + i] = block * kRows + i < rows ? left(block * kRows + i, k) : T(0);
  }
  for (int first = 0; first < columns; first += kColumns) {
    const int width = std::min(kColumns, columns - first);
    for (int k = 0; k < terms; ++k) {
      T* const to = packed_right + k * kColumns;
      for (int j = 0; j < width; ++j) to[j] = right(k, first + j);
      for (int j = width; j < kColumns; ++j) to[j] = T(0);
    }
    for (int block = 0; block < blocks; ++block) {
      T sums[kRows][kColumns];
      Tile::multiply(terms, packed_left + panel * static_cast<std::size_t>(block * kRows),
                     packed_right, sums);
      const int height = std::min(kRows, rows - block * kRows);
      for (int i = 0; i < height; ++i)
        for (int j = 0; j < width; ++j) store(block * kRows + i, first + j, sums[i][j]);
    }
  }
}

}  // namespace fl
