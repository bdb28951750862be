// Elements in order.
//
//   fl::sort(x, {2, 5, 1}, false, values, indices);       // the rows of x[2][5]
//   fl::topk(x, {1, 5, 3}, 2, true, values, indices);     // the two largest of each column of
//   x[5][3]
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace fl {

// The lines of a row-major array along one of its axes: the sizes before it, of it, and after it.
struct Lines {
  int64_t outer, length, inner;
};

namespace detail {

// NaN is the greatest value.
template <class T>
bool comes_before(T x, T y, bool largest) {
  if (x != x || y != y) return (x != x) != (y != y) && (x != x) == largest;
  return largest ? y < x : x < y;
}

}  // namespace detail

// The first `count` elements of each line and their places in it; equal ones stay in order.
template <class T>
void topk(const T* x, Lines lines, int64_t count, bool largest, T* values, int64_t* indices) {
  std::vector<int64_t> order(static_cast<std::size_t>(lines.length));
  for (int64_t line = 0; line < lines.outer * lines.inner; ++line) {
    const int64_t outer = line / lines.inner, inner = line % lines.inner;
    const T* const from = x + outer * lines.length * lines.inner + inner;
    std::iota(order.begin(), order.end(), int64_t{0});
    std::partial_sort(order.begin(), order.begin() + count, order.end(), [&](int64_t i, int64_t j) {
      const T a = from[i * lines.inner], b = from[j * lines.inner];
      if (detail::comes_before(a, b, largest)) return true;
      return i < j && !detail::comes_before(b, a, largest);
    });
    for (int64_t i = 0; i < count; ++i) {
      const int64_t to = (outer * count + i) * lines.inner + inner;
      indices[to] = order[static_cast<std::size_t>(i)];
      values[to] = from[indices[to] * lines.inner];
    }
  }
}

template <class T>
void sort(const T* x, Lines lines, bool descending, T* values, int64_t* indices) {
  topk(x, lines, lines.length, descending, values, indices);
}

}  // namespace fl
