#include "examples/objectives/gmm.h"

#include <cmath>
#include <numbers>

#include "composit/ad/chain_rule.h"
#include "composit/numpy/numpy.h"
#include "composit/op/nest.h"
#include "composit/ops/functions.h"
#include "examples/objectives/uniform.h"

namespace objectives {
namespace {

using composit::DType;
using composit::Expr;
namespace cnp = composit::numpy;

// Over the first axis.
cnp::NdArray logsumexp(const cnp::NdArray& x) {
  return composit::apply_one("aten::logsumexp", {x, composit::Ints{0}});
}

// The index of element [i, j] of a lower triangle in {diagonal, what is below by columns, 0}.
cnp::NdArray places_in_triangle(int64_t d) {
  std::vector<int64_t> places(static_cast<size_t>(d * d), d * (d + 1) / 2);
  int64_t next = d;
  for (int64_t j = 0; j < d; ++j) {
    places[static_cast<size_t>(j * d + j)] = j;
    for (int64_t i = j + 1; i < d; ++i) places[static_cast<size_t>(i * d + j)] = next++;
  }
  return cnp::asarray(places).reshape({d, d});
}

// [k, d, d] from [k, d] and [k, d (d - 1) / 2].
cnp::NdArray lower_triangles(const cnp::NdArray& diagonal, const cnp::NdArray& below) {
  const int64_t k = diagonal.size(0), d = diagonal.size(1);
  const cnp::NdArray zero = cnp::zeros({k, 1}, diagonal.dtype());
  return cnp::take(cnp::concatenate({diagonal, below, zero}, 1), places_in_triangle(d), 1);
}

// Lower triangles [k, d, d] times x [d, n]: [k, d, n]. What is above the diagonals is not read.
cnp::NdArray triangles_times(const cnp::NdArray& triangles, const cnp::NdArray& x) {
  static const auto kProduct = cnp::wrap_as_operation(
      {.schema = "objectives::triangles_times(Tensor triangles, Tensor x) -> Tensor",
       .loops = [](composit::In q, composit::In columns) {
         composit::Nest nest;
         const Expr k = nest.parallel(q.size(0)), i = nest.parallel(q.size(1)),
                    n = nest.parallel(columns.size(1)), j = nest.reduction(q.size(2));
         nest.where(j <= i);
         return nest.store(nest.sum(q(k, i, j) * columns(j, n))).loops();
       }});
  return kProduct(triangles, x);
}

// The same, each times columns of its own, [k, d, n].
cnp::NdArray triangles_times_own(const cnp::NdArray& triangles, const cnp::NdArray& x) {
  static const auto kProduct = cnp::wrap_as_operation(
      {.schema = "objectives::triangles_times_own(Tensor triangles, Tensor x) -> Tensor",
       .loops = [](composit::In q, composit::In columns) {
         composit::Nest nest;
         const Expr k = nest.parallel(q.size(0)), i = nest.parallel(q.size(1)),
                    n = nest.parallel(columns.size(2)), j = nest.reduction(q.size(2));
         nest.where(j <= i);
         return nest.store(nest.sum(q(k, i, j) * columns(k, j, n))).loops();
       }});
  return kProduct(triangles, x);
}

// |Q_k (x_i - mean_k)|^2, [k, n], as |Q_k x_i - Q_k mean_k|^2.
cnp::NdArray squared_distances(const cnp::NdArray& factors, const cnp::NdArray& means,
                               const cnp::NdArray& x) {
  const cnp::NdArray moved_means = triangles_times_own(factors, cnp::expand_dims(means, 2));
  return cnp::sum(cnp::square(triangles_times(factors, x.T()) - moved_means), 1);
}

double log_gamma_of_dimension(double a, int64_t d) {
  double sum = 0.25 * static_cast<double>(d * (d - 1)) * std::log(std::numbers::pi);
  for (int64_t j = 0; j < d; ++j) sum += std::lgamma(a - 0.5 * static_cast<double>(j));
  return sum;
}

}  // namespace

double gmm_constant(int64_t d, int64_t k, int64_t n, const Wishart& wishart) {
  const auto degrees = static_cast<double>(d + wishart.m + 1);
  const double prior =
      degrees * static_cast<double>(d) * (std::log(wishart.gamma) - 0.5 * std::log(2)) -
      log_gamma_of_dimension(0.5 * degrees, d);
  return -0.5 * static_cast<double>(n * d) * std::log(2 * std::numbers::pi) -
         static_cast<double>(k) * prior;
}

cnp::NdArray gmm(const GmmParameters& parameters, const cnp::NdArray& x, const Wishart& wishart) {
  const int64_t k = parameters.means.size(0), d = parameters.means.size(1), n = x.size(0);
  const cnp::NdArray log_diagonal = parameters.icf[{cnp::slice(), cnp::slice(d)}];
  const cnp::NdArray below = parameters.icf[{cnp::slice(), cnp::slice(d, {})}];
  const cnp::NdArray diagonal = cnp::exp(log_diagonal);
  const cnp::NdArray log_determinants = cnp::sum(log_diagonal, 1);

  const cnp::NdArray distances =
      squared_distances(lower_triangles(diagonal, below), parameters.means, x);
  const cnp::NdArray terms =
      cnp::expand_dims(parameters.alphas + log_determinants, 1) - 0.5 * distances;
  const cnp::NdArray likelihood = cnp::sum(logsumexp(terms)) - n * logsumexp(parameters.alphas);

  const cnp::NdArray frobenius = cnp::sum(cnp::square(diagonal)) + cnp::sum(cnp::square(below));
  const cnp::NdArray prior =
      0.5 * wishart.gamma * wishart.gamma * frobenius - wishart.m * cnp::sum(log_determinants);
  return likelihood + prior + gmm_constant(d, k, n, wishart);
}

Problem gmm_problem(const GmmSizes& sizes, DType dtype, const Wishart& wishart) {
  const auto [d, k, n] = sizes;
  Inputs inputs;
  const GmmParameters parameters = {
      inputs.add("alphas", uniform({.sizes = {k}, .seed = 1}, dtype)),
      inputs.add("means", uniform({.sizes = {k, d}, .seed = 2}, dtype)),
      inputs.add("icf",
                 uniform({.sizes = {k, d * (d + 1) / 2}, .seed = 3, .low = -0.125, .high = 0.125},
                         dtype))};
  const cnp::NdArray x = inputs.add("x", uniform({.sizes = {n, d}, .seed = 4}, dtype));

  const cnp::NdArray value = gmm(parameters, x, wishart);
  const auto gradients =
      composit::grad(value, {parameters.alphas, parameters.means, parameters.icf});
  return inputs.problem(
      "gmm_d" + std::to_string(d) + "_k" + std::to_string(k) + "_n" + std::to_string(n), {value},
      {value, gradients[0], gradients[1], gradients[2]});
}

}  // namespace objectives
