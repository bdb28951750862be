// Attention without the matrix of scores: softmax(scale * Q K^T + bias) V, a block of queries and a
// block of keys at a time.
//
//   Attention<float> of = {128, 128, 64, 64, 768, 768, 768, 768, 0.125f};
//   attend(of, q, k, v, result, 0, 128, Causal());
//   attend_all(team, of, 12,
//              [&](int64_t head) -> Heads<float> {
//                return {q + 64 * head, k + 64 * head, v + 64 * head, result + 64 * head};
//              },
//              [&](int64_t head) {
//                return [=](int64_t query, int64_t key) { return mask[key]; };
//              });
//
// Queries are the lanes of vectors: scores are tiles of keys by queries, of which each query has
// its largest and its sum in one lane, and results are tiles of a value's elements by queries. So
// both products are those of microkernel.hpp, and nothing is reduced across lanes. Sums over keys
// are taken block by block, which keeps them accurate however many keys there are. Softmax as keys
// come: M. Milakov and N. Gimelshein, "Online normalizer calculation for softmax" (2018).
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "flashlight/runtime/lanes.hpp"
#include "flashlight/runtime/microkernel.hpp"
#include "flashlight/runtime/team.hpp"

namespace fl {

// Elements of a query, key or value lie side by side, those of the next one a stride further.
template <class T>
struct Attention {
  int64_t queries, keys, width, value_width;
  int64_t query_stride, key_stride, value_stride, result_stride;
  T scale;
  bool gives_zeros = false;  // a query that sees no key; otherwise it gives NaN
};

// Kinds of bias on scores: none; none, with keys up to the query's number alone; or a function of
// (query, key) that is added, where -inf takes the key away.
struct NoBias {};
struct Causal {};

namespace detail {

constexpr int kMostKeys = 140;  // of a block, whose scores stay in the first level of the cache
constexpr double kLog2OfE = 1.4426950408889634;

template <class Vector>
FLASHLIGHT_INLINE Vector larger(Vector x, Vector y) {
  return y > x ? y : x;
}

// A block of queries. Their scores are in units of log(2), so that weights are powers of two.
template <class T>
class QueryBlock {
 public:
  QueryBlock(const Attention<T>& of, T* memory)
      : of_(of),
        queries_(memory),
        results_(queries_ + of.width * kPanel<T>),
        scores_(reinterpret_cast<T (*)[kPanel<T>]>(results_ + of.value_width * kPanel<T>)) {}
  static int64_t memory(const Attention<T>& of) {
    return (of.width + of.value_width + kMostKeys + kMostRows) * kPanel<T>;
  }

  template <int kVectors, class Bias>
  void attend(const T* q, const T* k, const T* v, T* result, int64_t first, int64_t count,
              const Bias& bias) {
    first_ = first, count_ = count;
    start<kVectors>(q + first * of_.query_stride);
    const int64_t keys =
        std::is_same_v<Bias, Causal> ? std::min(of_.keys, first + count) : of_.keys;
    const int64_t blocks = (keys + kMostKeys - 1) / kMostKeys;
    for (int64_t block = 0; block < blocks; ++block) {
      const Part part = {keys * block / blocks, keys * (block + 1) / blocks};
      score<kVectors>(k + part.begin * of_.key_stride, part.size());
      add_bias(part, bias);
      weigh<kVectors>(part.size());
      gather<kVectors>(v + part.begin * of_.value_stride, part.size(), block == 0);
    }
    finish<kVectors>(result + first * of_.result_stride, blocks == 0);
  }

 private:
  static constexpr int kLanes = Vectors<T>::kLanes;

  template <int kVectors>
  void start(const T* q) {
    if (count_ < kVectors * kLanes) std::fill(queries_, queries_ + of_.width * kPanel<T>, T(0));
    transpose(q, of_.query_stride, count_, of_.width, queries_, kPanel<T>);
    const T scale = static_cast<T>(static_cast<double>(of_.scale) * kLog2OfE);
    for (int64_t i = 0; i < of_.width * kPanel<T>; ++i) queries_[i] *= scale;
    for (int v = 0; v < kVectors; ++v) {
      sums_[v] = Vector<T>{};
      largest_[v] = sums_[v] - std::numeric_limits<T>::infinity();
    }
  }

  // Calls visit(begin, size) for pieces of nearly equal height of what fits into no tile.
  template <class Visit>
  static void visit_tiles(int64_t count, const Visit& visit) {
    const int64_t tiles = (count + kMostRows - 1) / kMostRows;
    for (int64_t i = 0; i < tiles; ++i) {
      const int64_t begin = count * i / tiles;
      visit(begin, static_cast<int>(count * (i + 1) / tiles - begin));
    }
  }

  template <int kVectors>
  void score(const T* k, int64_t keys) {
    const int32_t offset = 0;
    const Terms terms = {&offset, 1, static_cast<int>(of_.width)};
    visit_tiles(keys, [&](int64_t begin, int rows) {
      const Tile<T> tile = {k + begin * of_.key_stride, of_.key_stride, terms, queries_};
      multiply_tile<T>(rows, kVectors, tile, scores_ + begin);
    });
  }

  template <class Bias>
  void add_bias(Part keys, const Bias& bias) {
    if constexpr (std::is_same_v<Bias, Causal>) {
      for (int64_t key = std::max(keys.begin, first_ + 1); key < keys.end; ++key)
        std::fill_n(scores_[key - keys.begin], std::min(key - first_, count_),
                    -std::numeric_limits<T>::infinity());
    } else if constexpr (!std::is_same_v<Bias, NoBias>) {
      for (int64_t key = keys.begin; key < keys.end; ++key)
        for (int64_t query = 0; query < count_; ++query)
          scores_[key - keys.begin][query] +=
              static_cast<T>(bias(first_ + query, key)) * static_cast<T>(kLog2OfE);
    }
  }

  // Turns scores into weights, and computes the factor for earlier results.
  template <int kVectors>
  void weigh(int64_t keys) {
    Vector<T> base[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      const Vector<T> largest = largest_of(v, keys);
      // While there is no key at all, -inf - -inf is to be no NaN.
      const Vector<T> zero = {}, none = zero - std::numeric_limits<T>::infinity();
      base[v] = largest == none ? zero : largest;
      fading_[v] = exp2_of_negative<T>(largest_[v] - base[v]);
      largest_[v] = largest;
    }
    Vector<T> sums[kVectors] = {};
    for (int64_t key = 0; key < keys; ++key)
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        T* const score = scores_[key] + v * kLanes;
        const Vector<T> weight = exp2_of_negative<T>(load(score) - base[v]);
        store<T>(weight, score);
        sums[v] += weight;
      }
    for (int v = 0; v < kVectors; ++v) sums_[v] = sums_[v] * fading_[v] + sums[v];
  }
  Vector<T> largest_of(int v, int64_t keys) const {
    Vector<T> largest = largest_[v];
    const T* from = scores_[0] + v * kLanes;
    int64_t key = 0;
    for (; key + 4 <= keys; key += 4, from += 4 * kPanel<T>)
      largest =
          larger(largest, larger(larger(load(from), load(from + kPanel<T>)),
                                 larger(load(from + 2 * kPanel<T>), load(from + 3 * kPanel<T>))));
    for (; key < keys; ++key, from += kPanel<T>) largest = larger(largest, load(from));
    return largest;
  }

  template <int kVectors>
  void gather(const T* values, int64_t keys, bool first) {
    const int32_t offset = 0;
    const Terms terms = {&offset, 1, static_cast<int>(keys), static_cast<int>(of_.value_stride)};
    T(*const made)[kPanel<T>] = scores_ + kMostKeys;
    visit_tiles(of_.value_width, [&](int64_t begin, int rows) {
      T(*const results)[kPanel<T>] = reinterpret_cast<T(*)[kPanel<T>]>(results_) + begin;
      const Tile<T> tile = {values + begin, 1, terms, scores_[0]};
      multiply_tile<T>(rows, kVectors, tile, first ? results : made);
      for (int r = 0; !first && r < rows; ++r)
        for (int v = 0; v < kVectors; ++v) {
          T* const to = results[r] + v * kLanes;
          store<T>(load(to) * fading_[v] + load(made[r] + v * kLanes), to);
        }
    });
  }

  template <int kVectors>
  void finish(T* result, bool no_keys) {
    for (int v = 0; v < kVectors; ++v) {
      const Vector<T> zero = {}, one = zero + T(1);
      const Vector<T> total = of_.gives_zeros ? (sums_[v] == zero ? one : sums_[v]) : sums_[v];
      const Vector<T> factor = one / total;
      T* to = results_ + v * kLanes;
      for (int64_t i = 0; i < of_.value_width; ++i, to += kPanel<T>)
        store<T>((no_keys ? Vector<T>{} : load(to)) * factor, to);
    }
    transpose(results_, kPanel<T>, of_.value_width, count_, result, of_.result_stride);
  }

  const Attention<T>& of_;
  T *queries_, *results_;   // [element][query]
  T (*scores_)[kPanel<T>];  // [key][query], then a tile
  int64_t first_ = 0, count_ = 0;
  Vector<T> largest_[2], sums_[2], fading_[2];
};

}  // namespace detail

// The results of the queries from `first_query` up to `last_query`.
template <class T, class Bias = NoBias>
void attend(const Attention<T>& of, const T* q, const T* k, const T* v, T* result,
            int64_t first_query, int64_t last_query, const Bias& bias = Bias()) {
  using Block = detail::QueryBlock<T>;
  Block block(of, detail::aligned_scratch<T, 8>(Block::memory(of)));
  for (int64_t first = first_query; first < last_query; first += kPanel<T>) {
    const int64_t count = std::min<int64_t>(kPanel<T>, last_query - first);
    if (count > kPanel<T> / 2)
      block.template attend<2>(q, k, v, result, first, count, bias);
    else
      block.template attend<1>(q, k, v, result, first, count, bias);
  }
}

// The addresses of the arrays of one of many attentions.
template <class T>
struct Heads {
  const T *queries, *keys, *values;
  T* results;
};

// `count` attentions: of the number n, heads(n) says where, and bias(n) gives what `attend` takes.
// The threads share (n, block of queries). Nobody waits.
template <class T, class Place, class Bias>
void attend_all(const Team& team, const Attention<T>& of, int64_t count, const Place& heads,
                const Bias& bias) {
  const int64_t blocks = (of.queries + kPanel<T> - 1) / kPanel<T>;
  const Part mine = team.part(count * blocks);
  for (int64_t i = mine.begin, next; i < mine.end; i = next) {
    const int64_t number = i / blocks;
    next = std::min(mine.end, (number + 1) * blocks);
    const Heads<T> at = heads(number);
    attend(of, at.queries, at.keys, at.values, at.results, i % blocks * kPanel<T>,
           std::min(of.queries, (next - number * blocks) * kPanel<T>), bias(number));
  }
}

}  // namespace fl
