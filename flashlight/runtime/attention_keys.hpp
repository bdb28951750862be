// The keys and values of attention as tiles read them: what attention.hpp computes with.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "flashlight/runtime/lanes.hpp"
#include "flashlight/runtime/matrix_unit.hpp"
#include "flashlight/runtime/microkernel.hpp"
#include "flashlight/runtime/words.hpp"

namespace fl {

// Elements of a query, key or value lie side by side, those of the next one a stride further.
template <class T>
struct Attention {
  int64_t queries, keys, width, value_width;
  int64_t query_stride, key_stride, value_stride, result_stride;
  T scale;
  bool gives_zeros = false;  // a query that sees no key; otherwise it gives NaN
};

namespace detail {

constexpr int kMostKeys = 140;  // of a block, whose scores stay in the first level of the cache
// Rows of a tile, of keys or of elements.
constexpr int kTallestTile = FLASHLIGHT_HAS_MATRIX_UNIT ? kUnitRows : kMostRows;

// The keys and values of a block of them, as tiles read them, and weights as tiles read those:
// where they lie if they are of type T. Others are made in memory, of one block after the other, or
// of several that several blocks of queries read.
template <class T, class Element, class Operand>
class KeyBlock {
 public:
  using Word = WordOf<T, Operand, Operand>;
  static constexpr bool kPairs = !std::is_same_v<T, Word>;
  static constexpr bool kRounds = kPairs && !std::is_same_v<Element, Operand>;
  static constexpr bool kLie = std::is_same_v<T, Element> && !kPairs;
  // The type of the panels of queries and weights.
  using Packed = std::conditional_t<kPairs, Operand, T>;

  KeyBlock(const Attention<T>& of, T* memory)
      : of_(of),
        by_unit_(kPairs && MatrixUnit::is_useful(of.keys)),
        copies_(!kPairs || kRounds || (by_unit_ && of.width % (2 * kStepWords) != 0)),
        loose_(memory),
        blocks_(memory + loose_size(of)) {
    enter(0);
  }
  // For so many blocks, in elements of T.
  static int64_t memory(const Attention<T>& of, int64_t blocks) {
    if constexpr (kLie) return 0;
    return loose_size(of) + blocks * block_size(of);
  }
  // Turns to the memory of a block.
  void enter(int64_t number) {
    keys_ = blocks_ + number * block_size(of_);
    values_ = keys_ + key_size(of_);
  }
  // Rows of a tile.
  int most_rows() const { return by_unit_ ? kTallestTile : kMostRows; }

  // A tile of `rows` keys from number `begin` on of the block at `k`, times queries.
  void multiply_keys(const Element* k, int64_t begin, int rows, int vectors, const Packed* queries,
                     T (*scores)[kPanel<T>]) {
    const int32_t offset = 0;
    constexpr int kTerms = kPairs ? 2 : 1;
    const Terms terms = {&offset, 1, static_cast<int>(of_.width / kTerms)};
    if constexpr (kLie || kPairs) {
      const bool lie = kLie || !copies_;
      const auto* const from = lie ? reinterpret_cast<const Word*>(k)
                                   : reinterpret_cast<const Word*>(keys_);
      const int64_t pitch = lie ? of_.key_stride / kTerms : whole_steps(of_.width / 2);
      if (by_unit_)
        return multiply_by_unit(rows, vectors, from + begin * pitch, pitch, terms.run, queries,
                                scores);
      multiply_tile(rows, vectors,
                    Tile<T, Packed, Word>{from + begin * pitch, pitch, terms, queries}, scores);
    } else {
      multiply_tile(rows, vectors,
                    Tile<T>{keys_ + begin * of_.width, of_.width, terms, queries}, scores);
    }
  }
  void take_keys([[maybe_unused]] const Element* k, [[maybe_unused]] int64_t keys) const {
    if constexpr (kPairs)
      if (copies_) {
        const int64_t words = of_.width / 2, pitch = whole_steps(words);
        for (int64_t i = 0; i < keys; ++i) {
          convert<Operand>(k + i * of_.key_stride, 1, of_.width,
                           reinterpret_cast<Operand*>(keys_ + i * pitch));
          std::fill(keys_ + i * pitch + words, keys_ + (i + 1) * pitch, T(0));
        }
      }
    if constexpr (!kLie && !kPairs)
      for (int64_t i = 0; i < keys; ++i)
        widen(k + i * of_.key_stride, 1, of_.width, keys_ + i * of_.width);
  }

  void take_values([[maybe_unused]] const Element* v, [[maybe_unused]] int64_t keys) const {
    if constexpr (kPairs) {
      if (by_unit_) return turn_values(v, keys);
      for (int64_t i = 0; i < keys; i += 2)
        join(v + i * of_.value_stride, i + 1 < keys ? of_.value_stride : 0,
             reinterpret_cast<Operand*>(values_ + i / 2 * of_.value_width));
    } else if constexpr (!kLie) {
      for (int64_t i = 0; i < keys; ++i)
        widen(v + i * of_.value_stride, 1, of_.value_width, values_ + i * of_.value_width);
    }
  }
  void take_weights([[maybe_unused]] const T (*weights)[kPanel<T>],
                    [[maybe_unused]] int64_t keys) const {
    if constexpr (kPairs)
      for (int64_t i = 0; i < keys; i += 2)
        join_weights(weights[i], i + 1 < keys ? weights[i + 1] : nullptr,
                     loose_ + i / 2 * kPanel<T>);
  }
  // A tile of `rows` elements of the values from number `begin` on, times weights.
  void multiply_values(const Element* v, int64_t begin, int rows, int vectors, int64_t keys,
                       const T (*weights)[kPanel<T>], T (*results)[kPanel<T>]) {
    const int32_t offset = 0;
    if (by_unit_) {
      const int64_t pairs = (keys + 1) / 2, pitch = whole_steps(pairs);
      return multiply_by_unit(rows, vectors, values_ + begin * pitch, pitch, pairs, loose_,
                              results);
    }
    const auto terms = [&](int64_t count, int64_t step) {
      return Terms{&offset, 1, static_cast<int>(count), static_cast<int>(step)};
    };
    if constexpr (kPairs) {
      const auto* const from = reinterpret_cast<const Word*>(values_) + begin;
      const auto* const packed = reinterpret_cast<const Operand*>(loose_);
      multiply_tile(rows, vectors,
                    Tile<T, Packed, Word>{from, 1, terms((keys + 1) / 2, of_.value_width), packed},
                    results);
    } else if constexpr (kLie) {
      multiply_tile(rows, vectors, Tile<T>{v + begin, 1, terms(keys, of_.value_stride), weights[0]},
                    results);
    } else {
      multiply_tile(rows, vectors,
                    Tile<T>{values_ + begin, 1, terms(keys, of_.value_width), weights[0]}, results);
    }
  }
  // So many queries as tiles read them: as they lie, or rounded, side by side in memory that
  // weights take later.
  const void* rounded(const Element* q, [[maybe_unused]] int64_t count) const {
    if constexpr (kRounds) {
      auto* const to = reinterpret_cast<Operand*>(loose_);
      for (int64_t i = 0; i < count; ++i)
        convert<Operand>(q + i * of_.query_stride, 1, of_.width, to + i * of_.width);
      return loose_;
    }
    return q;
  }
  // So many rows of results that lie `pitch` apart in memory of the thread's.
  void store_results(const T* from, int64_t pitch, int64_t count, Element* result) const {
    if constexpr (std::is_same_v<T, Element>) {
      transpose(from, pitch, of_.value_width, count, result, of_.result_stride);
    } else {
      transpose(from, pitch, of_.value_width, count, loose_, of_.value_width);
      for (int64_t i = 0; i < count; ++i)
        convert<Element>(loose_ + i * of_.value_width, 1, of_.value_width,
                         result + i * of_.result_stride);
    }
  }

 private:
  static constexpr int64_t whole_steps(int64_t words) {
    return (words + kStepWords - 1) / kStepWords * kStepWords;
  }
  // Pairs of keys in a block, in whole steps.
  static constexpr int64_t kMostPairs = whole_steps((kMostKeys + 1) / 2);
  static int64_t key_size(const Attention<T>& of) {
    return kMostKeys * (kPairs ? whole_steps((of.width + 1) / 2) : of.width);
  }
  static int64_t block_size(const Attention<T>& of) {
    return key_size(of) + (kPairs ? kMostPairs : kMostKeys) * of.value_width;
  }
  // Weights, queries, or results.
  static int64_t loose_size(const Attention<T>& of) {
    return kPanel<T> * std::max({kMostPairs, (of.width + 1) / 2, of.value_width});
  }

  // `pitch` in words.
  void multiply_by_unit([[maybe_unused]] int rows, [[maybe_unused]] int vectors,
                        [[maybe_unused]] const void* from, [[maybe_unused]] int64_t pitch,
                        [[maybe_unused]] int64_t words, [[maybe_unused]] const void* panel,
                        [[maybe_unused]] T (*sums)[kPanel<T>]) {
#if FLASHLIGHT_HAS_MATRIX_UNIT
    const int32_t offset = 0;
    if constexpr (kPairs)
      unit_.template multiply<T>(rows, vectors,
                                 {static_cast<const char*>(from), pitch * int64_t{sizeof(Word)},
                                  &offset, 1, 1, static_cast<int>(words),
                                  static_cast<const char*>(panel)},
                                 nullptr, sums);
#endif
  }

  // values_[element][pair of keys], with zeros behind the last pair.
  void turn_values(const Element* v, int64_t keys) const {
    const int64_t pairs = (keys + 1) / 2, pitch = whole_steps(pairs);
    auto* const to = reinterpret_cast<uint32_t*>(values_);
    for (int64_t j = 0; j < of_.value_width; ++j)
      std::memset(to + j * pitch, 0, static_cast<std::size_t>(pitch) * sizeof *to);
    int64_t first = 0;
    if (turn_pairs(v, of_.value_stride, keys / 2 * 2, of_.value_width, to, pitch))
      first = keys / 2 * 2;
    for (int64_t i = first; i < keys; ++i)
      for (int64_t j = 0; j < of_.value_width; ++j)
        to[j * pitch + i / 2] |= uint32_t{Operand(v[i * of_.value_stride + j]).bits} << (i % 2 * 16);
  }

  // Elements of two values side by side. Without a second one (`to_next` is 0), that one is zeros.
  void join(const Element* from, int64_t to_next, Operand* to) const {
    constexpr int64_t kLanes = Vectors<uint32_t>::kLanes;
    int64_t j = 0;
    for (; j + kLanes <= of_.value_width; j += kLanes) {
      Vector<uint32_t> pair = bfloat16_bits(from + j);
      if (to_next != 0) pair |= bfloat16_bits(from + j + to_next) << 16;
      std::memcpy(static_cast<void*>(to + 2 * j), &pair, sizeof pair);
    }
    for (; j < of_.value_width; ++j) {
      to[2 * j] = Operand(from[j]);
      to[2 * j + 1] = to_next != 0 ? Operand(from[j + to_next]) : Operand();
    }
  }
  // Rounded to nearest, ties to even.
  static void join_weights(const T* first, const T* second, T* to) {
    using Bits = Vector<uint32_t>;
    const auto rounded = [](const T* from) {
      const Vector<T> x = load(from);
      const Bits bits = bit_cast<Bits>(x), quiet = Bits{} + 0x7fc00000u;
      return x == x ? bits + 0x7fffu + ((bits >> 16) & 1u) : quiet;
    };
    for (int v = 0; v < 2; ++v, first += Vectors<T>::kLanes, to += Vectors<T>::kLanes) {
      Bits pair = rounded(first) >> 16;
      if (second != nullptr) pair |= rounded(second + v * Vectors<T>::kLanes) & 0xffff0000u;
      store<T>(bit_cast<Vector<T>>(pair), to);
    }
  }

  const Attention<T>& of_;
  const bool by_unit_, copies_;
  T *const loose_, *const blocks_, *keys_ = nullptr, *values_ = nullptr;
  MatrixUnit unit_;
};

}  // namespace detail
}  // namespace fl
