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
//
// T is the type of scores and sums. Queries, keys, values and results may be 16-bit floats
// (Element). Where an instruction multiplies pairs of those (words.hpp), pairs of a key's elements
// are words of a row, and so are an element of two neighbouring values, which are laid side by side
// for that; weights are rounded as the program rounds them. A unit for matrices (matrix_unit.hpp)
// reads the pairs of an element one after the other, and keys in whole steps, to which they are
// copied where they have other widths. Otherwise keys and values are widened block by block.
//
// Operand is what queries, keys, values and weights are rounded to before they are multiplied:
// bfloat16 of floats, where an instruction multiplies those.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "flashlight/runtime/attention_keys.hpp"
#include "flashlight/runtime/few_queries.hpp"
#include "flashlight/runtime/lanes.hpp"
#include "flashlight/runtime/microkernel.hpp"
#include "flashlight/runtime/team.hpp"
#include "flashlight/runtime/words.hpp"

namespace fl {

// Kinds of bias on scores: none; none, with keys up to the query's number alone; or a function of
// (query, key) that is added, where -inf takes the key away.
struct NoBias {};
struct Causal {};

namespace detail {

constexpr double kLog2OfE = 1.4426950408889634;

template <class Vector>
FLASHLIGHT_INLINE Vector larger(Vector x, Vector y) {
  return y > x ? y : x;
}

// A block of queries. Their scores are in units of log(2), so that weights are powers of two.
template <class T, class Element, class Operand>
class QueryBlock {
  using Keys = KeyBlock<T, Element, Operand>;
  using Packed = typename Keys::Packed;

 public:
  // `kept`: blocks of keys that are made once, which is all; or 0.
  QueryBlock(const Attention<T>& of, int64_t kept, T* memory)
      : of_(of),
        queries_(memory),
        results_(queries_ + of.width * kPanel<T>),
        scores_(reinterpret_cast<T (*)[kPanel<T>]>(results_ + of.value_width * kPanel<T>)),
        keys_(of, scores_[kMostKeys + kTallestTile]),
        scale_(static_cast<T>(static_cast<double>(of.scale) * kLog2OfE)),
        kept_(kept) {}
  static int64_t memory(const Attention<T>& of, int64_t kept) {
    return (of.width + of.value_width + kMostKeys + kTallestTile) * kPanel<T> +
           Keys::memory(of, std::max<int64_t>(1, kept));
  }
  static int64_t blocks(int64_t keys) { return (keys + kMostKeys - 1) / kMostKeys; }
  // All blocks of keys, if it is worth to keep them for so many queries; or 0. Causal blocks are
  // others for each query.
  template <class Bias>
  static int64_t worth_keeping(const Attention<T>& of, int64_t queries) {
    constexpr int64_t kMostBytes = int64_t{1} << 19;
    const int64_t all = blocks(of.keys);
    const bool fits = Keys::memory(of, all) * int64_t{sizeof(T)} <= kMostBytes;
    const bool are_used_again = !Keys::kLie && !std::is_same_v<Bias, Causal> && queries > kPanel<T>;
    return are_used_again && fits ? all : 0;
  }

  template <int kVectors, class Bias>
  void attend(const Element* q, const Element* k, const Element* v, Element* result, int64_t first,
              int64_t count, const Bias& bias) {
    first_ = first, count_ = count;
    start<kVectors>(q + first * of_.query_stride);
    const int64_t keys =
        std::is_same_v<Bias, Causal> ? std::min(of_.keys, first + count) : of_.keys;
    const int64_t count_of_blocks = blocks(keys);
    for (int64_t block = 0; block < count_of_blocks; ++block) {
      const Part part = {keys * block / count_of_blocks, keys * (block + 1) / count_of_blocks};
      const Element *const from = k + part.begin * of_.key_stride,
                          *const values = v + part.begin * of_.value_stride;
      keys_.enter(kept_ > 0 ? block : 0);
      if (kept_ == 0 || block >= made_) {
        keys_.take_keys(from, part.size());
        keys_.take_values(values, part.size());
        made_ = block + 1;
      }
      score<kVectors>(from, part.size());
      add_bias(part, bias);
      weigh<kVectors>(part.size());
      gather<kVectors>(values, part.size(), block == 0);
    }
    finish<kVectors>(result + first * of_.result_stride, count_of_blocks == 0);
  }

 private:
  static constexpr int kLanes = Vectors<T>::kLanes;

  template <int kVectors>
  void start(const Element* q) {
    if (count_ < kVectors * kLanes) std::fill(queries_, queries_ + of_.width * kPanel<T>, T(0));
    if constexpr (Keys::kPairs) {  // the scores are scaled
      int64_t pitch = of_.query_stride / 2;
      const auto* from = reinterpret_cast<const uint32_t*>(keys_.rounded(q, count_));
      if (Keys::kRounds) pitch = of_.width / 2;
      transpose(from, pitch, count_, of_.width / 2, reinterpret_cast<uint32_t*>(queries_),
                kPanel<T>);
    } else {
      if constexpr (Keys::kLie) {
        transpose(q, of_.query_stride, count_, of_.width, queries_, kPanel<T>);
      } else {
        for (int64_t i = 0; i < count_; ++i)
          for (int64_t j = 0; j < of_.width; ++j)
            queries_[j * kPanel<T> + i] = q[i * of_.query_stride + j];
      }
      for (int64_t i = 0; i < of_.width * kPanel<T>; ++i) queries_[i] *= scale_;
    }
    for (int v = 0; v < kVectors; ++v) {
      sums_[v] = Vector<T>{};
      largest_[v] = sums_[v] - std::numeric_limits<T>::infinity();
    }
  }

  // Calls visit(begin, size) for pieces of nearly equal height of what fits into no tile, the
  // higher ones first.
  template <class Visit>
  void visit_tiles(int64_t count, const Visit& visit) const {
    const int64_t most = keys_.most_rows(), tiles = (count + most - 1) / most;
    for (int64_t i = 0, begin = 0; i < tiles; ++i) {
      const int64_t size = count / tiles + (i < count % tiles ? 1 : 0);
      visit(begin, static_cast<int>(size));
      begin += size;
    }
  }

  template <int kVectors>
  void score(const Element* k, int64_t keys) {
    visit_tiles(keys, [&](int64_t begin, int rows) {
      keys_.multiply_keys(k, begin, rows, kVectors, reinterpret_cast<const Packed*>(queries_),
                          scores_ + begin);
      for (int r = 0; Keys::kPairs && r < rows; ++r)
        for (int v = 0; v < kVectors; ++v) {
          T* const score = scores_[begin + r] + v * kLanes;
          store<T>(load(score) * scale_, score);
        }
    });
  }

  template <class Bias>
  void add_bias(Part keys, const Bias& bias) {
    if constexpr (std::is_same_v<Bias, Causal>) {
      for (int64_t key = std::max(keys.begin, first_ + 1); key < keys.end; ++key)
        std::fill_n(scores_[key - keys.begin], std::min(key - first_, count_),
                    -std::numeric_limits<T>::infinity());
    } else if constexpr (!std::is_same_v<Bias, NoBias>) {
      for (int64_t key = keys.begin; key < keys.end; key += kLanes)
        for (int64_t query = 0; query < count_; query += kLanes)
          add_bias({key, std::min(key + kLanes, keys.end)},
                   {query, std::min(query + kLanes, count_)}, scores_ + (key - keys.begin), bias);
    }
  }
  // A square of them: computed along keys, as masks mostly lie, and turned.
  template <class Bias>
  void add_bias(Part keys, Part queries, T (*scores)[kPanel<T>], const Bias& bias) const {
    alignas(kVectorBytes) T along_keys[kLanes][kLanes], along_queries[kLanes][kLanes];
    if (keys.size() < kLanes || queries.size() < kLanes)
      std::fill_n(along_keys[0], kLanes * kLanes, T(0));
    for (int64_t query = queries.begin; query < queries.end; ++query) {
      T* const to = along_keys[query - queries.begin];
      const int64_t row = first_ + query;
      if (keys.size() == kLanes) {
        for (int64_t j = 0; j < kLanes; ++j) to[j] = static_cast<T>(bias(row, keys.begin + j));
      } else {
        for (int64_t j = 0; j < keys.size(); ++j) to[j] = static_cast<T>(bias(row, keys.begin + j));
      }
    }
    transpose_square(along_keys[0], kLanes, along_queries[0], kLanes);
    for (int64_t j = 0; j < keys.size(); ++j) {
      T* const to = scores[j] + queries.begin;
      store<T>(load(to) + load(along_queries[j]) * static_cast<T>(kLog2OfE), to);
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
  void gather(const Element* values, int64_t keys, bool first) {
    keys_.take_weights(scores_, keys);
    T(*const made)[kPanel<T>] = scores_ + kMostKeys;
    visit_tiles(of_.value_width, [&](int64_t begin, int rows) {
      T(*const results)[kPanel<T>] = reinterpret_cast<T(*)[kPanel<T>]>(results_) + begin;
      keys_.multiply_values(values, begin, rows, kVectors, keys, scores_, first ? results : made);
      for (int r = 0; !first && r < rows; ++r)
        for (int v = 0; v < kVectors; ++v) {
          T* const to = results[r] + v * kLanes;
          store<T>(load(to) * fading_[v] + load(made[r] + v * kLanes), to);
        }
    });
  }

  template <int kVectors>
  void finish(Element* result, bool no_keys) {
    for (int v = 0; v < kVectors; ++v) {
      const Vector<T> zero = {}, one = zero + T(1);
      const Vector<T> total = of_.gives_zeros ? (sums_[v] == zero ? one : sums_[v]) : sums_[v];
      const Vector<T> factor = one / total;
      T* to = results_ + v * kLanes;
      for (int64_t i = 0; i < of_.value_width; ++i, to += kPanel<T>)
        store<T>((no_keys ? Vector<T>{} : load(to)) * factor, to);
    }
    keys_.store_results(results_, kPanel<T>, count_, result);
  }

  const Attention<T>& of_;
  T *queries_, *results_;   // [element][query]; those of pairs in groups
  T (*scores_)[kPanel<T>];  // [key][query], then a tile
  Keys keys_;
  const T scale_;
  const int64_t kept_;
  int64_t first_ = 0, count_ = 0, made_ = 0;
  Vector<T> largest_[2], sums_[2], fading_[2];
};

}  // namespace detail

// The results of the queries from `first_query` up to `last_query`. Of 16-bit floats, `width` and
// the strides of queries and keys are even where Words has groups of them.
template <class T, class Element = T, class Operand = Element, class Bias = NoBias>
void attend(const Attention<T>& of, const Element* q, const Element* k, const Element* v,
            Element* result, int64_t first_query, int64_t last_query, const Bias& bias = Bias()) {
  if constexpr (!std::is_same_v<Bias, Causal>) {
    using Few = detail::FewQueries<T, Element>;
    if (Few::fit(of)) {
      const int64_t count = last_query - first_query;
      const auto add_bias = [&]([[maybe_unused]] auto* scores, [[maybe_unused]] int64_t first,
                                [[maybe_unused]] int64_t keys) {
        if constexpr (!std::is_same_v<Bias, NoBias>)
          for (int64_t i = 0; i < count; ++i)
            for (int64_t j = 0; j < keys; ++j)
              scores[i][j] += static_cast<T>(bias(first_query + i, first + j)) *
                              static_cast<T>(detail::kLog2OfE);
      };
      Few(of, count, detail::aligned_scratch<T, 8>(Few::memory(of)))
          .attend(q + first_query * of.query_stride, k, v, result + first_query * of.result_stride,
                  add_bias);
      return;
    }
  }
  using Block = detail::QueryBlock<T, Element, Operand>;
  const int64_t kept = Block::template worth_keeping<Bias>(of, last_query - first_query);
  Block block(of, kept, detail::aligned_scratch<T, 8>(Block::memory(of, kept)));
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
template <class T, class Element = T, class Operand = Element, class Place, class Bias>
void attend_all(const Team& team, const Attention<T>& of, int64_t count, const Place& heads,
                const Bias& bias) {
  const int64_t blocks = (of.queries + kPanel<T> - 1) / kPanel<T>;
  const Part mine = team.part(count * blocks);
  for (int64_t i = mine.begin, next; i < mine.end; i = next) {
    const int64_t number = i / blocks;
    next = std::min(mine.end, (number + 1) * blocks);
    const Heads<Element> at = heads(number);
    attend<T, Element, Operand>(of, at.queries, at.keys, at.values, at.results,
                                i % blocks * kPanel<T>,
                                std::min(of.queries, (next - number * blocks) * kPanel<T>),
                                bias(number));
  }
}

}  // namespace fl
