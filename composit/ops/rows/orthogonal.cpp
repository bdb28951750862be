// Matrices as products with an orthogonal (of complex numbers: unitary) one.
#include <algorithm>
#include <cmath>

#include "composit/ops/functions.h"
#include "composit/ops/matrices.h"

namespace composit {
namespace {

using Number = Matrices::Number;

void expect_matrices(const Tensor& x) {
  expect_floating(x.dtype());
  if (x.rank() < 2) throw UserError("expected matrices, received sizes " + str(x.sizes()));
}

// ---- QR -----------------------------------------------------------------------------------------

// I - scale v v^H, with v zero above `first`.
struct Reflection {
  std::vector<Number> v;
  Number scale;
  size_t first;
};

// That which leaves nothing below the diagonal of column `k` when its adjoint is applied: signs as
// LAPACK's larfg has them.
Reflection reflection_of(const Matrices& a, int64_t m, int64_t k) {
  Reflection h{std::vector<Number>(static_cast<size_t>(a.rows)), 0, static_cast<size_t>(k)};
  double below = 0;
  for (int64_t i = k + 1; i < a.rows; ++i) below += std::norm(a(m, i, k));
  const Number alpha = a(m, k, k);
  if (below == 0 && alpha.imag() == 0) return h;
  const double length = -std::copysign(std::sqrt(std::norm(alpha) + below), alpha.real());
  h.scale = (length - alpha) / length;
  h.v[h.first] = 1;
  for (int64_t i = k + 1; i < a.rows; ++i)
    h.v[static_cast<size_t>(i)] = a(m, i, k) / (alpha - length);
  return h;
}

// (I - scale v v^H) a, for the columns from `column` on.
void apply_reflection(const Reflection& h, Number scale, Matrices& a, int64_t m, int64_t column) {
  for (int64_t j = column; j < a.columns; ++j) {
    Number along = 0;
    for (size_t i = h.first; i < h.v.size(); ++i)
      along += std::conj(h.v[i]) * a(m, static_cast<int64_t>(i), j);
    for (size_t i = h.first; i < h.v.size(); ++i)
      a(m, static_cast<int64_t>(i), j) -= scale * along * h.v[i];
  }
}

// The upper left of each matrix.
Matrices corner(const Matrices& a, int64_t rows, int64_t columns) {
  Matrices result(a.count, rows, columns);
  for (int64_t m = 0; m < a.count; ++m)
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) result(m, i, j) = a(m, i, j);
  return result;
}

// Q of `columns` columns and R of as many rows, by Householder's reflections.
std::pair<Matrices, Matrices> qr(Matrices a, int64_t columns) {
  Matrices q(a.count, a.rows, columns);
  const int64_t steps = std::min(a.rows, a.columns);
  for (int64_t m = 0; m < a.count; ++m) {
    std::vector<Reflection> reflections;
    for (int64_t k = 0; k < steps; ++k) {
      reflections.push_back(reflection_of(a, m, k));
      apply_reflection(reflections.back(), std::conj(reflections.back().scale), a, m, k);
      for (int64_t i = k + 1; i < a.rows; ++i) a(m, i, k) = 0;
    }
    for (int64_t k = 0; k < columns; ++k) q(m, k, k) = 1;
    for (auto h = reflections.rbegin(); h != reflections.rend(); ++h)
      apply_reflection(*h, h->scale, q, m, 0);
  }
  return {q, corner(a, columns, a.columns)};
}

Type with_matrix(const Type& batch, int64_t rows, int64_t columns) {
  Dims sizes(batch.sizes.begin(), batch.sizes.end() - 2);
  sizes.insert(sizes.end(), {rows, columns});
  return tensor_type(batch.dtype, sizes);
}

std::vector<Type> qr_types(const Type& a, const std::string& mode) {
  const int64_t rows = a.sizes[a.rank() - 2].value(), columns = a.sizes.back().value();
  const int64_t inner = mode == "complete" ? rows : std::min(rows, columns);
  const Type q = mode == "r" ? tensor_type(a.dtype, {0}) : with_matrix(a, rows, inner);
  return {q, with_matrix(a, inner, columns)};
}

Tensor adjoint(const Tensor& x) { return conj(transpose(x, -1, -2)); }
Tensor with_half_diagonal(const Tensor& x) {
  const Tensor one = apply_one("aten::eye", {x.size(-1), x.dtype()});
  return x * (1 - 0.5 * one);
}
// x R^-H
Tensor divided_by_adjoint(const Tensor& x, const Tensor& r) {
  return apply_one("aten::linalg_solve_triangular",
                   {adjoint(r), x, /*upper=*/false, /*left=*/false});
}

// Roberts and Roberts, "QR and LQ Decomposition Matrix Backpropagation Algorithms for Square, Wide,
// and Deep Matrices" (2020).
Gradients qr_back(const Vjp& v, const Tensor& a, const std::string& mode) {
  const Tensor &q = v.results[0], &r = v.results[1];
  const int64_t rows = a.size(-2), columns = a.size(-1);
  if (mode == "r") throw UserError("expected mode 'reduced' for a derivative: it needs Q");
  if (mode == "complete" && rows > columns)
    throw UserError("expected mode 'reduced' for a derivative of more rows than columns");
  const Tensor gq = v.cotangents[0].defined() ? v.cotangents[0] : zeros_like(q);
  const Tensor gr = v.cotangents[1].defined() ? v.cotangents[1] : zeros_like(r);
  const Tensor inner = matmul(gr, adjoint(r)) - matmul(adjoint(q), gq);
  if (rows >= columns) {
    const Tensor upper = apply_one("aten::triu", {inner});
    return {divided_by_adjoint(gq + matmul(q, with_half_diagonal(upper + adjoint(upper))), r)};
  }
  const Tensor skew = tril(adjoint(inner) - inner);
  const Tensor square =
      divided_by_adjoint(matmul(q, with_half_diagonal(skew)), slice(r, -1, 0, rows));
  Ints rest = square.sizes();
  rest.back() = columns - rows;
  return {cat({square, zeros(rest, a.dtype())}, -1) + matmul(q, gr)};
}

}  // namespace

void add_orthogonal_rows(OperationTable& rows) {
  rows.add({.schema = "aten::linalg_qr(Tensor A, str mode=\"reduced\") -> (Tensor Q, Tensor R)",
            .infer =
                [](Tensor a, std::string mode) {
                  expect_matrices(a);
                  if (mode != "reduced" && mode != "complete" && mode != "r")
                    throw UserError("expected mode 'reduced', 'complete' or 'r', received '" +
                                    mode + "'");
                  return qr_types(a.type(), mode);
                },
            .native =
                [](Array a, std::string mode) {
                  const std::vector<Type> types = qr_types(a.type(), mode);
                  const auto [q, r] = qr(Matrices(a), types[1].sizes[types[1].rank() - 2].value());
                  return std::vector<Array>{
                      mode == "r" ? Matrices(0, 0, 0).array(types[0]) : q.array(types[0]),
                      r.array(types[1])};
                },
            .vjp = [](Vjp v, Tensor a, std::string mode) { return qr_back(v, a, mode); },
            .samples = "f32[3,3] | f32[4,2] | f32[2,4] | f32[2,3,2] | f32[2,3] 'complete' | "
                       "c64[3,2] | c64[2,3]",
            .bad = "f32[3]: expected matrices | i64[2,2]: floating point | f32[2,2] 'full': "
                   "expected mode"});
}

}  // namespace composit
