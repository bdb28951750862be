// Helpers for rows that reduce over axes.
//
//   LazyTensor mean = sum(x, axes) / count_over(x, axes);
//   LazyTensor centered = x - with_axes(mean, x, axes, /*keepdim=*/false);
#pragma once

#include "composit/ops/functions.h"

namespace composit {

// Number of elements of x that become one over `axes` (all, if empty).
int64_t count_over(const Ints& sizes, const Ints& axes);
// `y`, x reduced over `axes`, with these axes back at size 1; as it is where `keepdim`.
LazyTensor with_axes(const LazyTensor& y, const LazyTensor& x, const Ints& axes, bool keepdim);
// UserError where an axis that is reduced has no elements.
void expect_elements(const In& x, const Ints& axes);
// torch sums and multiplies integers and bool in int64.
DType sum_dtype(DType dtype);
// For an operation whose result 1 holds the indices along `dim` of the elements of x that make
// result 0: the cotangent goes to these elements. `keepdim`: the results have the axis.
Gradients to_chosen(const Vjp& v, const LazyTensor& x, int64_t dim, bool keepdim);
// The first and the last number of a real dtype.
Expr least(DType dtype);
Expr greatest(DType dtype);

}  // namespace composit
