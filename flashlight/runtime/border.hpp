// Zeros around an array, or another number.
//
//   clear_border<3>(team, x, {58, 58, 64}, {1, 1, 0}, {1, 1, 0});    // one pixel on each side
#pragma once

#include <algorithm>
#include <cstdint>

#include "flashlight/runtime/numbers.hpp"
#include "flashlight/runtime/team.hpp"

namespace fl {

namespace detail {
template <class T>
[[gnu::noinline]] void fill_border(T* x, int rank, const int64_t* sizes, const int64_t* before,
                                   const int64_t* after, T fill) {
  int64_t inside = 1;
  bool more = false;
  for (int i = 1; i < rank; ++i) {
    inside *= sizes[i];
    more |= before[i] > 0 || after[i] > 0;
  }
  std::fill(x, x + before[0] * inside, fill);
  std::fill(x + (sizes[0] - after[0]) * inside, x + sizes[0] * inside, fill);
  for (int64_t i = before[0]; more && i < sizes[0] - after[0]; ++i)
    fill_border(x + i * inside, rank - 1, sizes + 1, before + 1, after + 1, fill);
}
}  // namespace detail

// Sets the elements before and after a row-major array of these sizes, in each dimension, to
// `fill`. One thread of the team does it.
template <int kRank, class T>
void clear_border(const Team& team, T* x, const int64_t (&sizes)[kRank],
                  const int64_t (&before)[kRank], const int64_t (&after)[kRank],
                  detail::Computed<T> fill = 0) {
  if (team.thread() == 0) detail::fill_border(x, kRank, sizes, before, after, static_cast<T>(fill));
}

}  // namespace fl
