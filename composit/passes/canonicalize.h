// One spelling where ATen has several for the same values, so that captures of one model from C++
// and from Python are equal, and so that a reader of a graph has to know fewer operations.
//
//   canonicalize(cpp_capture) == canonicalize(python_capture);
//
// Asked of the rows, so that a row of your own takes part:
//   * a row's other names (`also`), attributes left out, one number for a list, negative axes, axes
//     in any order where order does not count, no axes for all of them
//   * an operation that its row defines as one other: chunk -> split_with_sizes, conv2d ->
//     convolution, layer_norm -> native_layer_norm, softmax -> _softmax, squeeze.dim, movedim …
//   * what only changes sizes -> reshape; what only changes the dtype -> to.dtype; what fills ->
//     full, and a number where it stands beside a tensor of its type
//   * `.Scalar` overloads -> `.Tensor` with a wrapped number, which is what LibTorch does with them
// Known by name: transpose -> permute, split -> split_with_sizes, rsub -> sub, sum -> sum of axes,
// the ends of slices, mm for matmul of matrices.
//
// All of this is exact. Products reassociate: addmm and mm with a transposed weight -> linear; a
// linear between reshapes, and one whose bias is added after it -> one linear. LibTorch's linear
// calls addmm or mm itself, but adds the bias within its kernel where C++ adds it afterwards, and
// another order of loops sums in another order.
//
// The pass drops the record of how LibTorch ran a node (in place, the inside of a composite that
// has a row): the result computes the same values, but cannot be replayed call by call. Types,
// strides, effects, guards and grad modes stay.
#pragma once

#include "composit/ir/graph.h"

namespace composit {

struct CanonicalizeOptions {
  bool exact = false;  // without the products
};

Graph canonicalize(const Graph& graph, const CanonicalizeOptions& options = {});

}  // namespace composit
