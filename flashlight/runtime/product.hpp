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

#include "flashlight/runtime/sums.hpp"
#include "flashlight/runtime/vectors.hpp"

namespace fl {

struct Range {
  int begin, end;
};
// A limit by row: of `size` columns or terms, the ones that a row has.
template <class F>
struct Within {
  int size;
  F range;  // of the row's number: Range
};
template <class F>
Within<F> within(int size, F range) {
  return {size, range};
}

namespace detail {

constexpr int kTileRows = kVectorBytes == 64 ? 12 : kVectorBytes == 32 ? 6 : 4;
template <class T>
constexpr int kTileColumns = 2 * Vectors<T>::kLanes;
// Packed panels stay in the second level of the cache.
constexpr std::size_t kPackedBytes = std::size_t{1} << 19;
// A longer product is the sum of several.
constexpr int kMostTerms = 1024;
// So few do not repay packing the other side, if it can be read where it is.
constexpr int kFewRows = 96;

// One row of a panel for every term.
template <class T>
using PanelRow = T[kTileColumns<T>];

// left(i, k) = left[i * step + at[k]], right(k, j) = panel[k * pitch + j].
template <class T>
struct Operands {
  int terms;
  const T* left;
  std::ptrdiff_t step;
  const std::ptrdiff_t* at;
  const T* panel;
  std::ptrdiff_t pitch;
};

template <class T, int kRows, int kVectors>
void multiply(const Operands<T>& of, PanelRow<T>* sums) {
  using V = Vectors<T>;
  typename V::Vector total[kRows][kVectors];
  for (auto& row : total)
    for (auto& one : row) one = typename V::Vector{};
  const T* panel = of.panel;
  for (int k = 0; k < of.terms; ++k, panel += of.pitch) {
    const T* const left = of.left + of.at[k];
    typename V::Vector right[kVectors];
    for (int j = 0; j < kVectors; ++j) right[j] = V::load(panel + j * V::kLanes);
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

// Memory that the thread keeps for `purpose`.
template <class T, int kPurpose>
T* scratch(std::size_t count) {
  static thread_local std::vector<T> memory;
  if (memory.size() < count) memory.resize(count);
  return memory.data();
}

template <class Side>
auto transposed(const Side& side) {
  return [&side](int i, int j) -> decltype(auto) { return side(j, i); };
}

template <class Side>
constexpr bool kInPlace = std::is_reference_v<std::invoke_result_t<Side, int, int>>;

// True if side(0, begin) ... side(0, end - 1) are neighbours in memory.
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

// to[k][j] = right(terms.begin + k, columns.begin + j), zeros behind the last. The loop inside is
// over elements that lie side by side, as far as is known; it counts what they are asked for with,
// since a sum of int might wrap around, for all that compilers know.
template <class T, bool kTransposed, class Right>
void pack(const Right& right, Range terms, Range columns, PanelRow<T>* to) {
  constexpr int kBlock = 64 / static_cast<int>(sizeof(T));
  const int width = columns.end - columns.begin;
  to -= terms.begin;
  for (int k = terms.begin; k < terms.end; ++k)
    std::fill(to[k] + width, to[k] + kTileColumns<T>, T(0));
  if (is_dense(transposed(right), terms.begin, terms.end) || (!kInPlace<Right> && kTransposed)) {
    for (int begin = terms.begin; begin < terms.end; begin += kBlock)
      for (int j = 0; j < width; ++j)
        for (int k = begin; k < std::min(begin + kBlock, terms.end); ++k)
          to[k][j] = right(k, columns.begin + j);
  } else if (width == kTileColumns<T> && is_dense(right, columns.begin, columns.end)) {
    if constexpr (kInPlace<Right>)
      for (int k = terms.begin; k < terms.end; ++k)
        std::memcpy(to[k], &right(k, columns.begin), sizeof to[k]);
  } else {
    for (int k = terms.begin; k < terms.end; ++k) {
      T* row = to[k];
      // Unrolled, reads under a condition of `right` would get wrong masks from g++ 12.
#pragma GCC unroll 1
      for (int j = columns.begin; j < columns.end; ++j) *row++ = right(k, j);
    }
  }
}

// The distance of right(k, first) and right(k + 1, first), if it is the same for all k of `terms`
// and the elements between `first` and `last` are neighbours; else 0.
template <class Right>
std::ptrdiff_t pitch_of([[maybe_unused]] const Right& right, Range terms, int first, int last) {
  if constexpr (kInPlace<Right>) {
    if (terms.end - terms.begin < 2 || !is_dense(right, first, last)) return 0;
    const auto* begin = &right(terms.begin, first);
    const std::ptrdiff_t pitch = &right(terms.begin + 1, first) - begin;
    for (int k = terms.begin + 2; k < terms.end; ++k)
      if (&right(k, first) - begin != (k - terms.begin) * pitch) return 0;
    return pitch;
  } else {
    return 0;
  }
}

// The size of a side: a number, or that of fl::within.
inline int size_of(int size) { return size; }
template <class F>
int size_of(const Within<F>& limit) {
  return limit.size;
}
// The part of `all` that `rows` have.
template <class Limit>
Range range_of(const Limit& limit, Range rows, Range all) {
  if constexpr (std::is_same_v<Limit, int>) {
    return all;
  } else {
    Range some = limit.range(rows.begin);
    for (int i = rows.begin + 1; i < rows.end; ++i) {
      const Range one = limit.range(i);
      some = {std::min(some.begin, one.begin), std::max(some.end, one.end)};
    }
    return {std::max(some.begin, all.begin), std::min(some.end, all.end)};
  }
}

// Left is read by rows, right is packed; kTransposed: store takes the column first.
template <class T, bool kTransposed, class Columns, class Terms, class Left, class Right,
          class Store>
class Tiles {
 public:
  Tiles(int rows, const Columns& columns, const Terms& terms, const Left& left, const Right& right,
        Store& store)
      : rows_(rows), columns_(columns), terms_(terms), left_(left), right_(right), store_(store) {}

  void run() {
    const int columns = size_of(columns_), terms = size_of(terms_);
    const int parts = (terms + kMostTerms - 1) / kMostTerms, length = (terms + parts - 1) / parts;
    const auto panel_bytes = sizeof(PanelRow<T>) * static_cast<std::size_t>(length);
    const int all = (columns + kColumns - 1) / kColumns;
    panels_ = std::clamp(static_cast<int>(kPackedBytes / panel_bytes), 1, all);
    keeps_left_ = panels_ < all;
    reserve(length, parts > 1);
    for (int panel = 0; panel < all; panel += panels_) {
      first_ = panel * kColumns;
      last_ = std::min(first_ + panels_ * kColumns, columns);
      for (int k = 0; k < terms; k += length) take_part({k, std::min(k + length, terms)});
    }
  }

 private:
  static constexpr int kColumns = kTileColumns<T>;
  // Tiles below each other, whose transposed results are stored together, in longer rows.
  static constexpr int kStripRows = 8 * kTileRows;
  // Tiles are lower where rows have different terms or columns.
  static constexpr bool kLimited = !std::is_same_v<Terms, int> || !std::is_same_v<Columns, int>;
  static constexpr int kHeight = kLimited ? (2 * kTileRows + 2) / 3 : kTileRows;

  void reserve(int length, bool in_parts) {
    const auto terms = static_cast<std::size_t>(length), rows = static_cast<std::size_t>(rows_);
    const auto columns = static_cast<std::size_t>(panels_ * kColumns);
    packed_ = reinterpret_cast<PanelRow<T>*>(scratch<T, 0>(terms * columns));
    at_ = scratch<std::ptrdiff_t, 0>(terms);
    if (in_parts) partial_ = reinterpret_cast<PanelRow<T>*>(scratch<T, 1>(rows * columns));
    if (kInPlace<Left>) return;
    step_ = keeps_left_ ? size_of(terms_) : length;
    kept_ = scratch<T, 2>(keeps_left_ ? rows * static_cast<std::size_t>(step_)
                                      : static_cast<std::size_t>(kStripRows * length));
  }

  // Adds what the terms of `part` contribute to the columns from first_ to last_.
  void take_part(Range part) {
    part_ = part;
    for (int k = part.begin; k < part.end; ++k)
      if constexpr (kInPlace<Left>)
        at_[k - part.begin] = &left_(0, k) - &left_(0, 0);
      else
        at_[k - part.begin] = keeps_left_ ? k : k - part.begin;
    pack_panels();
    for (int row = 0; row < rows_; row += kStripRows) {
      const int end = std::min(row + kStripRows, rows_);
      from_ = keeps_left_ ? kept_ : kept_ - static_cast<std::ptrdiff_t>(row) * step_;
      plan(row, end);
      if (first_ == 0 || !keeps_left_)
        for (int tile = 0; tile < count_; ++tile) keep(tiles_[tile].rows, tiles_[tile].terms);
      for (int j = first_; j < last_; j += kColumns) strip(row, end, j);
    }
  }

  void pack_panels() {
    pitch_ = rows_ <= kFewRows ? pitch_of(right_, part_, first_, last_) : 0;
    PanelRow<T>* panel = packed_;
    for (int j = first_; j < last_; j += kColumns, panel += part_.end - part_.begin)
      if (!is_direct(j))
        pack<T, kTransposed>(right_, part_, {j, std::min(j + kColumns, last_)}, panel);
  }
  // True if the panel from column `first` on is read in place.
  bool is_direct(int first) const { return pitch_ != 0 && first + kColumns <= last_; }

  void keep([[maybe_unused]] Range rows, [[maybe_unused]] Range terms) {
    if constexpr (!kInPlace<Left>)
      for (int i = rows.begin; i < rows.end; ++i) {
        T* to = from_ + static_cast<std::ptrdiff_t>(i) * step_ - (keeps_left_ ? 0 : part_.begin);
        // Unrolled, reads under a condition of left_ would get wrong masks from g++ 12.
#pragma GCC unroll 1
        for (int k = terms.begin; k < terms.end; ++k) to[k] = left_(i, k);
      }
  }

  const T* row(int i) const {
    if constexpr (kInPlace<Left>)
      return &left_(i, 0);
    else
      return from_ + static_cast<std::ptrdiff_t>(i) * step_;
  }
  // Rows below each other, equally far apart, and what they have of the terms that are packed.
  struct Tile {
    Range rows, terms, columns;
    std::ptrdiff_t step;
  };

  // The tiles of the rows from `begin` to `end`.
  void plan(int begin, int end) {
    count_ = 0;
    for (int i = begin, height; i < end; i += height) {
      const std::ptrdiff_t step = i + 1 < end ? row(i + 1) - row(i) : 0;
      height = 1;
      while (height < kHeight && i + height < end && row(i + height) - row(i) == height * step)
        ++height;
      const Range rows = {i, i + height};
      tiles_[count_++] = {rows, range_of(terms_, rows, part_),
                          range_of(columns_, rows, {first_, last_}), step};
    }
  }

  void strip(int begin, int end, int first) {
    const Range columns = {first, std::min(first + kColumns, last_)};
    const int width = columns.end - first;
    T sums[kTileRows][kColumns], turned[kColumns][kStripRows];
    for (int tile = 0; tile < count_; ++tile) {
      const Range rows = tiles_[tile].rows;
      const int height = rows.end - rows.begin;
      take_tile(tiles_[tile], columns, sums);
      if (partial_ != nullptr && !add_partial(rows, first, sums)) continue;
      for (int j = 0; kTransposed && j < width; ++j)
        for (int i = 0; i < height; ++i) turned[j][rows.begin - begin + i] = sums[i][j];
      for (int i = 0; !kTransposed && i < height; ++i) store_row(rows.begin + i, columns, sums[i]);
    }
    if (!kTransposed || part_.end < size_of(terms_)) return;
    for (int j = 0; j < width; ++j) {
      const T* from = turned[j];
      for (int i = begin; i < end; ++i) store_(first + j, i, *from++);
    }
  }

  void store_row(int i, Range columns, const T* sums) {
    for (int j = columns.begin; j < columns.end; ++j) store_(i, j, *sums++);
  }

  // True if no part is left after this one.
  bool add_partial(Range rows, int first, PanelRow<T>* sums) const {
    const bool last = part_.end == size_of(terms_);
    PanelRow<T>* const before =
        partial_ + static_cast<std::ptrdiff_t>(first - first_) / kColumns * rows_ + rows.begin;
    const int height = rows.end - rows.begin;
    for (int i = 0; part_.begin > 0 && i < height; ++i)
      for (int j = 0; j < kColumns; ++j) sums[i][j] += before[i][j];
    for (int i = 0; !last && i < height; ++i) std::memcpy(before[i], sums[i], sizeof sums[i]);
    return last;
  }

  void take_tile(const Tile& tile, Range columns, PanelRow<T>* sums) const {
    const auto [rows, terms, some, step] = tile;
    const int height = rows.end - rows.begin;
    if (terms.begin >= terms.end || some.begin >= columns.end || some.end <= columns.begin) {
      for (int i = 0; i < height; ++i) std::fill(sums[i], sums[i] + kColumns, T(0));
      return;
    }
    const int from = terms.begin - part_.begin;
    Operands<T> of = {terms.end - terms.begin, row(rows.begin), step, at_ + from, nullptr, pitch_};
    if constexpr (kInPlace<Right>)
      if (is_direct(columns.begin)) of.panel = &right_(terms.begin, columns.begin);
    if (of.panel == nullptr) {
      const int number = (columns.begin - first_) / kColumns;
      of.panel = packed_[static_cast<std::ptrdiff_t>(number) * (part_.end - part_.begin) + from];
      of.pitch = kColumns;
    }
    if (std::min(columns.end, some.end) - columns.begin > Vectors<T>::kLanes)
      multiply_rows<T, 2, kHeight>(height, of, sums);
    else
      multiply_rows<T, 1, kHeight>(height, of, sums);
    if constexpr (!std::is_same_v<Columns, int>)
      for (int i = 0; i < height; ++i) {
        const Range one = columns_.range(rows.begin + i);
        for (int j = columns.begin; j < columns.end; ++j)
          if (j < one.begin || j >= one.end) sums[i][j - columns.begin] = 0;
      }
  }

  const int rows_;
  const Columns columns_;
  const Terms terms_;
  const Left& left_;
  const Right& right_;
  Store& store_;
  int panels_ = 0;                  // packed at a time
  bool keeps_left_ = false;         // all of it: it is read again for the next panels
  int first_ = 0, last_ = 0;        // columns that are packed
  Range part_ = {0, 0};             // terms that are packed
  PanelRow<T>* packed_ = nullptr;   // [panel][term]
  std::ptrdiff_t pitch_ = 0;        // of panels that need no packing; 0: none
  PanelRow<T>* partial_ = nullptr;  // [panel][row]: sums over the parts before
  std::ptrdiff_t* at_ = nullptr;    // of terms in a row of left
  T* kept_ = nullptr;               // rows of left
  T* from_ = nullptr;
  std::ptrdiff_t step_ = 0;
  Tile tiles_[kStripRows];
  int count_ = 0;
};

template <class T, bool kTransposed, class Columns, class Terms, class Left, class Right,
          class Store>
void tiles(int rows, const Columns& columns, const Terms& terms, const Left& left,
           const Right& right, Store& store) {
  Tiles<T, kTransposed, Columns, Terms, Left, Right, Store>(rows, columns, terms, left, right,
                                                            store)
      .run();
}

}  // namespace detail

// store(i, j, sum over k of left(i, k) * right(k, j)) for every row i and column j. Columns and
// terms: how many, or fl::within, which says what each row has. There `left` gives 0 for terms that
// a row does not have; where it does not have the column, the sum is 0.
template <class T, class Columns, class Terms, class Left, class Right, class Store>
void product(int rows, Columns columns, Terms terms, Left left, Right right, Store store) {
  constexpr bool kLeft = detail::kInPlace<Left>, kRight = detail::kInPlace<Right>;
  constexpr int kFew = 4;
  const int width = detail::size_of(columns), length = detail::size_of(terms);
  if (rows <= 0 || width <= 0) return;
  const auto right_by_columns = detail::transposed(right);
  if constexpr (std::is_same_v<Columns, int> && std::is_same_v<Terms, int>) {
    if (length <= 0 || (std::min(rows, width) <= kFew && detail::is_dense(left, 0, length) &&
                        detail::is_dense(right_by_columns, 0, length))) {
      for (int j = 0; j < width; ++j)
        for (int i = 0; i < rows; ++i)
          store(i, j, fl::sum<T>(length, [&](int k) { return left(i, k) * right(k, j); }));
      return;
    }
    // The smaller side is copied; the other one is read in place.
    if constexpr (kRight)
      if ((!kLeft && width <= length) || (width > rows && !detail::is_dense(right, 0, width)))
        return detail::tiles<T, true>(width, rows, length, right_by_columns,
                                      detail::transposed(left), store);
  }
  detail::tiles<T, false>(rows, columns, terms, left, right, store);
}

}  // namespace fl
