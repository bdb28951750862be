// NumPy's sorting and searching.
//
//   cnp::NdArray order = cnp::argsort(x, 0);
//   cnp::NdArray places = cnp::searchsorted(edges, x, "right");
//
// Sorts are stable; NaN comes last. none for an axis: x flattened. UserErrors: complex numbers,
// which have no order, an axis out of range.
#pragma once

#include <optional>
#include <string_view>

#include "composit/numpy/ndarray.h"

namespace composit::numpy {

// Upwards along the axis (none: x flattened), NaN last; equal elements keep their order. The
// elements; their places, int64.
NdArray sort(const NdArray& x, std::optional<int64_t> axis = -1);
NdArray argsort(const NdArray& x, std::optional<int64_t> axis = -1);
// The index at which each of `values` is to be inserted into the sorted vector `sorted`: before
// (left) or after (right) equal elements.
NdArray searchsorted(const NdArray& sorted, const Operand& values, std::string_view side = "left");

}  // namespace composit::numpy
