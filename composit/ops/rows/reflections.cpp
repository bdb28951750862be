// Products of Householder's reflections, and the matrices that LAPACK packs them in; exponentials
// of matrices.
#include <cmath>

#include "composit/ops/functions.h"
#include "composit/ops/linear_algebra.h"

namespace composit {
namespace {

LazyTensor unit(int64_t rows, int64_t columns, DType dtype) {
  return apply_one("aten::eye.m", {rows, columns, dtype});
}

// ---- reflections --------------------------------------------------------------------------------

// I - tau v v^H for each column v of a, 1 on the diagonal and what is stored below.
class Reflections {
 public:
  Reflections(const LazyTensor& a, const LazyTensor& tau) : count_(tau.size(-1)), tau_(tau) {
    expect_matrices(a);
    if (tau.rank() + 1 != a.rank() || count_ > a.size(-1))
      throw UserError("expected a factor per column of " + str(a.sizes()) + ", received sizes " +
                      str(tau.sizes()));
    const LazyTensor columns = slice(a, -1, 0, count_);
    v_ = tril(columns, -1) + unit(a.size(-2), count_, a.dtype());
  }
  int64_t count() const { return count_; }

  // The i-th one, or its adjoint, times x.
  LazyTensor from_left(int64_t i, const LazyTensor& x, bool adjoint_of) const {
    const LazyTensor v = slice(v_, -1, i, i + 1);
    return x - matmul(factor(i, adjoint_of) * v, matmul(adjoint(v), x));
  }
  LazyTensor from_right(int64_t i, const LazyTensor& x, bool adjoint_of) const {
    const LazyTensor v = slice(v_, -1, i, i + 1);
    return x - matmul(matmul(x, v), factor(i, adjoint_of) * adjoint(v));
  }

 private:
  LazyTensor factor(int64_t i, bool adjoint_of) const {
    const LazyTensor tau = unsqueeze(slice(tau_, -1, i, i + 1), -1);
    return adjoint_of ? conj(tau) : tau;
  }
  int64_t count_;
  LazyTensor tau_, v_;
};

// The first columns of the product of all.
LazyTensor product(const LazyTensor& a, const LazyTensor& tau) {
  const Reflections reflections(a, tau);
  if (a.size(-1) > a.size(-2))
    throw UserError("expected at most as many columns as rows, received sizes " + str(a.sizes()));
  LazyTensor q = expand(unit(a.size(-2), a.size(-1), a.dtype()), a.sizes());
  for (int64_t i = reflections.count(); i-- > 0;) q = reflections.from_left(i, q, false);
  return q;
}

// Q x, Q^H x, x Q or x Q^H.
LazyTensor times_product(const LazyTensor& a, const LazyTensor& tau, LazyTensor x, bool left,
                         bool adjoint_of) {
  const Reflections reflections(a, tau);
  for (int64_t n = 0; n < reflections.count(); ++n) {
    const int64_t i = left == adjoint_of ? n : reflections.count() - 1 - n;
    x = left ? reflections.from_left(i, x, adjoint_of) : reflections.from_right(i, x, adjoint_of);
  }
  return x;
}

// One step of a QR decomposition: what a column becomes, and what its reflection leaves of others.
struct Step {
  LazyTensor diagonal, below, tau, rest;
};

Step step_of(const LazyTensor& a) {
  const int64_t rows = a.size(-2);
  const LazyTensor column = slice(a, -1, 0, 1), alpha = slice(column, -2, 0, 1),
                   others = slice(column, -2, 1, rows);
  const LazyTensor part = is_complex(a.dtype()) ? apply_one("aten::real", {alpha}) : alpha;
  const LazyTensor squares = sum(square(abs(others)), {-2}, true);
  const LazyTensor length =
      where(part < 0, sqrt(square(abs(alpha)) + squares), -sqrt(square(abs(alpha)) + squares));
  LazyTensor is_done = eq(squares, 0);
  if (is_complex(a.dtype())) is_done = logical_and(is_done, eq(alpha, part));
  const LazyTensor tau = where(is_done, 0, (length - alpha) / where(is_done, 1, length));
  const LazyTensor below = where(is_done, 0, others / where(is_done, 1, alpha - length));
  const LazyTensor v = cat({ones_like(alpha), below}, -2);
  LazyTensor rest = slice(a, -1, 1, a.size(-1));
  rest = rest - matmul(conj(tau) * v, matmul(adjoint(v), rest));
  return {where(is_done, alpha, length), below, tau, rest};
}

// R and the vectors of the reflections below, packed; the factors.
LazyTensors packed_qr(LazyTensor a) {
  expect_matrices(a);
  const int64_t count = std::min(a.size(-2), a.size(-1));
  std::vector<Step> steps;
  LazyTensors factors;
  for (int64_t i = 0; i < count; ++i) {
    steps.push_back(step_of(a));
    factors.push_back(squeeze(steps.back().tau, {-1}));
    a = slice(steps.back().rest, -2, 1, a.size(-2));
  }
  for (size_t i = steps.size(); i-- > 0;) {
    const Step& step = steps[i];
    const LazyTensor top = cat({to(step.diagonal, a.dtype()), slice(step.rest, -2, 0, 1)}, -1);
    a = cat({top, cat({step.below, a}, -1)}, -2);
  }
  Ints none = a.sizes();
  none.pop_back();
  none.back() = 0;
  return {a, factors.empty() ? zeros(none, a.dtype()) : cat(factors, -1)};
}

// ---- exponentials -------------------------------------------------------------------------------

constexpr int kTerms = 18;      // of the series, for matrices of norm 1
constexpr int kSquarings = 16;  // of matrices of norm 2^16 at most

// exp(x) = exp(x / 2^s)^(2^s) (Higham, "The Scaling and Squaring Method for the Matrix Exponential
// Revisited", 2005), with a series in place of his rational function. NaN beyond a norm of 2^16.
LazyTensor matrix_exp(const LazyTensor& x) {
  expect_matrices(x);
  if (x.size(-1) != x.size(-2) || x.numel() == 0) return x;
  const LazyTensor norm = unsqueeze(unsqueeze(amax(sum(abs(x), {-2}), {-1}), -1), -1);
  LazyTensor scaled = x;
  LazyTensors doubled;  // per squaring, whether it is needed
  for (int i = 0; i < kSquarings; ++i) {
    doubled.push_back(norm > std::ldexp(1.0, i));
    scaled = where(doubled.back(), scaled * 0.5, scaled);
  }
  const LazyTensor one = unit(x.size(-1), x.size(-1), x.dtype());
  LazyTensor result = expand(one, x.sizes());
  for (int i = kTerms; i > 0; --i) result = one + matmul(scaled, result) * (1.0 / i);
  for (const LazyTensor& needed : doubled) result = where(needed, matmul(result, result), result);
  return where(norm > std::ldexp(1.0, kSquarings), NAN, result);
}

// The derivative is a block of the exponential of [[x^H, g], [0, x^H]].
LazyTensor exp_back(const LazyTensor& g, const LazyTensor& x) {
  const int64_t n = x.size(-1);
  const LazyTensor transposed = adjoint(x);
  const LazyTensor blocks =
      cat({cat({transposed, g}, -1), cat({zeros_like(x), transposed}, -1)}, -2);
  const LazyTensor all = apply_one("aten::linalg_matrix_exp", {blocks});
  return slice(slice(all, -2, 0, n), -1, n, 2 * n);
}

}  // namespace

void add_reflections_rows(OperationTable& rows) {
  rows.add({.schema = "aten::linalg_householder_product(Tensor input, Tensor tau) -> Tensor",
            .decompose = [](LazyTensor a, LazyTensor tau) { return LazyTensors{product(a, tau)}; },
            .samples = "f32[4,3] f32[3] | f64[2,3,3] f64[2,2] | f32[3,2] f32[0] | c64[3,2] c64[2]",
            .bad = "f32[2,3] f32[2]: as many columns as rows | f32[3,2] f32[3]: a factor per"});
  rows.add({.schema = "aten::ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool "
                      "transpose=False) -> Tensor",
            .decompose =
                [](LazyTensor a, LazyTensor tau, LazyTensor x, bool left, bool transpose) {
                  return LazyTensors{times_product(a, tau, x, left, transpose)};
                },
            .samples = "f32[4,3] f32[3] f32[4,2] | f32[4,2] f32[2] f32[4,2] True True | f64[3,2] "
                       "f64[2] f64[2,3] False | f32[3,3] f32[3] f32[2,3] False True"});
  rows.add({.schema = "aten::geqrf(Tensor self) -> (Tensor a, Tensor tau)",
            .decompose = [](LazyTensor a) { return packed_qr(a); },
            .samples = "f64[4,3] | f64[2,2,3] | f32[1,1]"});
  rows.add({.schema = "aten::linalg_matrix_exp(Tensor self) -> Tensor",
            .decompose = [](LazyTensor x) { return LazyTensors{matrix_exp(x)}; },
            .vjp = [](Vjp v, LazyTensor x) { return Gradients{exp_back(v.cotangents[0], x)}; },
            .samples = "f64[3,3] | f64[2,2,2]=-9..9 | f32[1,1]"});
}

}  // namespace composit
