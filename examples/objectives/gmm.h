// The log-posterior of a mixture of Gaussians with a Wishart prior: the first objective of ADBench
// (Srajer, Kukelova, Fitzgibbon 2018, "A benchmark of selected algorithmic differentiation tools on
// some problems in computer vision and machine learning"), with the signs of its programs.
//
//   cnp::NdArray value = gmm({alphas, means, icf}, x, {.gamma = 1, .m = 0});
//
//   sum_i logsumexp_k(alphas_k + sum(q_k) - |Q_k (x_i - means_k)|^2 / 2) - n logsumexp(alphas)
//     - n d log(2 pi) / 2 + sum_k log_wishart_prior(Q_k)
//
// Row k of `icf` holds q_k, the logarithms of the diagonal of the lower triangle Q_k, then what is
// below the diagonal, column by column.
#pragma once

#include "composit/numpy/ndarray.h"
#include "examples/objectives/problem.h"

namespace objectives {

struct Wishart {
  double gamma = 1;
  int64_t m = 0;
};

struct GmmParameters {
  composit::numpy::NdArray alphas;  // [k]
  composit::numpy::NdArray means;   // [k, d]
  composit::numpy::NdArray icf;     // [k, d (d + 1) / 2]
};

// Zero-dimensional; x: [n, d].
composit::numpy::NdArray gmm(const GmmParameters& parameters, const composit::numpy::NdArray& x,
                             const Wishart& wishart);
// The terms that do not depend on the parameters: k times the normaliser of the prior, and of n
// Gaussians.
double gmm_constant(int64_t d, int64_t k, int64_t n, const Wishart& wishart);

struct GmmSizes {
  int64_t d, k, n;
};
// Inputs: alphas, means, icf, x. Objective: the value; gradient: the value and the derivatives by
// alphas, means, icf.
Problem gmm_problem(const GmmSizes& sizes, composit::DType dtype = composit::DType::float64,
                    const Wishart& wishart = {});

}  // namespace objectives
