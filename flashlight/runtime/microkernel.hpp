// Sums of products of a few rows and one panel of columns: what all of a matrix product, and of a
// convolution, is made of.
//
//   const int32_t offsets[] = {0};
//   T sums[kMostRows][kPanel<T>];
//   multiply_tile<T>(12, 2, {x, pitch, {offsets, 1, 768, 1}, panel}, sums);
//
// Sums are of the type T. Weights may be of a smaller one, which is widened as they are loaded:
// bfloat16, of which the memory is half as long. Rows are of T, or of groups of neighbouring terms
// (words.hpp) whose products an instruction adds up. Then terms are counted in words.
//
// The sums stay in registers while the terms pass by: two vectors of columns, and as many rows as
// leave room for the operands. Rows are equally far apart, and every three of them share a base, of
// which an address is computed as base + {0, 1, 2} * stride.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "flashlight/runtime/flashlight.hpp"
#include "flashlight/runtime/lanes.hpp"
#include "flashlight/runtime/words.hpp"

namespace fl {

// Columns that are packed together, whose sums are two vectors: the weights of one term, of type T,
// are side by side.
template <class T>
constexpr int kPanel = 2 * detail::Vectors<detail::Computed<T>>::kLanes;

// AVX-512 has 32 registers, AVX2 and SSE have 16, and SSE needs some for products.
constexpr int kMostRows = detail::kVectorBytes == 64 ? 14 : detail::kVectorBytes == 32 ? 6 : 4;

// The offsets of a row's terms: offsets[s] + k * step for each segment s and k < run. A row of a
// matrix is one segment; a window of an image has one segment for each of its lines, or pixels.
struct Terms {
  const int32_t* offsets;
  int segments;
  int run;
  int step = 1;
  int64_t count() const { return int64_t{segments} * run; }
};

// Sums are taken in chunks of this many terms, and the chunks are added: the rounding error grows
// with the length of a chunk instead of the total.
constexpr int kTermsInARow = 768;

// sums[r][c] = sum of rows[r * row_stride + place of term t] * panel[t * kPanel + c] over all t
// (panels of groups have the terms of a group side by side, and whole groups in each segment),
// and what it was, if they `add` to it. With `minus`, differences panel[i] - panel[i + minus] stand
// for what is in the panel: of two vectors of columns, and as fast on cores that add beside their
// multiplications. Meanwhile `ahead_lines` lines of the cache are fetched from
// `ahead` on.
template <class T, class Weight = T, class Word = T>
struct Tile {
  const Word* rows;
  int64_t row_stride;
  Terms terms;
  const Weight* panel;
  const void* ahead = nullptr;
  int64_t ahead_lines = 0;
  bool add = false;
  int64_t minus = 0;
  int terms_in_a_row = kTermsInARow;
};

namespace detail {

constexpr int kLineBytes = 64;

// Fetches lines into the second level of the cache, evenly over the terms of a tile.
class Ahead {
 public:
  Ahead(const void* from, int64_t lines, int64_t terms)
      : next_(static_cast<const char*>(from)),
        per_term_(terms > 0 && lines > 0 ? static_cast<uint64_t>(lines * kOne / terms) : 0) {}

  FLASHLIGHT_INLINE void pass(int terms) {
    due_ += per_term_ * static_cast<uint64_t>(terms);
    for (; due_ >= kOne; due_ -= kOne, next_ += kLineBytes) __builtin_prefetch(next_, 0, 2);
  }

 private:
  static constexpr int64_t kOne = 1 << 16;
  const char* next_;
  uint64_t per_term_, due_ = kOne - 1;
};

// Else g++ reads what is used by few instructions in each of them, and cores read one long vector
// at a time.
template <class Vector>
FLASHLIGHT_INLINE void keep_in_register([[maybe_unused]] Vector& x) {
#if defined(__AVX512F__)
  asm("" : "+v"(x));
#elif defined(__SSE__)
  asm("" : "+x"(x));
#elif defined(__aarch64__)
  asm("" : "+w"(x));
#endif
}

// A sum is waited for before the next term is added. Few rows have few sums, so each of them is
// taken in parts.
constexpr int parts_of(int rows) { return rows == 1 ? 4 : rows <= 3 ? 2 : 1; }

// The sums of kRows rows and kVectors vectors of columns.
template <class T, class Weight, class Word, int kRows, int kVectors>
struct Accumulators {
  using V = Vectors<T>;
  static constexpr int kBases = (kRows + 2) / 3, kParts = parts_of(kRows);
  // Words of a row that share a vector of the panel; weights of that vector.
  static constexpr int kTogether = std::is_same_v<T, Word> ? kGroup<Weight> : 1;
  static constexpr int kWeights = kPanel<T> * kGroup<Weight>;
  typename V::Vector sums[kParts][kRows][kVectors];
  const Word* bases[kBases];

  FLASHLIGHT_INLINE void clear() {
#pragma GCC unroll 16
    for (int p = 0; p < kParts; ++p)
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 16
        for (int v = 0; v < kVectors; ++v) sums[p][r][v] = typename V::Vector{};
  }

  FLASHLIGHT_INLINE void start(const Word* rows, int64_t stride) {
#pragma GCC unroll 16
    for (int b = 0; b < kBases; ++b) bases[b] = rows + 3 * b * stride;
  }

  // One word of each row: scalar * vector, which needs no vector of the scalar to be made first.
  template <int kPart, int kNumber, bool kMinus>
  FLASHLIGHT_INLINE void add_word(int64_t stride, int64_t step_bytes, const Weight* panel,
                                  int64_t minus) {
    typename V::Vector right[kVectors];
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      const Weight* const from = panel + v * V::kLanes * kGroup<Weight>;
      if constexpr (std::is_same_v<T, Word>)
        right[v] = load_part<T, Weight, kNumber>(from);
      else
        std::memcpy(&right[v], from, sizeof right[v]);
      if constexpr (kMinus) right[v] -= load_as<T>(from + minus);
      keep_in_register(right[v]);
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const Word& left = bases[r / 3][(r % 3) * stride];
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) add_products(sums[kPart][r][v], left, right[v]);
    }
#pragma GCC unroll 16
    for (int b = 0; b < kBases; ++b)
      bases[b] =
          reinterpret_cast<const Word*>(reinterpret_cast<const char*>(bases[b]) + step_bytes);
  }
  // The words that share one vector of the panel.
  template <int kPart, bool kMinus>
  FLASHLIGHT_INLINE void add(int64_t stride, int64_t step_bytes, const Weight* panel,
                             int64_t minus) {
    add_word<kPart, 0, kMinus>(stride, step_bytes, panel, minus);
    if constexpr (kTogether > 1) add_word<kPart, 1, kMinus>(stride, step_bytes, panel, minus);
    static_assert(kTogether <= 2);
  }

  FLASHLIGHT_INLINE void store(T (*to)[kPanel<T>], bool add) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) {
        typename V::Vector sum = sums[0][r][v];
        if constexpr (kParts == 2) sum += sums[1][r][v];
        if constexpr (kParts == 4) sum = (sum + sums[1][r][v]) + (sums[2][r][v] + sums[3][r][v]);
        if (add) sum += V::load(&to[r][v * V::kLanes]);
        std::memcpy(&to[r][v * V::kLanes], &sum, sizeof sum);
      }
  }
};

template <class T, class Weight, class Word, int kRows, int kVectors, bool kMinus>
[[gnu::noinline]] void multiply(const Tile<T, Weight, Word>& tile, T (*sums)[kPanel<T>]) {
  using All = Accumulators<T, Weight, Word, kRows, kVectors>;
  constexpr int kParts = parts_of(kRows), kTogether = All::kTogether, kWeights = All::kWeights;
  All all;
  const int64_t stride = tile.row_stride;
  const int run = tile.terms.run, block = tile.ahead_lines > 0 ? 16 : run;
  // In bytes: of elements, the loop would be compiled a second time for steps of one.
  const int64_t step = tile.terms.step * static_cast<int64_t>(sizeof(Word));
  const int64_t minus = tile.minus;
  const Weight* panel = tile.panel;
  Ahead ahead(tile.ahead, tile.ahead_lines, tile.terms.count());
  int segment = 0, begin = 0;
  bool add = tile.add;
  do {
    all.clear();
    for (int room = tile.terms_in_a_row; room > 0 && segment < tile.terms.segments;) {
      const int end = run - begin < room ? run : begin + room;
      all.start(tile.rows + tile.terms.offsets[segment] + int64_t{begin} * tile.terms.step, stride);
      for (int first = begin; first < end; first += block) {
        const int count = end - first < block ? end - first : block;
        ahead.pass(count);
        int k = 0;
        for (; k + kParts * kTogether <= count;
             k += kParts * kTogether, panel += kParts * kWeights) {
          all.template add<0, kMinus>(stride, step, panel, minus);
          if constexpr (kParts > 1) all.template add<1, kMinus>(stride, step, panel + kWeights, minus);
          if constexpr (kParts > 2) {
            all.template add<2, kMinus>(stride, step, panel + 2 * kWeights, minus);
            all.template add<3, kMinus>(stride, step, panel + 3 * kWeights, minus);
          }
        }
        if constexpr (kParts > 1)
          for (; k + kTogether <= count; k += kTogether, panel += kWeights)
            all.template add<0, kMinus>(stride, step, panel, minus);
        if constexpr (kTogether > 1)  // half of a group, which is the last of its segment
          for (; k < count; k += kTogether, panel += kWeights)
            all.template add_word<0, 0, kMinus>(stride, step, panel, minus);
      }
      room -= end - begin;
      begin = end == run ? 0 : end;
      segment += end == run ? 1 : 0;
    }
    all.store(sums, add);
    add = true;
  } while (segment < tile.terms.segments);
}

template <class T, class Weight = T, class Word = T>
using Multiply = void (*)(const Tile<T, Weight, Word>&, T (*)[kPanel<T>]);
template <class T, class Weight, class Word, int kVectors, bool kMinus, std::size_t... kIndices>
constexpr std::array<Multiply<T, Weight, Word>, kMostRows> multiplications(
    std::index_sequence<kIndices...>) {
  return {{&multiply<T, Weight, Word, static_cast<int>(kIndices) + 1, kVectors, kMinus>...}};
}
using Heights = std::make_index_sequence<kMostRows>;
template <class T, class Weight = T, class Word = T>
Multiply<T, Weight, Word> multiplication(int rows, int vectors) {
  static constexpr auto kOne = multiplications<T, Weight, Word, 1, false>(Heights()),
                        kTwo = multiplications<T, Weight, Word, 2, false>(Heights());
  return (vectors == 1 ? kOne : kTwo)[static_cast<std::size_t>(rows - 1)];
}

template <class T>
Multiply<T> multiplication_by_difference(int rows) {
  static constexpr auto kAll = multiplications<T, T, T, 2, true>(Heights());
  return kAll[static_cast<std::size_t>(rows - 1)];
}

}  // namespace detail

// 1 to kMostRows rows, and 1 or 2 vectors of columns: of others, `sums` are left as they were.
template <class T, class Weight = T, class Word = T>
void multiply_tile(int rows, int vectors, const Tile<T, Weight, Word>& tile,
                   T (*sums)[kPanel<T>]) {
  detail::multiplication<T, Weight, Word>(rows, vectors)(tile, sums);
}
template <class T>
void multiply_tile_by_difference(int rows, const Tile<T>& tile, T (*sums)[kPanel<T>]) {
  detail::multiplication_by_difference<T>(rows)(tile, sums);
}

}  // namespace fl
