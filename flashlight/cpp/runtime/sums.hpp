// Sums and extremes of f(begin) ... f(end - 1), in as many lanes as vectors have.
//
//   const float mean = fl::sum<float>(768, [&](int j) { return x[j]; }) / 768;
#pragma once

#include <algorithm>
#include <limits>

#include "flashlight/cpp/runtime/numbers.hpp"

namespace fl {

namespace detail {
// `start` combined with f(begin) ... f(end - 1), in 16 lanes.
template <class T, class F, class Combine>
T fold(int begin, int end, T start, F f, Combine combine) {
  constexpr int kLanes = 16;
  T lanes[kLanes];
  std::fill(lanes, lanes + kLanes, start);
  int i = begin;
  for (; i + kLanes <= end; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] = combine(lanes[lane], f(i + lane));
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int lane = 0; lane < half; ++lane) lanes[lane] = combine(lanes[lane], lanes[lane + half]);
  T result = lanes[0];
  for (; i < end; ++i) result = combine(result, f(i));
  return result;
}
}  // namespace detail

// f(begin) + ... + f(end - 1).
template <class T, class F>
T sum(int begin, int end, F f) {
  return detail::fold(begin, end, T(0), f, [](T x, T y) { return x + y; });
}
template <class T, class F>
T sum(int size, F f) {
  return fl::sum<T>(0, size, f);
}
// The largest of them; NaN where one is.
template <class T, class F>
T largest(int begin, int end, F f) {
  return detail::fold(begin, end, -std::numeric_limits<T>::infinity(), f,
                      [](T x, T y) { return fl::max(x, y); });
}
template <class T, class F>
T largest(int size, F f) {
  return fl::largest<T>(0, size, f);
}
template <class T, class F>
T smallest(int begin, int end, F f) {
  return detail::fold(begin, end, std::numeric_limits<T>::infinity(), f,
                      [](T x, T y) { return fl::min(x, y); });
}
template <class T, class F>
T smallest(int size, F f) {
  return fl::smallest<T>(0, size, f);
}

}  // namespace fl
