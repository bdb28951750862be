// Zeros around an array.
//
//   clear_border<3>(team, x, {58, 58, 64}, {1, 1, 0}, {1, 1, 0});    // one pixel on each side
#pragma once

#include <algorithm>
#include <cstdint>

#include "flashlight/runtime/team.hpp"

namespace fl {

namespace detail {
template <class T>
[[gnu::noinline]] void clear_border(T* x, int rank, const int64_t* sizes, const int64_t* before,
                                    const int64_t* after) {
  int64_t inside = 1;
  bool more = false;
  for (int i = 1; i < rank; ++i) {
    inside *= sizes[i];
    more |= before[i] > 0 || after[i] > 0;
  }
  std::fill(x, x + before[0] * inside, T(0));
  std::fill(x + (sizes[0] - after[0]) * inside, x + sizes[0] * inside, T(0));
  for (int64_t i = before[0]; more && i < sizes[0] - after[0]; ++i)
    clear_border(x + i * inside, rank - 1, sizes + 1, before + 1, after + 1);
}
}  // namespace detail

// Clears the elements before and after a row-major array of these sizes, in each dimension. One
// thread of the team does it.
template <int kRank, class T>
void clear_border(const Team& team, T* x, const int64_t (&sizes)[kRank],
                  const int64_t (&before)[kRank], const int64_t (&after)[kRank]) {
  if (team.thread() == 0) detail::clear_border(x, kRank, sizes, before, after);
}

}  // namespace fl
