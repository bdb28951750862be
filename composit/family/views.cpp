#include "composit/family/views.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "composit/family/family.h"
#include "composit/ir/transform.h"
#include "composit/ops/functions.h"

namespace composit {
namespace {

// The value with the strides of a view.
LazyTensor view(const LazyTensor& value, std::vector<int64_t> strides) {
  NodeSpec spec = copy_of(*value.node, value.node->operands());
  spec.outputs[0].strides = std::move(strides);
  spec.outputs[0] = with_plain_unit_strides(std::move(spec.outputs[0]));
  spec.place = 0;
  return std::move(spec).make();
}

LazyTensor part(const LazyTensor& x, int64_t axis, int64_t begin, int64_t end, int64_t step) {
  if (begin == 0 && end == x.size(axis) && step == 1) return x;
  std::vector<int64_t> strides = x.type().strides;
  strides.at(static_cast<size_t>(axis)) *= step;
  return view(slice(x, axis, begin, end, step), std::move(strides));
}

// Windows along an axis, their indices along a new last one.
LazyTensor windows(const LazyTensor& x, int64_t axis, int64_t width, int64_t step) {
  std::vector<int64_t> strides = x.type().strides;
  strides.push_back(strides.at(static_cast<size_t>(axis)));
  strides[static_cast<size_t>(axis)] *= step;
  return view(apply_one("aten::unfold", {x, axis, width, step}), std::move(strides));
}

// The first index that any trip reads, and the one behind the last.
std::pair<int64_t, int64_t> range_of(const Places& places, int64_t count) {
  const int64_t distance = (count - 1) * places.step;
  const int64_t begin = std::min(places.first, places.first + distance);
  return {begin, begin + std::abs(distance) + places.width.value_or(1)};
}

}  // namespace

LazyTensor with_axis_moved(const LazyTensor& x, int64_t from, int64_t to) {
  std::vector<int64_t> axes(static_cast<size_t>(x.rank())), strides;
  std::iota(axes.begin(), axes.end(), int64_t{0});
  axes.erase(axes.begin() + from);
  axes.insert(axes.begin() + to, from);
  if (from == to) return x;
  for (const int64_t axis : axes) strides.push_back(x.type().strides.at(static_cast<size_t>(axis)));
  return view(permute(x, axes), std::move(strides));
}

LazyTensor slots_at(const Places& places, int64_t count) {
  const int64_t step = std::abs(places.step), axis = places.axis;
  const auto [begin, last] = range_of(places, count);
  // Up to the end of the axis where no place more has room: a number that all sizes have.
  const int64_t extent = places.of.size(axis);
  const int64_t end = last + step > extent ? extent : last;
  LazyTensor x = part(places.of, axis, begin, end, places.width ? 1 : step);
  if (places.width) {
    x = windows(x, axis, *places.width, step);
    x = with_axis_moved(x, x.rank() - 1, axis + 1);
  }
  x = with_axis_moved(x, axis, 0);
  return places.step > 0 ? x : flip(x, {0});
}

LazyTensor written_at(const Places& places, int64_t count, const LazyTensor& slots) {
  LazyTensor all = places.step > 0 ? slots : flip(slots, {0});
  all = with_axis_moved(all, 0, places.axis);
  if (places.width) all = with_axes_joined(all, places.axis);
  const auto [begin, end] = range_of(places, count);
  const LazyTensor result = apply_one(
      "aten::slice_scatter",
      {places.of, all, places.axis, begin, end, places.width ? int64_t{1} : std::abs(places.step)});
  return view(result, places.of.type().strides);
}

LazyTensor slot_at(const LazyTensor& slots, int64_t index) {
  std::vector<int64_t> strides = slots.type().strides;
  strides.erase(strides.begin());
  return view(select_at(slots, 0, index), std::move(strides));
}

LazyTensor with_axes_joined(const LazyTensor& x, int64_t axis) {
  return apply_one("aten::flatten.using_ints", {x, axis, axis + 1});
}

LazyTensor dense_copy(const LazyTensor& x) {
  return apply_one("aten::clone", {x, Attribute(MemoryFormat::contiguous)});
}

}  // namespace composit
