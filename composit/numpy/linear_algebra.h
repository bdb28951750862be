// NumPy's products of vectors and matrices, and functions of diagonals.
//
//   cnp::NdArray y = cnp::matmul(x, w);
//   cnp::NdArray scores = cnp::einsum("bqd,bkd->bqk", {q, k});
//
// UserErrors: sizes that are summed over and differ, an axis out of range, too few axes.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "composit/numpy/ndarray.h"

namespace composit::numpy {

// `dtype`: what is computed in, if not the common dtype.
// Products of matrices, the last two axes; those before broadcast.
NdArray matmul(const NdArray& a, const NdArray& b, std::optional<DType> dtype = {});
// Products summed over the last axis of a, and the one before the last of b; over the last of both;
// over none.
NdArray dot(const NdArray& a, const NdArray& b);
NdArray inner(const NdArray& a, const NdArray& b);
NdArray outer(const NdArray& a, const NdArray& b);
// The sum of conj(a) * b over all elements.
NdArray vdot(const NdArray& a, const NdArray& b);
// b for each element of a, times that element: Kronecker's product.
NdArray kron(const NdArray& a, const NdArray& b);
// The product of vectors of three numbers, along the last axis.
NdArray cross(const NdArray& a, const NdArray& b);
// Over the last `axes` of a and the first of b; or over the axes listed.
NdArray tensordot(const NdArray& a, const NdArray& b, int64_t axes = 2);
NdArray tensordot(const NdArray& a, const NdArray& b, const std::pair<Ints, Ints>& axes);
// Einstein's sum: axes by letters, summed over those that the result lacks. UserError for other
// text.
NdArray einsum(const std::string& subscripts, const NdArrays& operands);

// Elements (i, i + offset) of the two axes, along a new last axis; their sum.
NdArray diagonal(const NdArray& x, int64_t offset = 0, int64_t axis1 = 0, int64_t axis2 = 1);
NdArray trace(const NdArray& x, int64_t offset = 0, int64_t axis1 = 0, int64_t axis2 = 1);
// A vector as a diagonal; the diagonal of a matrix.
NdArray diag(const NdArray& x, int64_t k = 0);
// Zeros above the k-th diagonal; below it.
NdArray tril(const NdArray& x, int64_t k = 0);
NdArray triu(const NdArray& x, int64_t k = 0);

namespace linalg {

struct NormOptions {
  std::optional<double> ord = {};  // none: the root of the sum of squares
  bool keepdims = false;           // the axis stays, with size 1
};
// The norm of vectors along one axis, or of all elements. For matrices (two axes, no `ord`) it is
// the Frobenius norm; UserError for others.
NdArray norm(const NdArray& x, const Axes& axis = none, const NormOptions& options = {});

// x multiplied with itself n times, n >= 0.
NdArray matrix_power(const NdArray& x, int64_t n);

}  // namespace linalg
}  // namespace composit::numpy
