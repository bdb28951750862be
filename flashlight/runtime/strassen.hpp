// Products of matrices by Strassen's algorithm: rows, terms and columns are halved, and seven
// products of halves, not eight, make the four of the result.
//
//   Contraction<float> of = {1, 128, 768, 3072, {offsets, 1, 768}, Split::columns};
//   contract_strassen<float>(team, of, base, panels, finish);  // what contract<float> computes
//
//   M1 = (A11 + A22) (B11 - B22)    M5 = (A11 + A12) B22           C11 = M1 + M4 + M5 + M7
//   M2 = (A21 + A22) B11            M6 = (A11 - A21) (B11 - B12)   C12 = M3 + M5
//   M3 = A11 (B12 - B22)            M7 = (A12 - A22) (B21 - B22)   C21 = M2 + M4
//   M4 = A22 (B21 - B11)                                           C22 = M2 + M3 + M6 - M1
//
// (V. Strassen, "Gaussian elimination is not optimal", 1969, for a B whose right half is negated:
// what is taken of the panels are differences alone.) It is one level, done by pieces of two tiles
// of rows and pairs of panels. The panels are those of `contract`; they are subtracted from each
// other in registers, which takes no memory, and no time where additions have units of their own.
// Sums of rows are made once for all panels.
//
// Rounding errors of an element are relative to what is added to it and taken away again: products
// with the rows and columns beside its own. Rows differ by much (of trained transformers, a few
// tokens are ten times as large as all others), hence a lower row is first multiplied by the power
// of 2 that makes it as long as the upper one (G. Ballard et al., "Improving the numerical
// stability of fast matrix multiplication", 2016).
#pragma once

#include <algorithm>
#include <cstdint>

#include "flashlight/runtime/contraction.hpp"
#include "flashlight/runtime/lanes.hpp"

namespace fl {
namespace detail {

// Rows that are halved together: `top`, and below them as many, or one fewer.
template <class T>
struct Piece {
  const T* first;
  int64_t outer, inner;
  int top, bottom;
  T scale[kMostRows];  // of the rows at the bottom
};

// A power of 2, about sqrt(above / below); 1 where either is not finite.
template <class T>
T scale_between(T above, T below) {
  using L = Layout<T>;
  constexpr int kMost = 30;  // what is smaller by so much is nothing beside the other
  const auto exponent = [](T x) {
    return static_cast<int>(bit_cast<typename L::Bits>(x) >> L::kFraction);
  };
  const int over = exponent(above), under = exponent(below);
  if (std::max(over, under) > 2 * static_cast<int>(L::kBias)) return 1;
  const int power = std::clamp((over - under) / 2, -kMost, kMost) + static_cast<int>(L::kBias);
  return bit_cast<T>(static_cast<typename L::Bits>(power) << L::kFraction);
}

// Pieces of rows that use a pair of panels one after the other.
template <class T>
class StrassenStrip {
 public:
  StrassenStrip(const Contraction<T>& of, int threads, BaseOf<T> base, const T* panels)
      : of_(of),
        base_(base),
        panels_(panels),
        half_(of.terms.run / 2),
        per_run_(tiles_per_run(of, of.outer, (of.inner + 1) / 2, threads)),
        pitch_(row_pitch<T>(half_)) {
    const int64_t chunks = (half_ + kMostTerms - 1) / kMostTerms;
    chunk_ = (half_ + chunks - 1) / chunks;
    const int64_t bytes = 2 * kMostRows * of.terms.run * int64_t{sizeof(T)};
    most_ = std::min(pieces(), std::clamp<int64_t>(kBytes / bytes, kLeastPieces, kMostPieces));
    T* const memory = aligned_scratch<T, 9>(most_ * kMostRows * (4 * kPanel<T> + kSums * pitch_));
    sums_ = reinterpret_cast<Sums*>(memory);
    left_ = memory + most_ * 4 * kMostRows * kPanel<T>;
  }

  int64_t pieces() const { return of_.outer * per_run_; }

  // Makes a strip of pieces from `begin` on: how many they are.
  int64_t take(int64_t begin, int64_t end) {
    count_ = std::min(most_, end - begin);
    for (int64_t i = 0; i < count_; ++i) {
      pieces_[i] = piece(begin + i);
      add_rows(i);
    }
    return count_;
  }

  // All sums of a pair of panels, while what is read after it is fetched: the panels of `next`, or
  // what the caller reads then, if that is negative.
  void multiply(int64_t pair, int64_t next, FinishOf<T> finish) {
    for (int64_t first = 0; first < half_; first += chunk_) {
      const Part terms = {first, std::min(first + chunk_, half_)};
      if (terms.end < half_)
        fetch(pair, terms.end);
      else
        fetch(next, 0);
      for (int64_t i = 0; i < count_; ++i) multiply_piece(pair, terms, i);
    }
    for (int64_t i = 0; i < count_; ++i) {
      unscale(pieces_[i], sums_[4 * i + 3]);
      for (int c = 0; c < 2; ++c)
        finish_column(pieces_[i], 2 * pair + c, sums_[4 * i + c], sums_[4 * i + 2 + c], finish);
    }
  }

  // Those of a panel that has no other one beside it, directly.
  void multiply_single(int64_t panel, FinishOf<T> finish) const {
    alignas(kVectorBytes) Sums top, bottom;
    const Part terms = {0, of_.terms.run};
    for (int64_t i = 0; i < count_; ++i) {
      const Piece<T>& piece = pieces_[i];
      product(upper(piece, 0), {right(panel, 0)}, terms, false, top);
      product(lower(piece, 0), {right(panel, 0)}, terms, false, bottom);
      finish_column(piece, panel, top, bottom, finish);
    }
  }

 private:
  using Sums = T[kMostRows][kPanel<T>];
  // Rows of a half.
  struct Left {
    const T* first;
    int64_t stride;
    int rows;
  };
  // Terms of a panel, or differences of two.
  struct Right {
    const T *panel, *minus = nullptr;
  };

  // Terms that are multiplied at a time, so that panels stay in the second level of the cache, and
  // bytes of the rows of a strip, most of which do.
  static constexpr int64_t kMostTerms = 768, kBytes = int64_t{3} << 19, kLeastPieces = 8,
                           kMostPieces = 64;
  // Sums of rows, for the products M1, M2, M5, M6 and M7.
  static constexpr int kSums = 5;

  Piece<T> piece(int64_t number) const {
    const int64_t outer = number / per_run_, place = number % per_run_, pairs = (of_.inner + 1) / 2;
    const int64_t from = pairs * place / per_run_ * 2,
                  to = std::min(of_.inner, pairs * (place + 1) / per_run_ * 2);
    const int rows = static_cast<int>(to - from), top = (rows + 1) / 2;
    return {base_(outer) + of_.terms.offsets[0] + from * of_.inner_stride,
            outer,
            from,
            top,
            rows - top,
            {}};
  }
  Left upper(const Piece<T>& piece, int64_t term) const {
    return {piece.first + term, of_.inner_stride, piece.top};
  }
  Left lower(const Piece<T>& piece, int64_t term) const {
    return {piece.first + piece.top * of_.inner_stride + term, of_.inner_stride, piece.bottom};
  }

  T* sum_of_rows(int64_t piece, int which) const {
    return left_ + (piece * kSums + which) * kMostRows * pitch_;
  }
  // The sums within two rows one pair ahead, for they tell the scale, and late.
  void add_rows(int64_t number) {
    const int bottom = pieces_[number].bottom;
    if (bottom > 0) add_within(number, 0);
    for (int r = 0; r < bottom; ++r) {
      if (r + 1 < bottom) add_within(number, r + 1);
      add_across(number, r);
    }
    if (bottom < pieces_[number].top) add_last_row(number);
  }
  void add_within(int64_t number, int r) {
    Piece<T>& piece = pieces_[number];
    const T* const upper = piece.first + r * of_.inner_stride;
    const T* const lower = upper + piece.top * of_.inner_stride;
    const T above = add_halves(upper, sum_of_rows(number, 2) + r * pitch_),
            below = add_halves(lower, sum_of_rows(number, 1) + r * pitch_);
    piece.scale[r] = scale_between(above, below);
  }
  void add_across(int64_t number, int r) const {
    const Piece<T>& piece = pieces_[number];
    const T *const a11 = piece.first + r * of_.inner_stride, *const a12 = a11 + half_,
                   *const a21 = a11 + piece.top * of_.inner_stride, *const a22 = a21 + half_;
    const auto to = [&](int which) { return sum_of_rows(number, which) + r * pitch_; };
    T *const m1 = to(0), *const m6 = to(3), *const m7 = to(4);
    const T scale = piece.scale[r];
    FLASHLIGHT_INDEPENDENT_ROUNDS
    for (int64_t k = 0; k < half_; ++k) {
      m1[k] = a11[k] + scale * a22[k];
      m6[k] = a11[k] - scale * a21[k], m7[k] = a12[k] - scale * a22[k];
    }
  }
  // Zeros stand for the row that is missing.
  void add_last_row(int64_t number) {
    Piece<T>& piece = pieces_[number];
    const int r = piece.bottom;
    piece.scale[r] = 1;
    const T *const a11 = piece.first + r * of_.inner_stride, *const a12 = a11 + half_;
    const auto to = [&](int which) { return sum_of_rows(number, which) + r * pitch_; };
    for (int which : {0, 3}) std::copy_n(a11, half_, to(which));
    std::fill_n(to(1), half_, T(0));
    add_halves(a11, to(2));
    std::copy_n(a12, half_, to(4));
  }
  // The square of the row's length.
  T add_halves(const T* row, T* to) const {
    constexpr int64_t kLanes = Vectors<T>::kLanes;
    Vector<T> squares{};
    int64_t k = 0;
    for (; k + kLanes <= half_; k += kLanes) {
      const Vector<T> first = load(row + k), second = load(row + half_ + k);
      store<T>(first + second, to + k);
      squares += first * first + second * second;
    }
    T lanes[kLanes], rest = 0;
    store<T>(squares, lanes);
    for (int64_t half = kLanes / 2; half > 0; half /= 2)
      for (int64_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
    for (; k < half_; ++k) {
      to[k] = row[k] + row[half_ + k];
      rest += row[k] * row[k] + row[half_ + k] * row[half_ + k];
    }
    return lanes[0] + rest;
  }

  const T* right(int64_t panel, int64_t term) const {
    return panels_ + (panel * of_.terms.run + term) * kPanel<T>;
  }
  // Prefetches a quarter of the next chunk for each product.
  void fetch(int64_t pair, int64_t first) {
    const int64_t size = std::min(chunk_, half_ - first) * kPanel<T>;
    for (int i = 0; i < 4; ++i)
      next_[i] = pair < 0 ? Upcoming()
                          : Upcoming::of(right(2 * pair + i % 2, first + i / 2 * half_), size);
    if (pair < 0) next_[0] = of_.next;
  }

  void product(const Left& left, const Right& right, Part terms, bool add, Sums& sums,
               const Upcoming& next = {}, int64_t number = 0) const {
    static constexpr int32_t kTogether = 0;
    if (left.rows == 0) return;
    const int count = static_cast<int>(terms.size());
    Tile<T> tile = {left.first, left.stride, {&kTogether, 1, count}, right.panel};
    tile.add = add;
    if (right.minus != nullptr) tile.minus = right.minus - right.panel;
    next.add_to(tile, static_cast<int>(number), static_cast<int>(count_));
    if (right.minus == nullptr)
      multiply_tile<T>(left.rows, 2, tile, sums);
    else
      multiply_tile_by_difference<T>(left.rows, tile, sums);
  }
  void multiply_piece(int64_t pair, Part terms, int64_t number) const {
    const Piece<T>& piece = pieces_[number];
    const int64_t first = terms.begin;
    const auto sum = [&](int which) {
      return Left{sum_of_rows(number, which) + first, pitch_, piece.top};
    };
    const T *const b11 = right(2 * pair, first), *const b12 = right(2 * pair + 1, first),
                   *const b21 = right(2 * pair, half_ + first),
                   *const b22 = right(2 * pair + 1, half_ + first);
    Sums &c11 = sums_[4 * number], &c12 = sums_[4 * number + 1], &c21 = sums_[4 * number + 2],
         &c22 = sums_[4 * number + 3];
    alignas(kVectorBytes) Sums m;
    const bool begins = first == 0;
    const auto negative = [](int) { return T(-1); };
    const auto once = [](int) { return T(1); };
    const auto scaled = [&](int row) { return piece.scale[row]; };
    product(sum(0), {b11, b22}, terms, false, m, next_[0], number);
    if (begins)
      add<Begin::both>(piece.top, m, c11, c22, negative);
    else
      add<Begin::none>(piece.top, m, c11, c22, negative);
    const auto add_to = [&](Sums& begun, Sums& other, const auto& factor) {
      if (begins)
        add<Begin::first>(piece.top, m, begun, other, factor);
      else
        add<Begin::none>(piece.top, m, begun, other, factor);
    };
    product(sum(1), {b11}, terms, false, m, next_[1], number);
    add_to(c21, c22, scaled);
    product(sum(2), {b22}, terms, false, m, next_[2], number);
    add_to(c12, c11, once);
    product(upper(piece, first), {b12, b22}, terms, false, m, next_[3], number);
    add<Begin::none>(piece.top, m, c12, c22, once);
    product(lower(piece, half_ + first), {b21, b11}, terms, false, m);
    add<Begin::none>(piece.bottom, m, c21, c11, scaled);
    product(sum(3), {b11, b12}, terms, true, c22);
    product(sum(4), {b21, b22}, terms, true, c11);
  }
  // Adds a product to two results, to the second one times a factor of the row. Results that begin
  // here have no value before.
  enum class Begin { none, first, both };
  template <Begin kBegin, class Factor>
  static void add(int rows, const Sums& m, Sums& first, Sums& second, const Factor& factor_of) {
    for (int r = 0; r < rows; ++r) {
      const T factor = factor_of(r);
      const T* const from = m[r];
      T *const to = first[r], *const also = second[r];
      FLASHLIGHT_INDEPENDENT_ROUNDS
      for (int i = 0; i < kPanel<T>; ++i) {
        to[i] = from[i] + (kBegin == Begin::none ? to[i] : T(0));
        also[i] = factor * from[i] + (kBegin == Begin::both ? T(0) : also[i]);
      }
    }
  }
  // C22, whose sums are as long as those of upper rows.
  static void unscale(const Piece<T>& piece, Sums& c22) {
    for (int r = 0; r < piece.bottom; ++r)
      if (piece.scale[r] != 1)
        for (T& sum : c22[r]) sum /= piece.scale[r];
  }

  void finish_column(const Piece<T>& piece, int64_t panel, const Sums& top, const Sums& bottom,
                     FinishOf<T> finish) const {
    const int64_t column = panel * kPanel<T>;
    const int columns = static_cast<int>(std::min<int64_t>(kPanel<T>, of_.columns - column));
    finish(piece.outer, piece.inner, piece.top, column, columns, top);
    if (piece.bottom > 0)
      finish(piece.outer, piece.inner + piece.top, piece.bottom, column, columns, bottom);
  }

  const Contraction<T>& of_;
  BaseOf<T> base_;
  const T* panels_;
  const int64_t half_, per_run_;
  const int64_t pitch_;  // from one row of sums to the next
  int64_t chunk_, most_, count_ = 0;
  Sums* sums_;  // of each piece: C11, C12, C21, C22
  T* left_;     // sums of rows of each piece
  Upcoming next_[4];
  Piece<T> pieces_[kMostPieces];
};

}  // namespace detail

// The sums of `contract`, of rows that have terms side by side: 2, 4, 6, ...
template <class T>
void contract_strassen(const Team& team, const Contraction<T>& of, BaseOf<T> base, const T* panels,
                       FinishOf<T> finish) {
  if (of.outer <= 0 || of.inner <= 0 || of.columns <= 0) return;
  detail::StrassenStrip<T> strip(of, team.threads(), base, panels);
  const bool by_rows = of.split == Split::rows;
  const int64_t all = (of.columns + kPanel<T> - 1) / kPanel<T>, pairs = (all + 1) / 2;
  const Part pieces = by_rows ? team.part(strip.pieces()) : Part{0, strip.pieces()};
  const Part mine = by_rows ? Part{0, pairs} : team.part(pairs);
  for (int64_t begin = pieces.begin; begin < pieces.end;) {
    begin += strip.take(begin, pieces.end);
    for (int64_t pair = mine.begin; pair < mine.end; ++pair) {
      const int64_t next = pair + 1 < mine.end ? pair + 1 : begin < pieces.end ? mine.begin : -1;
      if (2 * pair + 1 < all)
        strip.multiply(pair, 2 * next + 1 < all ? next : -1, finish);
      else
        strip.multiply_single(2 * pair, finish);
    }
  }
}

}  // namespace fl
