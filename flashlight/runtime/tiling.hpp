// The rows of a product in tiles and strips: what a tile computes at once, and what stays in the
// cache while panels of columns pass by.
//
//   Tiling<float> tiling(of, team.threads());
//   for (int64_t i = 0; i < tiling.count(); ++i) use(tiling.tile(i, base));
//
// A convolution has a run of rows for each line of pixels. Where lines lie equally far apart, in
// rows, a tile of the unit for matrices may go on through several of them: what it computes for the
// places between two lines is nobody's.
#pragma once

#include <algorithm>
#include <cstdint>

#include "flashlight/runtime/function_ref.hpp"
#include "flashlight/runtime/lanes.hpp"
#include "flashlight/runtime/matrix_unit.hpp"
#include "flashlight/runtime/microkernel.hpp"
#include "flashlight/runtime/team.hpp"

namespace fl {

// The work that the threads of a team divide. Rows keep activations on their core, columns weights.
enum class Split { rows, columns };

// Memory that is fetched while other is worked on, in equal parts.
struct Upcoming {
  const char* from = nullptr;
  int64_t lines = 0;

  template <class T>
  static Upcoming of(const T* from, int64_t count) {
    if (from == nullptr || count <= 0) return {};
    return {reinterpret_cast<const char*>(from), count * int64_t{sizeof(T)} / detail::kLineBytes};
  }
  template <class T, class Weight, class Word>
  void add_to(Tile<T, Weight, Word>& tile, int part, int parts) const {
    const int64_t begin = lines * part / parts;
    tile.ahead = from + begin * detail::kLineBytes;
    tile.ahead_lines = lines * (part + 1) / parts - begin;
  }
};

template <class T>
struct Contraction {
  int64_t outer, inner;  // rows: so many runs of so many, equally far apart
  int64_t inner_stride;  // elements from one row of a run to the next
  int64_t columns;
  Terms terms;
  Split split = Split::rows;
  // The elements that this thread reads next (weights of the next layer); they are prefetched with
  // the last panel.
  Upcoming next = {};
};

namespace detail {
// A context that deduces nothing, so that callers can pass lambdas.
template <class T>
struct TileCallbacks {
  using Base = FunctionRef<const T*(int64_t outer)>;
  using Finish = FunctionRef<void(int64_t outer, int64_t inner, int rows, int64_t column,
                                  int columns, const T (*sums)[kPanel<T>])>;
};
}  // namespace detail
// Callbacks for the first element of each row, and for the sums of a tile.
template <class T>
using BaseOf = typename detail::TileCallbacks<T>::Base;
template <class T>
using FinishOf = typename detail::TileCallbacks<T>::Finish;

namespace detail {

// The elements that a strip of tiles reads stay in about half of the second level cache while
// panels pass by. Weights that take no more than that need not be fetched again for the next strip.
constexpr int64_t kStripBytes = int64_t{1} << 19, kResidentBytes = int64_t{1} << 18;
constexpr int kStripTiles = 128;
// Panels that do not fit beside it come from further away, for every strip: then there are few.
constexpr int64_t strip_bytes(int64_t panel_bytes) {
  return panel_bytes * 3 / 2 > kStripBytes ? 4 * panel_bytes : kStripBytes;
}

template <class Element>
struct Rows {
  const Element* first;
  int64_t outer, inner;
  int count;
  const Element *from, *to;  // what they read is between these
};

// The end of what the tiles of a strip read. What lies between rows that are read can be read.
template <class Element>
const Element* end_of(const Rows<Element>* strip, int count) {
  const Element* end = strip[0].to;
  for (int i = 1; i < count; ++i) end = std::max(end, strip[i].to);
  return end;
}

// The number of tiles for each of `runs` with this number of rows, or pairs of rows. A tile has at
// most `most`.
template <class T>
int64_t tiles_per_run(const Contraction<T>& of, int64_t runs, int64_t rows, int threads,
                      int most = kMostRows) {
  const int64_t tiles = (rows + most - 1) / most;
  // The same number for every thread, if that is a matter of height.
  if (runs == 1 && of.split == Split::rows)
    return std::min(rows, (tiles + threads - 1) / threads * threads);
  return tiles;
}

// Runs that tiles go through as if they were one: the rows of the first, then `period` rows from
// the beginning of each to that of the next.
struct JoinedRuns {
  int64_t count = 1, period = 0;

  int64_t rows(int64_t inner) const { return (count - 1) * period + inner; }
};

// The time of a run's tiles on the unit for matrices, measured: one of few rows waits for the panel.
inline int64_t unit_time(int64_t runs, int64_t rows) {
  constexpr int64_t kTile = 8, kLowTile = 5;
  const int64_t tiles = (rows + kUnitRows - 1) / kUnitRows;
  return runs * tiles * (rows <= tiles * kRegisterRows ? kLowTile : kTile);
}

// As many runs as lie equally far apart, in whole rows, if tiles of the unit for matrices take less
// time for all of them than for one after the other.
template <class T, class Element>
JoinedRuns joined_runs(const Contraction<T>& of, BaseOf<Element> base) {
  const auto pays = [&](int64_t groups, int64_t rows) {
    return unit_time(groups, rows) * 10 < unit_time(of.outer, of.inner) * 9;
  };
  if (!pays(1, of.outer * of.inner)) return {};  // not even without places between them
  if (of.inner_stride == 0) return {};
  const Element* const first = base(0);
  const int64_t distance = of.outer > 1 ? base(1) - first : 0, period = distance / of.inner_stride;
  if (distance % of.inner_stride != 0 || period < of.inner) return {};
  JoinedRuns joined = {2, period};
  while (joined.count < of.outer && base(joined.count) - first == joined.count * distance)
    ++joined.count;
  if (of.outer % joined.count != 0) return {};
  for (int64_t i = joined.count; i < of.outer; ++i)
    if (base(i) - base(i - i % joined.count) != i % joined.count * distance) return {};
  return pays(of.outer / joined.count, joined.rows(of.inner)) ? joined : JoinedRuns{};
}

// The tiles of a contraction: runs in pieces of nearly equal height, the higher ones first.
template <class T, class Element = T>
class Tiling {
 public:
  Tiling(const Contraction<T>& of, int threads, int most_rows = kMostRows, JoinedRuns joined = {})
      : of_(of),
        joined_(joined),
        rows_(joined.rows(of.inner)),
        per_run_(tiles_per_run(of, of.outer / joined.count, rows_, threads, most_rows)) {
    for (int s = 0; s < of.terms.segments; ++s) {
      lowest_ = std::min<int64_t>(lowest_, of.terms.offsets[s]);
      highest_ = std::max<int64_t>(highest_, of.terms.offsets[s]);
    }
    const int64_t reach = int64_t{of.terms.run} * of.terms.step;
    (reach < 0 ? lowest_ : highest_) += reach;
  }
  int64_t count() const { return of_.outer / joined_.count * per_run_; }

  Rows<Element> tile(int64_t number, BaseOf<Element> base) const {
    const int64_t outer = number / per_run_ * joined_.count, piece = number % per_run_;
    const int64_t least = rows_ / per_run_, higher = rows_ % per_run_;
    const int64_t begin = piece * least + std::min(piece, higher);
    const int64_t end = begin + least + (piece < higher ? 1 : 0);
    const Element* const first = base(outer) + begin * of_.inner_stride;
    const int64_t last = (end - begin - 1) * of_.inner_stride;  // negative where rows are reversed
    return {first,
            outer,
            begin,
            static_cast<int>(end - begin),
            first + lowest_ + std::min<int64_t>(last, 0),
            first + highest_ + std::max<int64_t>(last, 0)};
  }
  // Calls `use` with the sums of a tile and these columns: once, or for each of joined runs.
  void finish(const Rows<Element>& rows, int64_t column, int columns, const T (*sums)[kPanel<T>],
              FinishOf<T> use) const {
    if (joined_.count == 1) return use(rows.outer, rows.inner, rows.count, column, columns, sums);
    for (int r = 0; r < rows.count;) {
      const int64_t run = (rows.inner + r) / joined_.period;
      const int64_t inner = rows.inner + r - run * joined_.period;
      const int count = static_cast<int>(std::min<int64_t>(rows.count - r, of_.inner - inner));
      if (count > 0) use(rows.outer + run, inner, count, column, columns, sums + r);
      r += static_cast<int>(joined_.period - inner);
    }
  }
  // As many of the tiles from `begin` on as make a strip. What they read is at most all that lies
  // between its ends (windows overlap), and at most the sum of what each tile reads. Windows that
  // are copied to be converted do not overlap. `term_bytes`: of a term as tiles read it.
  int strip(int64_t begin, int64_t end, BaseOf<Element> base, bool lie, int64_t term_bytes,
            Rows<Element>* tiles) const {
    const int64_t terms = of_.terms.count();
    const int64_t most = strip_bytes(terms * kPanel<T> * term_bytes);
    int64_t sum = 0;
    const Element *low = nullptr, *high = nullptr;
    int count = 0;
    for (; count < kStripTiles && begin + count < end; ++count) {
      const Rows<Element> rows = tile(begin + count, base);
      low = count == 0 ? rows.from : std::min(low, rows.from);
      high = count == 0 ? rows.to : std::max(high, rows.to);
      sum += rows.count * terms;
      const int64_t read = lie ? std::min<int64_t>(sum, high - low) : sum;
      if (count > 0 && read * term_bytes > most) break;
      tiles[count] = rows;
    }
    return count;
  }

 private:
  const Contraction<T>& of_;
  const JoinedRuns joined_;
  const int64_t rows_, per_run_;      // of a run, or of joined ones
  int64_t lowest_ = 0, highest_ = 0;  // where terms of a row are
};

}  // namespace detail

}  // namespace fl
