// Views of values along their axes, with the strides that they have. For scan_roller.cpp only.
#pragma once

#include <optional>

#include "composit/ir/node.h"

namespace composit {

// Axis `from` moved to the place `to`.
LazyTensor with_axis_moved(const LazyTensor& x, int64_t from, int64_t to);

// Places along an axis of a value, `step` further with each trip.
struct Places {
  LazyTensor of;
  int64_t axis = 0, first = 0, step = 1;
  std::optional<int64_t> width = {};  // indices at each place; nothing: the axis is left out
};
// They as slots along a new first axis, for `count` trips.
LazyTensor slots_at(const Places& places, int64_t count);
// What `slots_at` reads, with `slots` in its place.
LazyTensor written_at(const Places& places, int64_t count, const LazyTensor& slots);

// Slot `index` along the first axis.
LazyTensor slot_at(const LazyTensor& slots, int64_t index);

// Axis `axis` and the next one as one axis; new memory unless `axis` is 0.
LazyTensor with_axes_joined(const LazyTensor& x, int64_t axis);
// The same elements in new memory, densely in order.
LazyTensor dense_copy(const LazyTensor& x);

}  // namespace composit
