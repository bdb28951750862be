// What rows of linear algebra share.
//
//   expect_matrices(x);   Tensor gram = matmul(adjoint(x), x);
#pragma once

#include "composit/ops/functions.h"

namespace composit {

// UserError where `x` has another dtype than a floating point or complex one, or less than 2 axes.
inline void expect_matrices(const Tensor& x) {
  expect_floating(x.dtype());
  if (x.rank() < 2) throw UserError("expected matrices, received sizes " + str(x.sizes()));
}

// x Wᵀ + b. (Beside matmul in functions.h, it would be ambiguous with composit::nn::linear.)
inline Tensor linear(const Tensor& x, const Tensor& weight, const std::optional<Tensor>& bias) {
  return apply_one("aten::linear", {x, weight, bias});
}

// Of each matrix, conjugate and transposed.
inline Tensor adjoint(const Tensor& x) { return conj(transpose(x, -1, -2)); }

}  // namespace composit
