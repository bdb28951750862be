// Attention of few queries on many keys, as a token that is decoded has: those of the heads that
// share keys. attention.hpp calls it.
//
//   if (FewQueries<float, bfloat16>::fit(of)) ...
//
// What takes time is to read keys and values, each once. Elements of a key are the lanes of
// vectors, since queries are too few to be. A query's products with as many keys as there are lanes
// are added up across lanes together, so that scores have neighbouring keys in lanes; results have a
// value's elements in lanes. Of bfloat16, scores are sums of products of pairs where an instruction
// has those; weights stay in T.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "flashlight/runtime/lanes.hpp"
#include "flashlight/runtime/words.hpp"

namespace fl {

template <class T>
struct Attention;

namespace detail {

// Adds up the lanes of each row: lane i of the result is the sum of rows[i].
template <class T>
FLASHLIGHT_INLINE Vector<T> sums_of_rows(Vector<T> (&rows)[Vectors<T>::kLanes]) {
  constexpr int kLanes = Vectors<T>::kLanes;
  using Lanes = std::make_index_sequence<kLanes>;
#pragma GCC unroll 4
  for (int half = kLanes / 2; half > 0; half /= 2)
#pragma GCC unroll 8
    for (int i = 0; i < half; ++i)
      rows[i] = interleave<T, false>(rows[i], rows[i + half], Lanes()) +
                interleave<T, true>(rows[i], rows[i + half], Lanes());
  return rows[0];
}

template <class T, class Element>
class FewQueries {
  static constexpr int kLanes = Vectors<T>::kLanes;
  static constexpr bool kLie = std::is_same_v<T, Element>;
  static constexpr bool kPairs = !std::is_same_v<T, WordOf<T, Element, Element>>;
  static constexpr int kChunk = kPairs ? 2 * kLanes : kLanes;  // elements of a vector
  static constexpr int64_t kMost = 8;                          // queries
  static constexpr int64_t kKeys = 128;                        // of a block
  static constexpr int64_t kAhead = 64;                        // keys
  static constexpr int kMostVectors = kVectorBytes == 64 ? 4 : 2;

 public:
  static bool fit(const Attention<T>& of) {
    return of.queries <= kMost && of.width % kChunk == 0 && of.value_width % kLanes == 0;
  }
  // In elements of T.
  static int64_t memory(const Attention<T>& of) {
    return kMost * (kKeys + of.value_width + of.width) + kLanes * of.width;
  }

  FewQueries(const Attention<T>& of, int64_t queries, T* memory)
      : of_(of),
        count_(queries),
        scores_(reinterpret_cast<T (*)[kKeys]>(memory)),
        results_(scores_[kMost]),
        queries_(results_ + kMost * of.value_width),
        keys_(queries_ + kMost * of.width) {}

  // `bias(scores, first key, keys)` adds to scores[query][key] of a block of keys, which are in
  // units of log(2).
  template <class Bias>
  void attend(const Element* q, const Element* k, const Element* v, Element* result,
              const Bias& bias) {
    q_ = q;
    if constexpr (!kLie && !kPairs)
      for (int64_t i = 0; i < count_; ++i)
        widen(q + i * of_.query_stride, 1, of_.width, queries_ + i * of_.width);
    std::fill_n(results_, count_ * of_.value_width, T(0));
    for (int64_t i = 0; i < count_; ++i) {
      largest_[i] = -std::numeric_limits<T>::infinity();
      sums_[i] = 0;
    }
    for (int64_t first = 0; first < of_.keys; first += kKeys) {
      const int64_t keys = std::min(kKeys, of_.keys - first);
      score(k + first * of_.key_stride, v + first * of_.value_stride, keys);
      bias(scores_, first, keys);
      for (int64_t i = 0; i < count_; ++i) weigh(i, keys);
      gather(v + first * of_.value_stride, keys);
    }
    for (int64_t i = 0; i < count_; ++i) finish(i, result + i * of_.result_stride);
  }

 private:
  // ---- scores -----------------------------------------------------------------------------------

  // In units of log(2). What fills up the last vector is no key. Meanwhile the values are on their
  // way, and the keys behind these.
  void score(const Element* k, const Element* v, int64_t keys) {
    const T scale = static_cast<T>(static_cast<double>(of_.scale) * 1.4426950408889634);
    for (int64_t first = 0; first < keys; first += kLanes) {
      const int64_t count = std::min<int64_t>(kLanes, keys - first);
      const Element* const from = k + first * of_.key_stride;
      for (int64_t i = 0; i < count; ++i) {
        prefetch(from + (i + kAhead) * of_.key_stride, of_.width);
        prefetch(v + (first + i) * of_.value_stride, of_.value_width);
      }
      if constexpr (!kLie && !kPairs)
        for (int64_t i = 0; i < count; ++i)
          widen(from + i * of_.key_stride, 1, of_.width, keys_ + i * of_.width);
      for (int64_t i = 0; i < count_; ++i) {
        Vector<T> products;
        if constexpr (kLie || kPairs)
          products = multiply(q_ + i * of_.query_stride, from, of_.key_stride, count);
        else
          products = multiply(queries_ + i * of_.width, keys_, of_.width, count);
        store<T>(products * scale, scores_[i] + first);
      }
    }
    for (int64_t i = 0; i < count_; ++i)
      std::fill(scores_[i] + keys, scores_[i] + (keys + kLanes - 1) / kLanes * kLanes,
                -std::numeric_limits<T>::infinity());
  }
  static void prefetch(const Element* from, int64_t count) {
    constexpr int64_t kLine = 64 / sizeof(Element);
    for (int64_t j = 0; j < count; j += kLine) __builtin_prefetch(from + j);
  }

  // A query times `count` keys; other lanes have the last one again.
  template <class Lying>
  Vector<T> multiply(const Lying* query, const Lying* keys, int64_t stride, int64_t count) const {
    Vector<T> sums[kLanes] = {};
    int64_t j = 0;
    for (; j + 4 * kChunk <= of_.width; j += 4 * kChunk)
      add_chunks<4>(query + j, keys + j, stride, count, sums);
    for (; j + 2 * kChunk <= of_.width; j += 2 * kChunk)
      add_chunks<2>(query + j, keys + j, stride, count, sums);
    for (; j < of_.width; j += kChunk) add_chunks<1>(query + j, keys + j, stride, count, sums);
    return sums_of_rows<T>(sums);
  }
  template <int kChunks, class Lying>
  FLASHLIGHT_INLINE static void add_chunks(const Lying* query, const Lying* key, int64_t stride,
                                           int64_t count, Vector<T> (&sums)[kLanes]) {
    Vector<T> left[kChunks];
#pragma GCC unroll 4
    for (int c = 0; c < kChunks; ++c) left[c] = load_chunk(query + c * kChunk);
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) {
#pragma GCC unroll 4
      for (int c = 0; c < kChunks; ++c) {
        if constexpr (kPairs)
          add_pairs(sums[i], left[c], load_chunk(key + c * kChunk));
        else
          sums[i] += left[c] * load_chunk(key + c * kChunk);
      }
      if (i + 1 < count) key += stride;
    }
  }
  template <class Lying>
  FLASHLIGHT_INLINE static Vector<T> load_chunk(const Lying* from) {
    Vector<T> x;
    std::memcpy(&x, from, sizeof x);
    return x;
  }

  // ---- weights and results ----------------------------------------------------------------------

  // Turns scores into weights, and computes the factor for earlier results.
  void weigh(int64_t query, int64_t keys) {
    T* const scores = scores_[query];
    Vector<T> most = Vectors<T>::all(largest_[query]);
    for (int64_t key = 0; key < keys; key += kLanes) {
      const Vector<T> x = load(scores + key);
      most = x > most ? x : most;
    }
    T largest = most[0];
    for (int i = 1; i < kLanes; ++i) largest = std::max(largest, most[i]);
    // While there is no key at all, -inf - -inf is to be no NaN.
    const T base = largest == -std::numeric_limits<T>::infinity() ? T(0) : largest;
    fading_[query] = exp2_of_negative<T>(Vectors<T>::all(largest_[query] - base))[0];
    largest_[query] = largest;
    Vector<T> sums = {};
    for (int64_t key = 0; key < keys; key += kLanes) {
      const Vector<T> weights = exp2_of_negative<T>(load(scores + key) - base);
      store<T>(weights, scores + key);
      sums += weights;
    }
    T sum = 0;
    for (int i = 0; i < kLanes; ++i) sum += sums[i];
    sums_[query] = sums_[query] * fading_[query] + sum;
  }

  void gather(const Element* values, int64_t keys) {
    for (int64_t query = 0; query < count_;) {
      const int64_t left = count_ - query;
      query += left >= 4   ? gather_wide<4>(query, values, keys)
               : left >= 2 ? gather_wide<2>(query, values, keys)
                           : gather_wide<1>(query, values, keys);
    }
  }
  template <int kQueries>
  int gather_wide(int64_t query, const Element* values, int64_t keys) {
    int64_t j = 0;
    for (; j + kMostVectors * kLanes <= of_.value_width; j += kMostVectors * kLanes)
      gather_tile<kQueries, kMostVectors>(query, values, keys, j);
    for (; j < of_.value_width; j += kLanes) gather_tile<kQueries, 1>(query, values, keys, j);
    return kQueries;
  }
  template <int kQueries, int kVectors>
  void gather_tile(int64_t query, const Element* values, int64_t keys, int64_t j) {
    Vector<T> sums[kQueries][kVectors] = {};
    for (int64_t key = 0; key < keys; ++key) {
      const Element* const from = values + key * of_.value_stride + j;
      Vector<T> value[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) value[v] = load_as<T>(from + v * kLanes);
#pragma GCC unroll 4
      for (int i = 0; i < kQueries; ++i) {
        const T weight = scores_[query + i][key];
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) sums[i][v] += value[v] * weight;
      }
    }
    for (int i = 0; i < kQueries; ++i)
      for (int v = 0; v < kVectors; ++v) {
        T* const to = results_ + (query + i) * of_.value_width + j + v * kLanes;
        store<T>(load(to) * fading_[query + i] + sums[i][v], to);
      }
  }

  void finish(int64_t query, Element* to) {
    const T sum = of_.gives_zeros && sums_[query] == 0 ? T(1) : sums_[query], factor = T(1) / sum;
    T* const from = results_ + query * of_.value_width;
    for (int64_t j = 0; j < of_.value_width; ++j) from[j] *= factor;
    convert<Element>(from, 1, of_.value_width, to);
  }

  const Attention<T>& of_;
  const int64_t count_;
  T (*scores_)[kKeys];             // [query][key]
  T *results_, *queries_, *keys_;  // [query][element]; widened, where elements are
  const Element* q_ = nullptr;
  T largest_[kMost], sums_[kMost], fading_[kMost];
};

}  // namespace detail
}  // namespace fl
