// Operators whose results are as long as values say. A program has the lengths of the captured run;
// that they are so for other values is a condition of the program.
#include <algorithm>

#include "composit/interchange/checks.h"
#include "composit/interchange/common_rows.h"
#include "composit/interchange/values.h"
#include "composit/ops/functions.h"

namespace composit::interchange {
namespace {

using Types = std::vector<Type>;
using X = const LazyTensor&;

LazyTensor total(X x) { return sum(to(x, DType::int64), {0}); }

// True where an element, or a slice along the first axis, differs from the one before; the first
// one does.
LazyTensor begins(X x) {
  const int64_t length = x.size(0);
  LazyTensor differs = ne(slice(x, 0, 1, length), slice(x, 0, 0, length - 1));
  if (x.rank() > 1)
    differs = sum(to(reshape(differs, {length - 1, x.numel() / length}), DType::int64), {1}) > 0;
  return cat({full({1}, 1, DType::bool_), differs}, 0);
}

LazyTensor put(X into, X places, X values, bool add) {
  return apply_one("aten::index_put", {into, LazyTensors{places}, values, add});
}

// Of elements in groups: one of each group, the group of each, how many each has.
LazyTensors groups_of(X x, int64_t groups) {
  const LazyTensor first = begins(x), holds = eq(total(first), groups);
  // Beyond the last group nothing is asked for: `holds` tells.
  const LazyTensor last = full({}, std::max<int64_t>(groups - 1, 0), DType::int64);
  const LazyTensor group = minimum(cumsum(to(first, DType::int64), 0) - 1, last);
  const LazyTensor ones = full({x.size(0)}, 1, DType::int64);
  Dims sizes = x.sizes();
  sizes[0] = groups;
  return {checked(put(zeros(sizes, x.dtype()), group, x, false), holds, kAsMany), group,
          put(zeros({groups}, DType::int64), group, ones, true)};
}

LazyTensor asked_for(X x, const Type& type) {
  return type.numel() == 0 ? zeros(type.sizes, type.dtype) : reshape(x, type.sizes);
}

LazyTensors unique(const Call& call, const Types& results) {
  X x = tensor_of(call, "self");
  if (x.numel() == 0 || is_complex(x.dtype())) return {};
  const LazyTensors sorted = composit::apply("aten::sort", {reshape(x, {x.numel()}), 0, false});
  const LazyTensors groups = groups_of(sorted[0], results[0].sizes[0]);
  const LazyTensor inverse = put(zeros({x.numel()}, DType::int64), sorted[1], groups[1], false);
  return {groups[0], asked_for(inverse, results[1]), asked_for(groups[2], results[2])};
}

// The slices along an axis in the order of their elements, first ones first: sorted by the last
// element, then by the one before, and so on.
LazyTensors unique_slices(const Call& call, const Types& results) {
  constexpr int64_t kMostElements = 256;  // of a slice, each of which is a sort
  X x = tensor_of(call, "self");
  if (x.numel() == 0 || is_complex(x.dtype())) return {};
  const int64_t axis = axis_of(call, "dim", x), length = x.size(axis), width = x.numel() / length;
  if (width > kMostElements) return {};
  const LazyTensor moved = transpose(x, 0, axis), slices = reshape(moved, {length, width});
  LazyTensor order = arange(length);
  for (int64_t i = width; i-- > 0;) {
    const LazyTensor key = apply_one("aten::index_select", {select_at(slices, 1, i), 0, order});
    const LazyTensor next = composit::apply("aten::sort.stable", {key, true, 0, false})[1];
    order = apply_one("aten::index_select", {order, 0, next});
  }
  const LazyTensor sorted = apply_one("aten::index_select", {moved, 0, order});
  const LazyTensors groups = groups_of(sorted, results[0].sizes[static_cast<size_t>(axis)]);
  const LazyTensor inverse = put(zeros({length}, DType::int64), order, groups[1], false);
  return {transpose(groups[0], 0, axis), asked_for(inverse, results[1]),
          asked_for(groups[2], results[2])};
}

LazyTensors unique_consecutive(const Call& call, const Types& results) {
  X x = tensor_of(call, "self");
  if (x.numel() == 0 || is_complex(x.dtype())) return {};
  const bool along = !call["dim"].is_none() && x.rank() > 0;
  const int64_t axis = along ? axis_of(call, "dim", x) : 0;
  const LazyTensor slices = along ? transpose(x, 0, axis) : reshape(x, {x.numel()});
  const LazyTensors groups =
      groups_of(slices, results[0].sizes.empty() ? 1 : results[0].sizes[static_cast<size_t>(axis)]);
  return {along ? transpose(groups[0], 0, axis) : reshape(groups[0], results[0].sizes),
          asked_for(groups[1], results[1]), asked_for(groups[2], results[2])};
}

LazyTensors bincount(const Call& call, const Types& results) {
  X x = tensor_of(call, "self");
  const int64_t length = results[0].sizes[0];
  const LazyTensor none = zeros(results[0].sizes, results[0].dtype);
  if (x.numel() == 0) return {none};
  const LazyTensor places = to(x, DType::int64);
  X given = tensor_of(call, "weights");
  const LazyTensor weights =
      given ? to(given, results[0].dtype) : full(x.sizes(), 1, results[0].dtype);
  const LazyTensor counts = put(none, places, weights, true);
  if (length <= int_of(call, "minlength")) return {counts};
  return {checked(counts, eq(amax(places), length - 1), kAsMany)};
}

// The number i as often as repeats[i] says: how many ends of runs stand before each place.
LazyTensors repeat_interleave(const Call& call, const Types& results) {
  X repeats = tensor_of(call, "repeats");
  const int64_t length = results[0].sizes[0], count = repeats.size(0);
  if (count == 0 || length == 0) return {zeros(results[0].sizes, results[0].dtype)};
  const LazyTensor ends = cumsum(to(repeats, DType::int64), 0);
  const LazyTensor holds = eq(total(repeats), length);
  const LazyTensor marks =
      put(zeros({length + 1}, DType::int64), minimum(ends, full({}, length, DType::int64)),
          full({count}, 1, DType::int64), true);
  const LazyTensor index = cumsum(slice(marks, 0, 0, length), 0);
  return {checked(to(index, results[0].dtype), holds, kAsMany)};
}

// Of one number: a place without axes, or none.
LazyTensors nonzero(const Call& call, const Types& results) {
  X x = tensor_of(call, "self");
  if (x.rank() != 0) return {};
  const LazyTensor holds = eq(to(ne(x, 0), DType::int64), results[0].sizes[0]);
  return {checked(zeros(results[0].sizes, DType::int64), holds, kAsMany)};
}

// Without a number of classes there are as many as the largest one says.
LazyTensors one_hot(const Call& call, const Types& results) {
  X x = tensor_of(call, "self");
  if (int_of(call, "num_classes") >= 0 || x.numel() == 0) return {};
  const int64_t classes = results[0].sizes.back();
  const LazyTensor marks = eq(unsqueeze(x, -1), arange(classes));
  return {checked(to(marks, results[0].dtype), eq(amax(x), classes - 1), kAsMany)};
}

// Parts whose number, or ends, a tensor says: those that they were.
LazyTensors tensor_split(const Call& call, const Types& results) {
  X x = tensor_of(call, "self"), said = tensor_of(call, "tensor_indices_or_sections");
  const int64_t axis = axis_of(call, "dim", x);
  std::vector<int64_t> ends = {0};
  for (const Type& part : results)
    ends.push_back(ends.back() + part.sizes[static_cast<size_t>(axis)]);
  LazyTensor holds;
  if (said.rank() == 0) {
    holds = eq(said, static_cast<int64_t>(results.size()));
  } else {
    const std::vector<int64_t> inner(ends.begin() + 1, ends.end() - 1);
    if (inner.empty()) return {};
    holds = apply_one("aten::all", {eq(to(said, DType::int64), integers(inner))});
  }
  LazyTensors parts;
  for (size_t i = 0; i + 1 < ends.size(); ++i)
    parts.push_back(checked(slice(x, axis, ends[i], ends[i + 1]), holds, kAsMany));
  return parts;
}

}  // namespace

void add_value_size_rows(std::vector<Row>& rows) {
  rows.insert(rows.end(), {{"aten::_unique2", unique},
                           {"aten::unique_dim", unique_slices},
                           {"aten::unique_consecutive", unique_consecutive},
                           {"aten::bincount", bincount},
                           {"aten::repeat_interleave.Tensor", repeat_interleave},
                           {"aten::nonzero", nonzero},
                           {"aten::one_hot", one_hot},
                           {"aten::tensor_split.tensor_indices_or_sections", tensor_split}});
}

}  // namespace composit::interchange
