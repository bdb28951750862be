// Products of matrices whose elements are given by functions.
//
//   fl::product<float>(
//       128, 768, 512, [&](int i, int k) -> auto& { return x[i][k]; },
//       [&](int k, int j) -> auto& { return weight[j][k]; },
//       [&](int i, int j, float sum) { y[i][j] = sum + bias[j]; });
//
// A side that gives references is read where it is, and its elements have to lie so that the offset
// of (i, k) is one that i gives plus one that k gives. Of other sides each element is asked for
// once and kept.
//
// One side is read by rows, the other one is packed in panels of two vectors' width. A panel and as
// many rows as the registers can hold sums of make a tile: K. Goto and R. van de Geijn, "Anatomy of
// High-Performance Matrix Multiplication" (2008).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <vector>

#include "flashlight/cpp/runtime/sums.hpp"
#include "flashlight/cpp/runtime/vectors.hpp"

namespace fl {
namespace detail {

constexpr int kTileRows = kVectorBytes == 64 ? 12 : kVectorBytes == 32 ? 6 : 4;
template <class T>
constexpr int kTileColumns = 2 * Vectors<T>::kLanes;
// Packed panels stay in the second level of the cache.
constexpr std::size_t kPackedBytes = std::size_t{1} << 19;

// One row of a panel for every term.
template <class T>
using PanelRow = T[kTileColumns<T>];

// left(i, k) = left[i * step + at[k]], right(k, j) = panel[k][j].
template <class T>
struct Operands {
  int terms;
  const T* left;
  std::ptrdiff_t step;
  const std::ptrdiff_t* at;
  const PanelRow<T>* panel;
};

template <class T, int kRows, int kVectors>
void multiply(const Operands<T>& of, PanelRow<T>* sums) {
  using V = Vectors<T>;
  typename V::Vector total[kRows][kVectors] = {};
  for (int k = 0; k < of.terms; ++k) {
    const T* const left = of.left + of.at[k];
    typename V::Vector right[kVectors];
    for (int j = 0; j < kVectors; ++j) right[j] = V::load(of.panel[k] + j * V::kLanes);
    for (int i = 0; i < kRows; ++i)
      for (int j = 0; j < kVectors; ++j) total[i][j] += right[j] * left[i * of.step];
  }
  for (int i = 0; i < kRows; ++i) std::memcpy(sums[i], total[i], sizeof total[i]);
}

// The same for any number of rows from 1 to kRows.
template <class T, int kVectors, int kRows = kTileRows>
void multiply_rows(int rows, const Operands<T>& of, PanelRow<T>* sums) {
  if (rows == kRows) return multiply<T, kRows, kVectors>(of, sums);
  if constexpr (kRows > 1) multiply_rows<T, kVectors, kRows - 1>(rows, of, sums);
}

template <class T>
T* scratch(std::size_t count) {
  static thread_local std::vector<T> memory;
  if (memory.size() < count) memory.resize(count);
  return memory.data();
}

// A side with its arguments exchanged.
template <class Side>
auto transposed(const Side& side) {
  return [&side](int i, int j) -> decltype(auto) { return side(j, i); };
}

template <class Side>
constexpr bool kInPlace = std::is_reference_v<std::invoke_result_t<Side, int, int>>;

// Whether side(0, begin) ... side(0, end - 1) lie side by side.
template <class Side>
bool is_dense([[maybe_unused]] const Side& side, int begin, int end) {
  if constexpr (kInPlace<Side>) {
    for (int j = begin + 1; j < end; ++j)
      if (&side(0, j) - &side(0, begin) != j - begin) return false;
    return true;
  } else {
    return false;
  }
}

// to[k][j] = right(k, first + j), zeros behind `width`. The loop inside is over elements that lie
// side by side, as far as is known.
template <class T, bool kTransposed, class Right>
void pack(const Right& right, int terms, int first, int width, PanelRow<T>* to) {
  constexpr int kBlock = 64 / static_cast<int>(sizeof(T));
  for (int k = 0; k < terms; ++k) std::fill(to[k] + width, to[k] + kTileColumns<T>, T(0));
  if (is_dense(transposed(right), 0, terms) || (!kInPlace<Right> && kTransposed)) {
    for (int begin = 0; begin < terms; begin += kBlock)
      for (int j = 0; j < width; ++j)
        for (int k = begin; k < std::min(begin + kBlock, terms); ++k)
          to[k][j] = right(k, first + j);
  } else if (width < kTileColumns<T>) {
    for (int k = 0; k < terms; ++k)
      for (int j = 0; j < width; ++j) to[k][j] = right(k, first + j);
  } else if (is_dense(right, first, first + width)) {
    if constexpr (kInPlace<Right>)
      for (int k = 0; k < terms; ++k) std::memcpy(to[k], &right(k, first), sizeof to[k]);
  } else {
    for (int k = 0; k < terms; ++k) {
      // Unrolled, reads under a condition of `right` would get wrong masks from g++ 12.
#pragma GCC unroll 1
      for (int j = 0; j < kTileColumns<T>; ++j) to[k][j] = right(k, first + j);
    }
  }
}

// How many rows from the i-th on make one tile: their places are equally far apart.
template <class Left>
int tile_height(const Left& left, int i, int rows) {
  int height = 1;
  while (height < kTileRows && i + height < rows &&
         &left(i + height, 0) - &left(i, 0) == height * (&left(i + 1, 0) - &left(i, 0)))
    ++height;
  return height;
}

// Tiles below each other, whose transposed results are stored together, in longer rows.
constexpr int kStripRows = 8 * kTileRows;

// The product of `left`, which is read by rows, and panels of the other side, from the row `begin`
// to the row `end`; kTransposed: store takes the column first.
template <class T, bool kTransposed, class Left, class Store>
void strip(const Left& left, int begin, int end, Operands<T> of, int first, int width,
           Store& store) {
  T sums[kTileRows][kTileColumns<T>], turned[kTileColumns<T>][kStripRows];
  for (int i = begin, height; i < end; i += height) {
    height = tile_height(left, i, end);
    of.left = &left(i, 0);
    of.step = height > 1 ? &left(i + 1, 0) - of.left : 0;
    if (width > Vectors<T>::kLanes)
      multiply_rows<T, 2>(height, of, sums);
    else
      multiply_rows<T, 1>(height, of, sums);
    for (int j = 0; kTransposed && j < width; ++j)
      for (int row = 0; row < height; ++row) turned[j][i - begin + row] = sums[row][j];
    for (int row = 0; !kTransposed && row < height; ++row)
      for (int j = 0; j < width; ++j) store(i + row, first + j, sums[row][j]);
  }
  for (int j = 0; kTransposed && j < width; ++j)
    for (int i = begin; i < end; ++i) store(first + j, i, turned[j][i - begin]);
}

// Left is read by rows, right is packed.
template <class T, bool kTransposed, class Left, class Right, class Store>
void tiles(int rows, int columns, int terms, const Left& left, const Right& right, Store& store) {
  constexpr int kColumns = kTileColumns<T>;
  const auto length = static_cast<std::size_t>(terms);
  const int group = std::clamp(static_cast<int>(kPackedBytes / sizeof(PanelRow<T>) / length), 1,
                               (columns + kColumns - 1) / kColumns);
  auto* const packed = reinterpret_cast<PanelRow<T>*>(
      scratch<T>(length * static_cast<std::size_t>(group * kColumns)));
  std::ptrdiff_t* const at = scratch<std::ptrdiff_t>(length);
  for (int k = 0; k < terms; ++k) at[k] = &left(0, k) - &left(0, 0);
  for (int begin = 0; begin < columns; begin += group * kColumns) {
    const int end = std::min(begin + group * kColumns, columns);
    const auto for_each_panel = [&](auto f) {
      PanelRow<T>* panel = packed;
      for (int first = begin; first < end; first += kColumns, panel += length)
        f(first, std::min(kColumns, end - first), panel);
    };
    for_each_panel([&](int first, int width, PanelRow<T>* panel) {
      pack<T, kTransposed>(right, terms, first, width, panel);
    });
    for (int row = 0; row < rows; row += kStripRows)
      for_each_panel([&](int first, int width, const PanelRow<T>* panel) {
        const Operands<T> of = {terms, nullptr, 0, at, panel};
        strip<T, kTransposed>(left, row, std::min(row + kStripRows, rows), of, first, width, store);
      });
  }
}

}  // namespace detail

// store(i, j, sum over k of left(i, k) * right(k, j)) for every row i and column j.
template <class T, class Left, class Right, class Store>
void product(int rows, int columns, int terms, Left left, Right right, Store store) {
  constexpr bool kLeft = detail::kInPlace<Left>, kRight = detail::kInPlace<Right>;
  constexpr int kFew = 4;
  if (rows <= 0 || columns <= 0) return;
  const auto right_by_columns = detail::transposed(right);
  if (terms <= 0 || (std::min(rows, columns) <= kFew && detail::is_dense(left, 0, terms) &&
                     detail::is_dense(right_by_columns, 0, terms))) {
    for (int j = 0; j < columns; ++j)
      for (int i = 0; i < rows; ++i)
        store(i, j, fl::sum<T>(terms, [&](int k) { return left(i, k) * right(k, j); }));
    return;
  }
  if constexpr (kRight) {
    if (!kLeft || (columns > rows && !detail::is_dense(right, 0, columns)))
      return detail::tiles<T, true>(columns, rows, terms, right_by_columns,
                                    detail::transposed(left), store);
  }
  if constexpr (kLeft) {
    detail::tiles<T, false>(rows, columns, terms, left, right, store);
  } else if constexpr (!kRight) {
    static thread_local std::vector<T> rows_of_left;
    rows_of_left.resize(static_cast<std::size_t>(rows) * static_cast<std::size_t>(terms));
    const auto in_place = [row = rows_of_left.data(), terms](int i, int k) -> T& {
      return row[static_cast<std::ptrdiff_t>(i) * terms + k];
    };
    for (int i = 0; i < rows; ++i)
      for (int k = 0; k < terms; ++k) in_place(i, k) = left(i, k);
    detail::tiles<T, false>(rows, columns, terms, in_place, right, store);
  }
}

}  // namespace fl
