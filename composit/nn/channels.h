// Images whose channels come last, for functions that are defined on channels first.
//
//   return with_channels_first(x, 2, channels_last, [&](const LazyTensor& y) { return pool(y); });
//
// The graph has a permutation before and after; values are the same as in the other layout.
#pragma once

#include "composit/ops/functions.h"

namespace composit::nn {

// Calls `f` with `x`, of `axes` spatial axes, channels in front of them; gives its result in the
// layout of `x`.
template <class F>
LazyTensor with_channels_first(const LazyTensor& x, int64_t axes, bool channels_last, F f) {
  if (!channels_last) return f(x);
  if (x.rank() != axes + 1 && x.rank() != axes + 2)
    throw UserError("[channels_last] expected an input of " + std::to_string(axes + 1) + " or " +
                    std::to_string(axes + 2) + " axes, received sizes " + str(x.sizes()));
  const auto moved = [](const LazyTensor& y, int64_t from, int64_t to) {
    return apply_one("aten::movedim.int", {y, from, to});
  };
  return moved(f(moved(x, -1, -1 - axes)), -1 - axes, -1);
}

}  // namespace composit::nn
