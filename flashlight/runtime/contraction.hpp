// Products of matrices and convolutions, of which one side is packed: rows of terms times panels of
// columns, by tiles that stay in registers.
//
//   Contraction<float> of = {1, 128, pitch, 3072, {offsets, 1, 768}, Split::columns};
//   contract<float>(
//       team, of, [&](int64_t) { return x; }, weights,
//       [&](int64_t, int64_t row, int rows, int64_t column, int columns, const auto* sums) {
//         for (int r = 0; r < rows; ++r)
//           for (int c = 0; c < columns; ++c)
//             y[(row + r) * 3072 + column + c] = sums[r][c] + bias[column + c];
//       });
//
// A convolution has a run of rows for each line of pixels (or one for all, where lines lie without
// a gap), whose terms are the window of a pixel. Nothing here waits: the team does, behind it.
//
// T is the type of the sums. Rows of another type Element are converted strip by strip, unless they
// lie as tiles read them; panels of a smaller type Weight are multiplied by an instruction for them
// (words.hpp), or widened by the tiles, or, for several of them, before. Operand is the type that
// rows are rounded to: bfloat16 of floats.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "flashlight/runtime/function_ref.hpp"
#include "flashlight/runtime/lanes.hpp"
#include "flashlight/runtime/matrix_unit.hpp"
#include "flashlight/runtime/microkernel.hpp"
#include "flashlight/runtime/team.hpp"
#include "flashlight/runtime/tiling.hpp"
#include "flashlight/runtime/words.hpp"

namespace fl {

namespace detail {
template <class T>
FLASHLIGHT_INLINE Upcoming first_of_panels(const Team& team, Split split, const T* panels,
                                           int64_t columns, int64_t terms) {
  constexpr int64_t kMost = int64_t{1} << 16;  // more would drive out what is worked on
  const int64_t size = terms * kPanel<T>;
  const Part mine = team.part((columns + kPanel<T> - 1) / kPanel<T>);
  const int64_t first = split == Split::columns ? mine.begin : 0;
  return Upcoming::of(panels + first * size, std::min(size, kMost));
}
}  // namespace detail
// The elements that this thread reads first of panels with this number of terms, in whole groups:
// of the first panel, or of its own.
template <class T>
[[gnu::noinline]] Upcoming first_panel(const Team& team, Split split, const T* panels,
                                       int64_t columns, int64_t terms) {
  return detail::first_of_panels(team, split, panels, columns, terms);
}
// The same where there may be none: nullptr. It needs no tiles of that type elsewhere.
template <class T>
Upcoming first_panel_or_none(const Team& team, int64_t by_columns, const T* panels, int64_t columns,
                             int64_t terms) {
  if (panels == nullptr) return {};
  return detail::first_of_panels(team, by_columns != 0 ? Split::columns : Split::rows, panels,
                                 columns, terms);
}

namespace detail {

// The rows of a strip as tiles read them, in words: where they lie, or converted in memory of the
// thread, the terms of a row side by side, each segment filled up to whole groups of a panel with
// zeros, and a row to what the unit for matrices reads, if `by_unit`.
template <class T, class Element, class Operand, class Word, class Weight>
class StripRows {
  // What words are made of.
  using Unit = std::conditional_t<std::is_same_v<Word, T>, T, Operand>;
  static_assert(sizeof(Word) == sizeof(T));

 public:
  static constexpr int kTerms = sizeof(Word) / sizeof(Unit);
  StripRows(const Contraction<T>& of, bool by_unit)
      : of_(of),
        lie_(lie(of) && (!by_unit || of.terms.run % (kTerms * kStepWords) == 0)),
        words_(static_cast<int>(whole_groups<Weight>(of.terms.run)) / kTerms) {
    if (!lie_)
      pitch_ = row_pitch<T>(of.terms.segments * words_);
    else
      pitch_ = of.inner_stride / kTerms;
    if constexpr (kTerms > 1) {
      if (!lie_) return;
      offsets_ = scratch<int32_t, 12>(static_cast<std::size_t>(of.terms.segments));
      for (int s = 0; s < of.terms.segments; ++s) offsets_[s] = of.terms.offsets[s] / kTerms;
    }
  }

  bool lie() const { return lie_; }
  int64_t pitch() const { return pitch_; }
  Terms terms() const {
    static constexpr int32_t kFirst = 0;
    if (!lie_) return {&kFirst, 1, of_.terms.segments * words_};
    if constexpr (kTerms > 1) return {offsets_, of_.terms.segments, words_};
    return of_.terms;
  }
  const Word* first(int tile, const Rows<Element>& rows) const {
    return lie_ ? reinterpret_cast<const Word*>(rows.first) : memory_ + before_[tile] * pitch_;
  }

  void take(const Rows<Element>* strip, int count) {
    if (lie_) return;
    int64_t rows = 0;
    for (int i = 0; i < count; rows += strip[i++].count) before_[i] = rows;
    memory_ = reinterpret_cast<Word*>(aligned_scratch<T, 10>(rows * pitch_ + kBlock / kTerms));
    Word* to = memory_;
    if (copies_blocks()) return copy_rows(strip, count);
    fill_up(rows);
    if (turn(strip, count, rows)) return;
    for (int i = 0; i < count; ++i)
      for (int r = 0; r < strip[i].count; ++r, to += pitch_)
        convert_row(strip[i].first + r * of_.inner_stride, reinterpret_cast<Unit*>(to));
  }

 private:
  // Of several terms, words have to begin at even places and leave nothing over.
  static bool lie(const Contraction<T>& of) {
    if constexpr (!std::is_same_v<Unit, Element>) return false;
    if constexpr (!std::is_same_v<Operand, Element>) return false;
    if (kTerms == 1) return true;
    bool whole = of.terms.step == 1 && of.terms.run % kTerms == 0 && of.inner_stride % kTerms == 0;
    for (int s = 0; s < of.terms.segments; ++s) whole = whole && of.terms.offsets[s] % kTerms == 0;
    return whole;
  }

  // Rows that lie side by side, as those of a transposed matrix do: squares of them are turned.
  // Term by term, all of a row's would be in a few sets of the cache.
  bool turn(const Rows<Element>* strip, int count, int64_t rows) {
    if constexpr (kTerms == 2 && kHasPairs<Element>) {
      if (of_.inner_stride != 1 || of_.terms.step == 1 || strip[0].outer != strip[count - 1].outer)
        return false;
      for (int s = 0; s < of_.terms.segments; ++s)
        if (!turn_pairs(strip[0].first + of_.terms.offsets[s], of_.terms.step, of_.terms.run, rows,
                        reinterpret_cast<uint32_t*>(memory_) + s * words_, pitch_))
          return false;
      return true;
    }
    return false;
  }

  // Short segments that need no conversion are copied in whole blocks, which read and write beyond
  // them: what follows is written after it. The rows of a strip begin in its order.
  static constexpr int kBlock = kLineBytes / int{sizeof(Unit)};
  bool copies_blocks() const {
    return kTerms == 2 && std::is_same_v<Unit, Element> && of_.terms.step == 1 &&
           of_.terms.run <= kBlock;
  }
  void copy_rows(const Rows<Element>* strip, int count) {
    if constexpr (std::is_same_v<Unit, Element>) {
      const Element* const end = end_of(strip, count);
      auto* to = reinterpret_cast<Unit*>(memory_);
      for (int i = 0; i < count; ++i)
        for (int r = 0; r < strip[i].count; ++r, to += pitch_ * kTerms)
          copy_row(strip[i].first + r * of_.inner_stride, end, to);
    }
  }
  FLASHLIGHT_INLINE void copy_row(const Unit* from, const Unit* end, Unit* row) const {
    const int run = of_.terms.run, filled = words_ * kTerms;
    Unit* to = row;
    for (int s = 0; s < of_.terms.segments; ++s, to += filled) {
      const Unit* const segment = from + of_.terms.offsets[s];
      if (end - segment >= kBlock)
        std::memcpy(static_cast<void*>(to), segment, kLineBytes);
      else
        copy(segment, run, to);
      if (run < filled) to[run] = Unit(0);
    }
    // The unit for matrices reads whole lines.
    if (to < row + pitch_ * kTerms) std::memset(static_cast<void*>(to), 0, kLineBytes);
  }

  void fill_up(int64_t rows) {
    const int64_t words = int64_t{of_.terms.segments} * words_;
    for (int64_t r = 0; kTerms > 1 && words < pitch_ && r < rows; ++r)
      std::memset(static_cast<void*>(memory_ + r * pitch_ + words), 0,
                  static_cast<std::size_t>(pitch_ - words) * sizeof(Word));
  }

  void convert_row(const Element* from, Unit* to) const {
    const int run = of_.terms.run;
    for (int s = 0; s < of_.terms.segments; ++s, to += words_ * kTerms) {
      convert<Operand>(from + of_.terms.offsets[s], of_.terms.step, run, to);
      if (run < words_ * kTerms) std::fill(to + run, to + words_ * kTerms, Unit(0));
    }
  }

  const Contraction<T>& of_;
  const bool lie_;
  const int words_;  // of a segment
  int64_t pitch_ = 0;
  int32_t* offsets_ = nullptr;
  Word* memory_ = nullptr;
  int64_t before_[kStripTiles];  // rows of the tiles before
};

// Elements of a panel.
template <class T, class Weight>
int64_t panel_size(const Terms& terms) {
  return terms.segments * whole_groups<Weight>(terms.run) * kPanel<T>;
}

// Tiles from which on a panel is widened once, in memory of the thread. A float16 takes more
// instructions than a bfloat16, which is the upper half of a float. `fills`: with what fills up
// groups, as converted rows have it.
template <class Weight>
constexpr int kTilesToWiden = std::is_same_v<Weight, bfloat16> ? 3 : 2;
template <class T, class Weight>
const T* widened(const Weight* panel, const Terms& terms, bool fills) {
  T* const memory = aligned_scratch<T, 11>(panel_size<T, Weight>(terms));
  T* to = memory;
  for (int s = 0; s < terms.segments; ++s)
    for (int k = 0; k < terms.run; k += kGroup<Weight>, panel += kPanel<T> * kGroup<Weight>)
      to = widen_group(panel, fills ? kGroup<Weight> : std::min(kGroup<Weight>, terms.run - k), to);
  return memory;
}

// The elements that tile `next` reads beyond `now`, if they lie together.
template <class T>
Upcoming beyond(const Rows<T>& now, const Rows<T>& next, int64_t terms) {
  const bool overlap = next.from < now.to && now.to < next.to;
  const T* const from = overlap ? now.to : next.from;
  if (next.to - from > 2 * next.count * terms) return {};
  return Upcoming::of(from, next.to - from);
}

// The elements to prefetch after `panel`, of those from panels.begin to panels.end, while a strip
// of `tiles` uses it. A single tile reads its panels in a row, as fast as memory delivers them.
template <class T, class Weight>
Upcoming behind(const Contraction<T>& of, int64_t panel, Part panels, const Weight* weights,
                int64_t tiles, bool first_strip, bool last_strip) {
  const int64_t size = panel_size<T, Weight>(of.terms);
  const bool resident = panels.size() * size * int64_t{sizeof(Weight)} <= kResidentBytes;
  const bool last_panel = panel + 1 == panels.end;
  if (last_panel && last_strip) return of.next;
  if (tiles == 1 || panels.size() == 1 || (resident && (last_panel || !first_strip))) return {};
  return Upcoming::of(weights + (last_panel ? panels.begin : panel + 1) * size, size);
}

// The work of one tile of a strip with one panel.
template <class Word>
struct TileWork {
  int rows, vectors;  // of columns
  const Word* first;
  int64_t pitch;
  Terms terms;
  int number;        // of the tile in the strip
  bool first_panel;  // of the strip
  Upcoming upcoming;  // part `part` of `parts` of it
  int part, parts;
  MatrixUnit* unit;  // nullptr: vectors compute it
};

// Words that the unit multiplies.
template <class T, class Word>
constexpr bool kIsForUnit = FLASHLIGHT_HAS_MATRIX_UNIT && std::is_same_v<T, float> &&
                            std::is_same_v<Word, Group<bfloat16>>;

template <class T, class Weight, class Word>
void multiply_numbers(const TileWork<Word>& work, const Weight* panel, T (*sums)[kPanel<T>]) {
#if FLASHLIGHT_HAS_MATRIX_UNIT
  if constexpr (kIsForUnit<T, Word>)
    if (work.unit != nullptr) {
      Tile<T, Weight, Word> ahead = {};
      work.upcoming.add_to(ahead, work.part, work.parts);
      return work.unit->template multiply<T>(
          work.rows, work.vectors,
          {reinterpret_cast<const char*>(work.first), work.pitch * int64_t{sizeof(Word)},
           work.terms.offsets, sizeof(Word), work.terms.segments, work.terms.run,
           reinterpret_cast<const char*>(panel), ahead.ahead, ahead.ahead_lines},
          nullptr, sums);
    }
#endif
  Tile<T, Weight, Word> tile = {work.first, work.pitch, work.terms, panel};
  work.upcoming.add_to(tile, work.part, work.parts);
  multiply_tile(work.rows, work.vectors, tile, sums);
}

// Panels of numbers, as pack_panels makes them.
template <class T, class Weight, class Word>
struct NumberPanels {
  using Type = Weight;
  const Weight* panels;

  // multiply(tile) for panel `number`: tile(work, sums) computes one of `tiles`. Type: of what is
  // packed, whose groups converted rows follow.
  template <class Multiply>
  void use(const Contraction<T>& of, int64_t number, int64_t tiles, bool rows_lie,
           const Multiply& multiply) const {
    const auto with = [&](const auto* panel) {
      multiply([&](const TileWork<Word>& work, T(*sums)[kPanel<T>]) {
        multiply_numbers(work, panel, sums);
      });
    };
    const Weight* const panel = panels + number * panel_size<T, Weight>(of.terms);
    constexpr bool kWidens = std::is_same_v<Word, T> && !std::is_same_v<T, Weight>;
    if constexpr (kWidens) {
      if (tiles >= kTilesToWiden<Weight>) return with(widened<T>(panel, of.terms, !rows_lie));
    }
    with(panel);
  }
  // What to prefetch after that panel.
  Upcoming after(const Contraction<T>& of, int64_t number, Part mine, int64_t tiles,
                 bool first_strip, bool last_strip) const {
    return behind(of, number, mine, panels, tiles, first_strip, last_strip);
  }
};

// The loops around tiles: strips of rows, then panels.
template <class T, class Element, class Operand, class Word, class Panels>
void contract_by(const Team& team, const Contraction<T>& of, BaseOf<Element> base,
                 const Panels& panels, FinishOf<T> finish) {
  constexpr int64_t kColumns = kPanel<T>;
  if (of.outer <= 0 || of.inner <= 0 || of.columns <= 0) return;
  const bool by_unit = kIsForUnit<T, Word> && MatrixUnit::is_useful(of.outer * of.inner);
  MatrixUnit unit;
  StripRows<T, Element, Operand, Word, typename Panels::Type> all_rows(of, by_unit);
  const JoinedRuns joined =
      by_unit && all_rows.lie() ? joined_runs<T, Element>(of, base) : JoinedRuns{};
  const Tiling<T, Element> tiling(of, team.threads(), by_unit ? kUnitRows : kMostRows, joined);
  const bool by_rows = of.split == Split::rows;
  const int64_t all = (of.columns + kColumns - 1) / kColumns;
  const Part tiles = by_rows ? team.part(tiling.count()) : Part{0, tiling.count()};
  const Part mine = by_rows ? Part{0, all} : team.part(all);
  Rows<Element> strip[kStripTiles];
  constexpr int64_t kTermBytes = sizeof(Word) / all_rows.kTerms;
  alignas(kVectorBytes) T sums[kIsForUnit<T, Word> ? kUnitRows : kMostRows][kPanel<T>];
  for (int64_t begin = tiles.begin, count = 0; begin < tiles.end; begin += count) {
    count = tiling.strip(begin, tiles.end, base, all_rows.lie(), kTermBytes, strip);
    all_rows.take(strip, static_cast<int>(count));
    for (int64_t number = mine.begin; number < mine.end; ++number) {
      const int64_t column = number * kColumns;
      const int columns = static_cast<int>(std::min(kColumns, of.columns - column));
      const int vectors = columns > kColumns / 2 ? 2 : 1;
      const Upcoming upcoming = panels.after(of, number, mine, count, begin == tiles.begin,
                                             begin + count == tiles.end);
      panels.use(of, number, count, all_rows.lie(), [&](const auto& multiply) {
        for (int i = 0; i < count; ++i) {
          const Rows<Element>& rows = strip[i];
          // Rows that are read for the first time.
          const bool is_first = number == mine.begin;
          const bool reads_rows = all_rows.lie() && is_first && i + 1 < count;
          multiply(TileWork<Word>{rows.count, vectors, all_rows.first(i, rows), all_rows.pitch(),
                                  all_rows.terms(), i, is_first,
                                  reads_rows ? beyond(rows, strip[i + 1], of.terms.count())
                                             : upcoming,
                                  reads_rows ? 0 : i, reads_rows ? 1 : static_cast<int>(count),
                                  by_unit ? &unit : nullptr},
                   sums);
          tiling.finish(rows, column, columns, sums, finish);
        }
      });
    }
  }
}

}  // namespace detail

// finish(outer, inner, rows, column, columns, sums) is called once for each tile, by the thread
// that made it: sums[r][c] belongs to row `inner` + r of run `outer`, and to column `column` + c.
// The run's rows start at base(outer). `panels` is [panel][term][kPanel<T>], or in groups of terms
// [panel][segment][group][kPanel<T>][kGroup<Weight>]; the last one is filled up with zeros.
template <class T, class Element = T, class Operand = Element, class Weight = T>
void contract(const Team& team, const Contraction<T>& of, BaseOf<Element> base,
              const Weight* panels, FinishOf<T> finish) {
  using Word = detail::WordOf<T, Operand, Weight>;
  static_assert(kPanel<T> == kPanel<Weight>);
  detail::contract_by<T, Element, Operand, Word>(
      team, of, base, detail::NumberPanels<T, Weight, Word>{panels}, finish);
}

}  // namespace fl
