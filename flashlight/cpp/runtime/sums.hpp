// Sums and extremes of f(begin) ... f(end - 1), taken in several lanes.
//
//   const float mean = fl::sum<float>(768, [&](int j) { return x[j]; }) / 768;
#pragma once

#include <algorithm>
#include <cstring>
#include <limits>

#include "flashlight/cpp/runtime/functions.hpp"
#include "flashlight/cpp/runtime/vectors.hpp"

namespace fl {
namespace detail {

// `start` combined with f(begin) ... f(end - 1), in so many lanes that compilers make vectors of
// the loop over them before they unroll it.
template <class T, class F, class Combine>
FLASHLIGHT_INLINE T fold(int begin, int end, T start, F f, Combine combine) {
  constexpr int kLanes = 32;
  using V = Vectors<T, (kVectorBytes < 32 ? kVectorBytes : 32)>;  // as compilers prefer them
  constexpr int kVectors = kLanes / V::kLanes;
  typename V::Vector total[kVectors];
  T lanes[kLanes];
  for (auto& one : total) one = V::all(start);
  int i = begin;
  for (; i + kLanes <= end; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] = f(i + lane);
    for (int k = 0; k < kVectors; ++k) total[k] = combine(total[k], V::load(lanes + k * V::kLanes));
  }
  for (int half = kVectors / 2; half > 0; half /= 2)
    for (int k = 0; k < half; ++k) total[k] = combine(total[k], total[k + half]);
  std::memcpy(lanes, total, sizeof total[0]);
  T rest = start;
  for (; i < end; ++i) rest = combine(rest, f(i));
  for (int half = V::kLanes / 2; half > 0; half /= 2)
    for (int lane = 0; lane < half; ++lane) lanes[lane] = combine(lanes[lane], lanes[lane + half]);
  return combine(lanes[0], rest);
}

}  // namespace detail

// f(begin) + ... + f(end - 1).
template <class T, class F>
T sum(int begin, int end, F f) {
  return detail::fold(begin, end, T(0), f, [](auto x, auto y) { return x + y; });
}
template <class T, class F>
T sum(int size, F f) {
  return fl::sum<T>(0, size, f);
}
// The largest of them; NaN where one is.
template <class T, class F>
T largest(int begin, int end, F f) {
  return detail::fold(begin, end, -std::numeric_limits<T>::infinity(), f,
                      [](auto x, auto y) { return ((x < y) | (y != y)) ? y : x; });
}
template <class T, class F>
T largest(int size, F f) {
  return fl::largest<T>(0, size, f);
}
template <class T, class F>
T smallest(int begin, int end, F f) {
  return detail::fold(begin, end, std::numeric_limits<T>::infinity(), f,
                      [](auto x, auto y) { return ((y < x) | (y != y)) ? y : x; });
}
template <class T, class F>
T smallest(int size, F f) {
  return fl::smallest<T>(0, size, f);
}

}  // namespace fl
