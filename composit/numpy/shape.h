// NumPy's functions that move, join, split and repeat elements.
//
//   cnp::NdArray y = cnp::transpose(cnp::reshape(x, {2, -1}), {1, 0});
//   cnp::NdArrays halves = cnp::split(x, 2, 1);
//
// UserErrors: a shape that the elements do not fill, an axis out of range, shapes that do not fit.
#pragma once

#include <concepts>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "composit/numpy/ndarray.h"

namespace composit::numpy {

// One size may be -1: what is left.
// The same elements in another shape.
NdArray reshape(const NdArray& x, const Ints& shape);
// The same elements along one axis.
NdArray ravel(const NdArray& x);
// No axes: all in reverse.
// Axis i is axis `axes[i]` of x.
NdArray transpose(const NdArray& x, const Ints& axes = {});
// Axes at other places; two exchanged, or each of `source` at its `destination`.
NdArray swapaxes(const NdArray& x, int64_t axis1, int64_t axis2);
NdArray moveaxis(const NdArray& x, const Axes& source, const Axes& destination);
// Without axes of size 1: those listed, or all; with new ones at these places of the result.
NdArray squeeze(const NdArray& x, const Axes& axis = none);
NdArray expand_dims(const NdArray& x, const Axes& axis);
// With axes of size 1 in front, where there are fewer.
NdArray atleast_1d(const NdArray& x);
NdArray atleast_2d(const NdArray& x);
// Repeated along axes of size 1, and along new ones in front; to the shape that all broadcast to.
NdArray broadcast_to(const NdArray& x, const Ints& shape);
NdArrays broadcast_arrays(const NdArrays& arrays);

// none: of the arrays flattened. Concatenates arrays along an axis that all of them have.
NdArray concatenate(const NdArrays& arrays, std::optional<int64_t> axis = 0);
// Along a new axis; as NumPy's functions of these names. UserError where shapes do not fit.
NdArray stack(const NdArrays& arrays, int64_t axis = 0);
NdArray hstack(const NdArrays& arrays);
NdArray vstack(const NdArrays& arrays);
NdArray dstack(const NdArrays& arrays);
NdArray column_stack(const NdArrays& arrays);

namespace detail {
NdArrays split(const NdArray& x, int64_t sections, int64_t axis);
NdArrays array_split(const NdArray& x, int64_t sections, int64_t axis);
NdArray repeat(const NdArray& x, int64_t repeats, std::optional<int64_t> axis);
}  // namespace detail

// Numbers are template parameters below, so that {2} is a list of one.

// Appends `values` to x along the axis; none: both are flattened first.
NdArray append(const NdArray& x, const NdArray& values, std::optional<int64_t> axis = {});
// x without, or with `values` before, the places of an axis; none: x flattened.
NdArray delete_(const NdArray& x, const Ints& places, std::optional<int64_t> axis = {});
NdArray insert(const NdArray& x, int64_t place, const Operand& values,
               std::optional<int64_t> axis = {});

// In equal parts, or before each of the places.
NdArrays split(const NdArray& x, std::integral auto sections, int64_t axis = 0) {
  return detail::split(x, sections, axis);
}
NdArrays split(const NdArray& x, const Ints& places, int64_t axis = 0);
// The same where the first parts may be longer by one.
NdArrays array_split(const NdArray& x, std::integral auto sections, int64_t axis = 0) {
  return detail::array_split(x, sections, axis);
}
NdArrays array_split(const NdArray& x, const Ints& places, int64_t axis = 0);
// Along axis 1 (of a vector: 0); along axis 0.
NdArrays hsplit(const NdArray& x, int64_t sections);
NdArrays vsplit(const NdArray& x, int64_t sections);

NdArray tile(const NdArray& x,
             const Ints& repetitions);  // x side by side, as often along each axis
// Each element `repeats` times, or one number of times per place along the axis.
NdArray repeat(const NdArray& x, std::integral auto repeats, std::optional<int64_t> axis = {}) {
  return detail::repeat(x, repeats, axis);
}
NdArray repeat(const NdArray& x, const Ints& repeats, std::optional<int64_t> axis = {});

// In reverse order along the axes (none: all); along axis 1; along axis 0.
NdArray flip(const NdArray& x, const Axes& axis = none);
NdArray fliplr(const NdArray& x);
NdArray flipud(const NdArray& x);
NdArray rot90(const NdArray& x, int64_t k = 1,
              std::pair<int64_t, int64_t> axes = {
                  0, 1});  // turned by 90 degrees, k times, in the plane of the axes
NdArray roll(const NdArray& x, int64_t shift,
             const Axes& axis = none);  // moved along the axis; what falls off comes in again
// A shift per axis; several for one axis add up.
NdArray roll(const NdArray& x, const Ints& shift, const Axes& axis);

// The numbers of elements added before and after, per axis, or once for all axes.
using PadWidth = std::vector<std::pair<int64_t, int64_t>>;
// Modes: constant, edge, reflect, symmetric, wrap.
NdArray pad(const NdArray& x, const PadWidth& width, std::string_view mode = "constant",
            const Operand& constant_values = 0);
NdArray pad(const NdArray& x, int64_t width, std::string_view mode = "constant",
            const Operand& constant_values = 0);

}  // namespace composit::numpy
