#include "composit/numpy/shape.h"

#include <algorithm>

#include "composit/ir/error.h"
#include "composit/numpy/result_type.h"

namespace composit::numpy {
namespace {

int64_t product(const Ints& sizes) {
  int64_t count = 1;
  for (int64_t size : sizes) count *= size;
  return count;
}

// `shape` with the size that is left out filled in.
Ints filled_shape(const NdArray& x, Ints shape) {
  const std::string message =
      "expected a shape for " + std::to_string(x.size()) + " elements, received " + str(shape);
  const auto unknown = std::find(shape.begin(), shape.end(), -1);
  if (unknown != shape.end()) {
    *unknown = 1;
    const int64_t rest = product(shape);
    if (rest == 0) refuse("reshape", message);
    *unknown = x.size() / rest;
  }
  const bool negative = std::any_of(shape.begin(), shape.end(), [](int64_t n) { return n < 0; });
  if (negative || product(shape) != x.size()) refuse("reshape", message);
  return shape;
}

void expect_arrays(std::string_view function, const NdArrays& arrays) {
  if (arrays.empty()) refuse(function, "expected an array at least, received none");
}

// The arrays cast to their common dtype, by NumPy's rules.
LazyTensors promoted(const NdArrays& arrays) {
  DType dtype = arrays[0].dtype();
  for (const NdArray& x : arrays) dtype = result_type(dtype, x.dtype());
  LazyTensors tensors;
  for (const NdArray& x : arrays) tensors.push_back(to(x, dtype));
  return tensors;
}

// As concatenate says it of arrays that differ elsewhere than along `axis`.
void expect_fitting(std::string_view function, const NdArrays& arrays, std::optional<size_t> axis) {
  for (const NdArray& x : arrays) {
    Ints expected = arrays[0].shape(), received = x.shape();
    if (axis && expected.size() == received.size()) expected[*axis] = received[*axis] = 0;
    if (expected != received)
      refuse(function, "expected arrays of the same shape" +
                           (axis ? " but for axis " + std::to_string(*axis) : std::string()) +
                           ", received " + str(arrays[0].shape()) + " and " + str(x.shape()));
  }
}

NdArrays parts_of(const NdArray& x, const Ints& sizes, int64_t axis) {
  const LazyTensors parts = apply("aten::split_with_sizes", {LazyTensor(x), sizes, axis});
  return NdArrays(parts.begin(), parts.end());
}

// A place as Python's slices take it: from the end where it is negative, within the axis.
int64_t clamped(int64_t place, int64_t size) {
  return std::clamp<int64_t>(place < 0 ? place + size : place, 0, size);
}

}  // namespace

NdArray reshape(const NdArray& x, const Ints& shape) {
  return composit::reshape(x, filled_shape(x, shape));
}
NdArray ravel(const NdArray& x) { return composit::reshape(x, {x.size()}); }

NdArray transpose(const NdArray& x, const Ints& axes) {
  if (axes.empty() && x.ndim() > 0) {
    Ints reversed;
    for (int64_t axis = x.ndim(); axis-- > 0;) reversed.push_back(axis);
    return permute(x, reversed);
  }
  if (static_cast<int64_t>(axes.size()) != x.ndim())
    refuse("transpose", "expected " + std::to_string(x.ndim()) + " axes, received " + str(axes));
  return permute(x, Axes(axes).of_rank(x.ndim(), "transpose"));
}
NdArray swapaxes(const NdArray& x, int64_t axis1, int64_t axis2) {
  return composit::transpose(x, axis_of_rank(axis1, x.ndim(), "swapaxes"),
                             axis_of_rank(axis2, x.ndim(), "swapaxes"));
}
NdArray moveaxis(const NdArray& x, const Axes& source, const Axes& destination) {
  const Ints from = source.of_rank(x.ndim(), "moveaxis");
  const Ints target = destination.of_rank(x.ndim(), "moveaxis");
  if (from.size() != target.size())
    refuse("moveaxis", "expected as many destinations as sources, received " + str(from) + " and " +
                           str(target));
  Ints order(static_cast<size_t>(x.ndim()), -1);
  for (size_t i = 0; i < from.size(); ++i) order[static_cast<size_t>(target[i])] = from[i];
  int64_t next = 0;
  for (int64_t& axis : order) {
    if (axis >= 0) continue;
    while (std::find(from.begin(), from.end(), next) != from.end()) ++next;
    axis = next++;
  }
  return permute(x, order);
}

NdArray squeeze(const NdArray& x, const Axes& axis) {
  Ints axes = axis.of_rank(x.ndim(), "squeeze");
  const Ints shape = x.shape();
  const auto is_long = [&](int64_t a) { return shape[static_cast<size_t>(a)] != 1; };
  if (axis.is_none()) std::erase_if(axes, is_long);
  if (const auto found = std::find_if(axes.begin(), axes.end(), is_long); found != axes.end())
    refuse("squeeze", "expected axes of size 1, received axis " + std::to_string(*found) +
                          " of shape " + str(shape));
  return axes.empty() ? x : NdArray(composit::squeeze(x, axes));
}
NdArray expand_dims(const NdArray& x, const Axes& axis) {
  if (axis.is_none()) refuse("expand_dims", "expected an axis, received none");
  Ints axes = axis.of_rank(x.ndim() + axis.count(), "expand_dims");  // those of the result
  std::sort(axes.begin(), axes.end());
  NdArray y = x;
  for (int64_t a : axes) y = unsqueeze(y, a);
  return y;
}
NdArray atleast_1d(const NdArray& x) { return x.ndim() > 0 ? x : reshape(x, {1}); }
NdArray atleast_2d(const NdArray& x) { return x.ndim() > 1 ? x : expand_dims(atleast_1d(x), 0); }

NdArray broadcast_to(const NdArray& x, const Ints& shape) {
  const auto fits = [&] {
    if (shape.size() < x.shape().size()) return false;
    const size_t extra = shape.size() - x.shape().size();
    for (size_t i = 0; i < x.shape().size(); ++i)
      if (x.shape()[i] != 1 && x.shape()[i] != shape[extra + i]) return false;
    return std::all_of(shape.begin(), shape.end(), [](int64_t n) { return n >= 0; });
  };
  if (!fits())
    refuse("broadcast_to",
           "expected a shape that " + str(x.shape()) + " broadcasts to, received " + str(shape));
  return expand(x, shape);
}
NdArrays broadcast_arrays(const NdArrays& arrays) {
  std::vector<Ints> shapes;
  for (const NdArray& x : arrays) shapes.push_back(x.shape());
  const Ints shape = broadcast_sizes(shapes);
  NdArrays result;
  for (const NdArray& x : arrays) result.push_back(broadcast_to(x, shape));
  return result;
}

NdArray concatenate(const NdArrays& arrays, std::optional<int64_t> axis) {
  expect_arrays("concatenate", arrays);
  if (!axis) {
    NdArrays flat;
    for (const NdArray& x : arrays) flat.push_back(ravel(x));
    return concatenate(flat, 0);
  }
  const int64_t place = axis_of_rank(*axis, arrays[0].ndim(), "concatenate");
  expect_fitting("concatenate", arrays, static_cast<size_t>(place));
  return cat(promoted(arrays), place);
}
NdArray stack(const NdArrays& arrays, int64_t axis) {
  expect_arrays("stack", arrays);
  const int64_t place = axis_of_rank(axis, arrays[0].ndim() + 1, "stack");
  expect_fitting("stack", arrays, {});
  return apply_one("aten::stack", {promoted(arrays), place});
}
NdArray hstack(const NdArrays& arrays) {
  expect_arrays("hstack", arrays);
  NdArrays rows;
  for (const NdArray& x : arrays) rows.push_back(atleast_1d(x));
  return concatenate(rows, rows[0].ndim() == 1 ? 0 : 1);
}
NdArray vstack(const NdArrays& arrays) {
  NdArrays rows;
  for (const NdArray& x : arrays) rows.push_back(atleast_2d(x));
  return concatenate(rows, 0);
}
NdArray dstack(const NdArrays& arrays) {
  NdArrays rows;
  for (const NdArray& x : arrays) rows.push_back(x.ndim() > 2 ? x : expand_dims(atleast_2d(x), 2));
  return concatenate(rows, 2);
}
NdArray column_stack(const NdArrays& arrays) {
  NdArrays columns;
  for (const NdArray& x : arrays) columns.push_back(x.ndim() > 1 ? x : transpose(atleast_2d(x)));
  return concatenate(columns, 1);
}

NdArrays detail::split(const NdArray& x, int64_t sections, int64_t axis) {
  const int64_t size = x.size(axis_of_rank(axis, x.ndim(), "split"));
  if (sections <= 0 || size % sections != 0)
    refuse("split", "expected a number of parts that divides " + std::to_string(size) +
                        ", received " + std::to_string(sections));
  return array_split(x, sections, axis);
}
NdArrays split(const NdArray& x, const Ints& places, int64_t axis) {
  axis = axis_of_rank(axis, x.ndim(), "split");
  const int64_t size = x.size(axis);
  Ints begins{0}, ends;
  for (int64_t place : places) {
    begins.push_back(clamped(place, size));
    ends.push_back(begins.back());
  }
  ends.push_back(size);
  Ints sizes;
  for (size_t i = 0; i < ends.size(); ++i) sizes.push_back(ends[i] - begins[i]);
  if (std::all_of(sizes.begin(), sizes.end(), [](int64_t n) { return n >= 0; }))
    return parts_of(x, sizes, axis);
  NdArrays parts;  // places out of order
  for (size_t i = 0; i < ends.size(); ++i)
    parts.emplace_back(slice(x, axis, begins[i], std::max(begins[i], ends[i])));
  return parts;
}
NdArrays detail::array_split(const NdArray& x, int64_t sections, int64_t axis) {
  axis = axis_of_rank(axis, x.ndim(), "array_split");
  if (sections <= 0)
    refuse("array_split", "expected a part at least, received " + std::to_string(sections));
  const int64_t size = x.size(axis);
  Ints sizes;
  for (int64_t i = 0; i < sections; ++i)
    sizes.push_back(size / sections + (i < size % sections ? 1 : 0));
  return parts_of(x, sizes, axis);
}
NdArrays array_split(const NdArray& x, const Ints& places, int64_t axis) {
  return split(x, places, axis);
}
NdArrays hsplit(const NdArray& x, int64_t sections) {
  return split(x, sections, x.ndim() > 1 ? 1 : 0);
}
NdArrays vsplit(const NdArray& x, int64_t sections) {
  if (x.ndim() < 2)
    refuse("vsplit", "expected two axes at least, received shape " + str(x.shape()));
  return split(x, sections, 0);
}

}  // namespace composit::numpy
