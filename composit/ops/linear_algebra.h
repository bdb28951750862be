// Helpers for rows of linear algebra.
//
//   expect_matrices(x);   LazyTensor gram = matmul(adjoint(x), x);
#pragma once

#include "composit/ops/functions.h"

namespace composit {

// UserError where `x` has another dtype than a floating point or complex one, or less than 2 axes.
inline void expect_matrices(const LazyTensor& x) {
  expect_floating(x.dtype());
  if (x.rank() < 2) throw UserError("expected matrices, received sizes " + str(x.sizes()));
}

// x Wᵀ + b. (Beside matmul in functions.h, it would be ambiguous with composit::nn::linear.)
inline LazyTensor linear(const LazyTensor& x, const LazyTensor& weight,
                         const std::optional<LazyTensor>& bias) {
  return apply_one("aten::linear", {x, weight, bias});
}

// The conjugate transpose of each matrix.
inline LazyTensor adjoint(const LazyTensor& x) { return conj(transpose(x, -1, -2)); }

}  // namespace composit
