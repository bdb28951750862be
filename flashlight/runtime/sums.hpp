// Sums and extremes of f(begin) ... f(end - 1), taken in several lanes.
//
//   const float mean = fl::sum<float>(768, [&](int j) { return x[j]; }) / 768;
#pragma once

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "flashlight/runtime/functions.hpp"
#include "flashlight/runtime/vectors.hpp"

namespace fl {
namespace detail {

// `start` combined with f(row, begin) ... f(row, end - 1) of all rows, in so many lanes that
// compilers make vectors of the loop over them before they unroll it. `used`: all of them; or 0,
// where end - begin is a known number below that.
template <int kLanes, class T, class F, class Combine>
FLASHLIGHT_INLINE T fold(int rows, int begin, int end, int used, T start, F f, Combine combine) {
  using V = Vectors<T, (kVectorBytes < 32 ? kVectorBytes : 32)>;  // as compilers prefer them
  constexpr int kVectors = kLanes / V::kLanes;
  typename V::Vector total[kVectors];
  T lanes[kLanes], rest = start;
  for (auto& one : total) one = V::all(start);
  for (int row = 0; row < rows; ++row) {
    int i = begin;
    for (; i + kLanes <= end; i += kLanes) {
      for (int lane = 0; lane < used; ++lane) lanes[lane] = f(row, i + lane);
      for (int k = 0; k < kVectors; ++k)
        total[k] = combine(total[k], V::load(lanes + k * V::kLanes));
    }
    for (; i < end; ++i) rest = combine(rest, f(row, i));
  }
  for (int half = kVectors / 2; half > 0; half /= 2)
    for (int k = 0; k < half; ++k) total[k] = combine(total[k], total[k + half]);
  std::memcpy(lanes, total, sizeof total[0]);
  for (int half = V::kLanes / 2; half > 0; half /= 2)
    for (int lane = 0; lane < half; ++lane) lanes[lane] = combine(lanes[lane], lanes[lane + half]);
  return combine(lanes[0], rest);
}
template <class T, class F, class Combine>
FLASHLIGHT_INLINE T fold(int begin, int end, T start, F f, Combine combine) {
  return fold<32>(
      1, begin, end, 32, start, [&](int, int i) { return f(i); }, combine);
}
// Else g++ 12 warns of what the first round would do, which is none.
template <class T, class F, class Combine>
FLASHLIGHT_INLINE T fold(int size, T start, F f, Combine combine) {
  return fold<32>(
      1, 0, size, size < 32 ? 0 : 32, start, [&](int, int i) { return f(i); }, combine);
}

// Several indices, of which all but the last one count rows.
template <int... kSizes>
struct Indices {
  static constexpr int kRank = sizeof...(kSizes);
  static constexpr int kSize[kRank] = {kSizes...};
  static constexpr int rows_from(int index) {
    return index + 1 >= kRank ? 1 : kSize[index] * rows_from(index + 1);
  }
  template <class T, class F, class Combine, int... kOuter>
  FLASHLIGHT_INLINE static T fold(T start, F f, Combine combine,
                                  std::integer_sequence<int, kOuter...>) {
    constexpr int kColumns = kSize[kRank - 1];
    const auto of_row = [&](int row, int i) {
      return f(row / rows_from(kOuter + 1) % kSize[kOuter]..., i);
    };
    constexpr int kLanes = kColumns < 32 ? 16 : 32;
    return detail::fold<kLanes>(rows_from(0), 0, kColumns, kColumns < kLanes ? 0 : kLanes, start,
                                of_row, combine);
  }
};
template <class T, int... kSizes, class F, class Combine>
FLASHLIGHT_INLINE T fold(T start, F f, Combine combine) {
  return Indices<kSizes...>::fold(start, f, combine,
                                  std::make_integer_sequence<int, sizeof...(kSizes) - 1>{});
}

inline constexpr auto kSum = [](auto x, auto y) { return x + y; };
inline constexpr auto kLargest = [](auto x, auto y) { return ((x < y) | (y != y)) ? y : x; };
inline constexpr auto kSmallest = [](auto x, auto y) { return ((y < x) | (y != y)) ? y : x; };

}  // namespace detail

// f(begin) + ... + f(end - 1).
template <class T, class F>
T sum(int begin, int end, F f) {
  return detail::fold(begin, end, T(0), f, detail::kSum);
}
template <class T, class F>
T sum(int size, F f) {
  return detail::fold(size, T(0), f, detail::kSum);
}
// The sum over several indices: fl::sum<float, 16, 16>([&](int i, int j) { return x[i][j]; }).
template <class T, int kSize, int... kSizes, class F>
T sum(F f) {
  return detail::fold<T, kSize, kSizes...>(T(0), f, detail::kSum);
}
// The largest of them; NaN where one is.
template <class T, class F>
T largest(int begin, int end, F f) {
  return detail::fold(begin, end, -std::numeric_limits<T>::infinity(), f, detail::kLargest);
}
template <class T, class F>
T largest(int size, F f) {
  return detail::fold(size, -std::numeric_limits<T>::infinity(), f, detail::kLargest);
}
template <class T, int kSize, int... kSizes, class F>
T largest(F f) {
  return detail::fold<T, kSize, kSizes...>(-std::numeric_limits<T>::infinity(), f,
                                           detail::kLargest);
}
template <class T, class F>
T smallest(int begin, int end, F f) {
  return detail::fold(begin, end, std::numeric_limits<T>::infinity(), f, detail::kSmallest);
}
template <class T, class F>
T smallest(int size, F f) {
  return detail::fold(size, std::numeric_limits<T>::infinity(), f, detail::kSmallest);
}
template <class T, int kSize, int... kSizes, class F>
T smallest(F f) {
  return detail::fold<T, kSize, kSizes...>(std::numeric_limits<T>::infinity(), f,
                                           detail::kSmallest);
}

}  // namespace fl
