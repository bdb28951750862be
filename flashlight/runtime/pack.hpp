// Weights from where they lie to panels.
//
//   Packing of = {{{1, 0}, {3, 3 * channels}, {3, channels}, {channels, 1}}, {out, 9 * channels}};
//   std::vector<float> panels(packed_size<float>(of));
//   pack_panels<float>(team, of, weight, panels.data());  // [panel][ky, kx, channel][kPanel]
//
// Terms are counted by four nested loops, the last one fastest. A number of a smaller type lies in a
// group with its neighbours along the last loop (words.hpp); what is left of the last group is 0.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "flashlight/runtime/lanes.hpp"
#include "flashlight/runtime/microkernel.hpp"
#include "flashlight/runtime/team.hpp"
#include "flashlight/runtime/words.hpp"

namespace fl {

// A loop over memory; the stride is in elements.
struct Loop {
  int64_t extent = 1, stride = 0;
};

struct Packing {
  Loop terms[4];
  Loop columns;
  int64_t term_count() const {
    return terms[0].extent * terms[1].extent * terms[2].extent * terms[3].extent;
  }
};

// Terms of a panel, in whole groups.
template <class T>
int64_t packed_terms(const Packing& of) {
  return of.terms[0].extent * of.terms[1].extent * of.terms[2].extent *
         whole_groups<T>(of.terms[3].extent);
}
// Elements of the panels.
template <class T>
int64_t packed_size(const Packing& of) {
  return (of.columns.extent + kPanel<T> - 1) / kPanel<T> * kPanel<T> * packed_terms<T>(of);
}

namespace detail {

// A loop of a packing: `to` is its stride in the panel.
struct PackLoop {
  int64_t extent, from, to;
};

// T as what is moved and not computed with, of which there are vectors.
template <class T>
using Moved = std::conditional_t<sizeof(T) == 2, uint16_t, T>;

template <class T, class From>
class Packer {
 public:
  explicit Packer(const Packing& of) : of_(of) {
    int64_t to = kPanel<T>;
    for (int i = 3; i >= 0; --i) {
      loops_[i] = {of.terms[i].extent, of.terms[i].stride, to};
      to *= of.terms[i].extent;
    }
    std::stable_sort(loops_, loops_ + 4, [](const PackLoop& a, const PackLoop& b) {
      return std::abs(a.from) > std::abs(b.from);
    });
    for (int i = 3; i >= 0 && (loops_[i].extent == 1 || loops_[i].from == dense_); --i) {
      dense_ *= loops_[i].extent;
      first_dense_ = i;
    }
    const bool near = dense_ > 1 && of.columns.stride > 1 && of.columns.stride <= kMostApart;
    copies_ = dense_ < kLanes;
    turns_ = std::is_same_v<T, From> && of.columns.stride != 1 && (near || !copies_);
  }

  // Independent parts of the work for one panel.
  int64_t parts() const {
    if (turns_) return (dense_ + kBlock - 1) / kBlock * rest();
    return loops_[0].extent;
  }

  // True if memory has a part of all panels before the next part of one of them.
  bool parts_are_outside() const {
    return std::abs(loops_[0].from) > std::abs(of_.columns.stride) * kPanel<T> ||
           (turns_ && copies_);
  }

  // Part `part` of a panel of this number of columns.
  void pack(int64_t part, const From* from, const T* factors, int columns, T* to) const {
    if constexpr (std::is_same_v<T, From>) {
      if (turns_) return turn(part, from, factors, columns, to);
    }
    from += part * loops_[0].from, to += part * loops_[0].to;
    PackLoop loops[4] = {loops_[1], loops_[2], loops_[3], {columns, of_.columns.stride, 1}};
    if (columns < kPanel<T>) {
      loops[3].extent = kPanel<T> - columns;
      walk(loops, [&](int64_t, int64_t at) { to[at + columns] = T(0); });
      loops[3].extent = columns;
    }
    // Columns come last, unless they are so far apart that lines of the cache had gone before all
    // of them are used up.
    if (kPanel<T> * std::abs(of_.columns.stride) * int64_t{sizeof(From)} > kNear)
      for (int i = 3; i > 0 && std::abs(loops[i].from) > std::abs(loops[i - 1].from); --i)
        std::swap(loops[i], loops[i - 1]);
    if (factors == nullptr)
      walk(loops, [&](int64_t i, int64_t at) { to[at] = static_cast<T>(from[i]); });
    else
      walk(loops, [&](int64_t i, int64_t at) {
        to[at] = static_cast<T>(from[i]) * factors[at % kPanel<T>];
      });
  }

 private:
  static constexpr int64_t kBlock = 64, kNear = 8192, kMostApart = 32;
  static constexpr int64_t kLanes = Vectors<Moved<T>>::kLanes;
  static const Moved<T>* moved(const T* x) { return reinterpret_cast<const Moved<T>*>(x); }
  static Moved<T>* moved(T* x) { return reinterpret_cast<Moved<T>*>(x); }

  template <class Visit>
  FLASHLIGHT_INLINE static void walk(const PackLoop (&loops)[4], const Visit& visit) {
    for (int64_t a = 0; a < loops[0].extent; ++a)
      for (int64_t b = 0; b < loops[1].extent; ++b)
        for (int64_t c = 0; c < loops[2].extent; ++c) {
          int64_t from = a * loops[0].from + b * loops[1].from + c * loops[2].from;
          int64_t to = a * loops[0].to + b * loops[1].to + c * loops[2].to;
          if (loops[3].from == 1 && loops[3].to == 1) {
            for (int64_t d = 0; d < loops[3].extent; ++d) visit(from + d, to + d);
            continue;
          }
          for (int64_t d = 0; d < loops[3].extent; ++d, from += loops[3].from, to += loops[3].to)
            visit(from, to);
        }
  }

  // Rounds of the loops outside of what lies without gaps.
  int64_t rest() const {
    int64_t count = 1;
    for (int i = 0; i < first_dense_; ++i) count *= loops_[i].extent;
    return count;
  }

  // Columns far apart whose terms lie without gaps: squares of them are transposed in registers.
  void turn(int64_t part, const T* from, const T* factors, int columns, T* to) const {
    const int64_t blocks = (dense_ + kBlock - 1) / kBlock;
    const int64_t begin = part % blocks * kBlock, end = std::min(begin + kBlock, dense_);
    int64_t round = part / blocks;
    for (int i = first_dense_ - 1; i >= 0; --i) {
      from += round % loops_[i].extent * loops_[i].from;
      to += round % loops_[i].extent * loops_[i].to;
      round /= loops_[i].extent;
    }
    alignas(kVectorBytes) T turned[kBlock][kPanel<T>];
    if (columns < kPanel<T>) std::fill_n(turned[0], kBlock * kPanel<T>, T(0));
    if (copies_) {
      turn_near(from, columns, part + 1 < rest(), turned);
    } else {
      for (int c = 0; c < columns; ++c)  // the next block
        for (int64_t i = 0; i < kBlock; i += kLineBytes / int64_t{sizeof(T)})
          __builtin_prefetch(from + c * of_.columns.stride + end + i);
      transpose(moved(from + begin), of_.columns.stride, columns, end - begin, moved(turned[0]),
                kPanel<T>);
    }
    Places place(*this, begin);
    for (int64_t i = 0; i < end - begin; ++i, place.next()) {
      for (int c = 0; factors != nullptr && c < columns; ++c)
        turned[i][c] = static_cast<T>(turned[i][c] * factors[c]);
      std::memcpy(to + place.to, turned[i], sizeof turned[i]);
    }
  }
  // A few terms of columns that are not much farther apart: squares reach over the next columns,
  // and over the end of memory at the last ones, which are copied therefore.
  void turn_near(const T* from, int columns, bool has_more, T (&turned)[kBlock][kPanel<T>]) const {
    const int64_t pitch = of_.columns.stride;
    alignas(kVectorBytes) T copy[kPanel<T> * kMostApart + kLanes];
    if (!has_more || columns < kPanel<T>) {
      std::fill_n(copy, kPanel<T> * pitch + kLanes, T(0));
      std::copy_n(from, (columns - 1) * pitch + dense_, copy);
      from = copy;
    }
    for (int64_t c = 0; c < columns; c += kLanes)
      transpose_square(moved(from + c * pitch), pitch, moved(turned[0] + c), kPanel<T>);
  }
  // The offsets in the panel of terms that lie one after the other without gaps.
  struct Places {
    const Packer& packer;
    int64_t at[4] = {}, to = 0;

    Places(const Packer& of, int64_t first) : packer(of) {
      for (int i = 3; i >= of.first_dense_; --i) {
        at[i] = first % of.loops_[i].extent;
        to += at[i] * of.loops_[i].to;
        first /= of.loops_[i].extent;
      }
    }
    FLASHLIGHT_INLINE void next() {
      for (int i = 3; i >= packer.first_dense_; --i) {
        to += packer.loops_[i].to;
        if (++at[i] < packer.loops_[i].extent) return;
        to -= at[i] * packer.loops_[i].to;
        at[i] = 0;
      }
    }
  };

  const Packing& of_;
  PackLoop loops_[4];  // of terms, the largest steps first
  int64_t dense_ = 1;  // elements without gaps, by the loops from first_dense_ on
  int first_dense_ = 4;
  bool turns_, copies_;  // whether squares are transposed; those of a copy
};

// The same for types whose terms lie in groups.
template <class T, class From>
class GroupPacker {
 public:
  explicit GroupPacker(const Packing& of)
      : of_(of), blocks_((of.terms[3].extent + kBlock - 1) / kBlock) {
    bool whole = std::is_same_v<T, From> && kBytes == 4 && of.terms[3].stride == 1 &&
                 of.columns.stride % kGroup<T> == 0 && of.terms[3].extent % kGroup<T> == 0;
    for (int i = 0; i < 3; ++i)
      whole = whole && (of.terms[i].extent == 1 || of.terms[i].stride % kGroup<T> == 0);
    has_words_ = whole;
  }

  int64_t parts() const {
    return of_.terms[0].extent * of_.terms[1].extent * of_.terms[2].extent * blocks_;
  }
  bool parts_are_outside() const { return of_.columns.stride == 1; }

  template <class Factor>
  void pack(int64_t part, const From* from, const Factor* factors, int columns, T* to) const {
    const int64_t first = part % blocks_ * kBlock, segment = part / blocks_;
    const int64_t run = of_.terms[3].extent, end = std::min(first + kBlock, run);
    int64_t rest = segment;
    for (int i = 2; i >= 0; rest /= of_.terms[i--].extent)
      from += rest % of_.terms[i].extent * of_.terms[i].stride;
    to += (segment * whole_groups<T>(run) + first) * kPanel<T>;
    const bool even = reinterpret_cast<std::uintptr_t>(from) % kBytes == 0;
    if (columns < kPanel<T> || end % kGroup<T> != 0)
      std::fill_n(to, whole_groups<T>(end - first) * kPanel<T>, T(0));
    if constexpr (std::is_same_v<T, From>) {
      if (factors == nullptr && has_words_ && even)
        return turn_words(from + first, columns, (end - first) / kGroup<T>, to);
    }
    int64_t begin = first;
    if constexpr (std::is_same_v<T, bfloat16> && kHasPairs<From>) {
      if (factors == nullptr && of_.columns.stride == 1 && columns == kPanel<T>)
        begin = pair_terms(from, first, end, to);
      else if (factors == nullptr && of_.terms[3].stride == 1)
        return pair_columns(from + first, columns, end - first, to);
    }
    for (int64_t k = begin; k < end; ++k)
      pack_term(from + k * of_.terms[3].stride, factors, columns,
                to + (k - first) / kGroup<T> * kPanel<T> * kGroup<T> + k % kGroup<T>);
  }

 private:
  static constexpr int64_t kBlock = 64, kBytes = kGroup<T> * int64_t{sizeof(T)};

  // Each column's groups are words side by side: squares of them are transposed.
  void turn_words(const T* from, int columns, int64_t groups, T* to) const {
    transpose(reinterpret_cast<const uint32_t*>(from), of_.columns.stride / kGroup<T>, columns,
              groups, reinterpret_cast<uint32_t*>(to), kPanel<T>);
  }
  // Columns side by side: vectors of two terms each are pairs. Returns the first term that is left.
  int64_t pair_terms(const From* from, int64_t first, int64_t end, T* to) const {
    constexpr int64_t kLanes = Vectors<uint32_t>::kLanes;
    auto* const words = reinterpret_cast<uint32_t*>(to);
    int64_t k = first;
    for (; k + 1 < end; k += 2)
      for (int64_t c = 0; c < kPanel<T>; c += kLanes) {
        const From* const even = from + k * of_.terms[3].stride + c;
        store<uint32_t>(pairs(even, even + of_.terms[3].stride),
                        words + (k - first) / 2 * kPanel<T> + c);
      }
    return k;
  }
  // Terms side by side, and to be rounded, or at odd places.
  void pair_columns(const From* from, int columns, int64_t terms, T* to) const {
    alignas(kVectorBytes) T rounded[kPanel<T>][kBlock];
    for (int c = 0; c < columns; ++c) {
      convert<T>(from + c * of_.columns.stride, 1, terms, rounded[c]);
      if (terms % kGroup<T> != 0) rounded[c][terms] = T(0);
    }
    transpose(reinterpret_cast<const uint32_t*>(rounded[0]), kBlock / kGroup<T>, columns,
              whole_groups<T>(terms) / kGroup<T>, reinterpret_cast<uint32_t*>(to), kPanel<T>);
  }
  template <class Factor>
  void pack_term(const From* from, const Factor* factors, int columns, T* to) const {
    const int64_t stride = of_.columns.stride;
    for (int c = 0; c < columns; ++c) {
      const From x = from[c * stride];
      to[c * kGroup<T>] = factors == nullptr ? static_cast<T>(x) : static_cast<T>(x * factors[c]);
    }
  }

  const Packing& of_;
  const int64_t blocks_;
  bool has_words_;
};

template <class T, class From>
using PackerOf = std::conditional_t<kGroup<T> == 1, Packer<T, From>, GroupPacker<T, From>>;

}  // namespace detail

// Packs what starts at `from`, column c times factors[c] if there are any. The threads of the team
// share the work; nobody waits.
template <class T, class From, class Factor = T>
void pack_panels(const Team& team, const Packing& of, const From* from, T* panels,
                 const Factor* factors = nullptr) {
  const int64_t count = packed_terms<T>(of), all = (of.columns.extent + kPanel<T> - 1) / kPanel<T>;
  const detail::PackerOf<T, From> packer(of);
  const int64_t parts = packer.parts();
  const bool outside = packer.parts_are_outside();
  const auto pack = [&](int64_t panel, int64_t part) {
    const int64_t first = panel * kPanel<T>;
    const auto columns = static_cast<int>(std::min<int64_t>(kPanel<T>, of.columns.extent - first));
    packer.pack(part, from + first * of.columns.stride,
                factors == nullptr ? nullptr : factors + first, columns, panels + first * count);
  };
  // If threads share columns, the thread that packs a panel multiplies with it.
  const bool by_panels = all % team.threads() == 0 || all >= 8 * team.threads();
  const Part mine = team.part(by_panels ? all : all * parts);
  const int64_t width = by_panels ? mine.size() : all, begin = by_panels ? mine.begin : 0;
  const Part units = by_panels ? Part{0, width * parts} : mine;
  for (int64_t i = units.begin; i < units.end; ++i)
    pack(begin + (outside ? i % width : i / parts), outside ? i / width : i % parts);
}

}  // namespace fl
