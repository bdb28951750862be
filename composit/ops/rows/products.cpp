// Products of matrices and vectors that are made of those in contraction.cpp.
#include <algorithm>
#include <cmath>

#include "composit/op/promotion.h"
#include "composit/ops/functions.h"

namespace composit {
namespace {

void expect_rank(const LazyTensor& x, int64_t rank) {
  if (x.rank() != rank)
    throw UserError("expected " + std::to_string(rank) + (rank == 1 ? " axis" : " axes") +
                    ", received sizes " + str(x.sizes()));
}

// Computed in the dtype of x: a factor of integers loses the digits after its point.
LazyTensor times(const LazyTensor& x, const Scalar& factor) {
  if (is_literal(Expr(factor), 1)) return x;
  if (category(x.dtype()) > DTypeCategory::integer) return x * Number(factor);
  const auto* real = std::get_if<double>(&factor.value);
  return to(x * (real ? Number(static_cast<int64_t>(*real)) : Number(factor)), x.dtype());
}

// beta * input + alpha * product; the input is not read where beta is 0.
LazyTensors blended(const LazyTensor& input, const LazyTensor& product, const Scalar& beta,
                    const Scalar& alpha) {
  const Ints sizes = product.sizes();
  if (broadcast_sizes({input.sizes(), sizes}) != sizes)
    throw UserError("sizes " + str(input.sizes()) + " do not broadcast to " + str(sizes));
  const LazyTensor scaled = times(product, alpha);
  return {is_literal(Expr(beta), 0) ? scaled : times(input, beta) + scaled};
}

// The same for a product of a and b. LibTorch rounds products of 16-bit floats behind the factors.
template <class Product>
LazyTensors blended(const LazyTensor& input, const LazyTensor& a, const LazyTensor& b,
                    Product product, const Scalar& beta, const Scalar& alpha) {
  const bool is_plain =
      is_literal(Expr(alpha), 1) && (is_literal(Expr(beta), 1) || is_literal(Expr(beta), 0));
  if (is_plain || !is_half(a.dtype())) return blended(input, product(a, b), beta, alpha);
  const LazyTensors wide = blended(widened(input), product(widened(a), widened(b)), beta, alpha);
  return {to(wide[0], a.dtype())};
}

LazyTensor outer(const LazyTensor& a, const LazyTensor& b) {
  expect_rank(a, 1);
  expect_rank(b, 1);
  return unsqueeze(a, 1) * unsqueeze(b, 0);
}

LazyTensor dot(const LazyTensor& a, const LazyTensor& b) {
  expect_rank(a, 1);
  expect_rank(b, 1);
  return matmul(a, b);
}

LazyTensor mv(const LazyTensor& a, const LazyTensor& x) {
  expect_rank(a, 2);
  expect_rank(x, 1);
  return matmul(a, x);
}

void add_blends(OperationTable& rows) {
  rows.add({.schema = "aten::baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, "
                      "Scalar alpha=1) -> Tensor",
            .kind = OpKind::contraction,
            .decompose = [](LazyTensor input, LazyTensor a, LazyTensor b, Scalar beta,
                            Scalar alpha) { return blended(input, a, b, bmm, beta, alpha); },
            .samples = "f32[2,3,5] f32[2,3,4] f32[2,4,5] | f32[5] f32[2,3,4] f32[2,4,5] 0.5 2 | "
                       "f32[1,1,1] f32[2,3,4] f32[2,4,5] 0",
            .bad = "f32[2,3,4] f32[2,3,4] f32[2,4,5]: do not broadcast | f32[3] f32[3,4] "
                   "f32[4,5]: of 3 axes"});
  rows.add(
      {.schema = "aten::addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, "
                 "Scalar alpha=1) -> Tensor",
       .kind = OpKind::contraction,
       .decompose = [](LazyTensor input, LazyTensor a, LazyTensor b, Scalar beta,
                       Scalar alpha) { return blended(input, sum(bmm(a, b), {0}), beta, alpha); },
       .samples = "f32[3,5] f32[2,3,4] f32[2,4,5] | f32[5] f32[2,3,4] f32[2,4,5] 0.5 2 | "
                  "i64[3,5] i64[2,3,4] i64[2,4,5] 0.6 1.5"});
  rows.add({.schema = "aten::addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar "
                      "alpha=1) -> Tensor",
            .kind = OpKind::contraction,
            .decompose = [](LazyTensor input, LazyTensor a, LazyTensor x, Scalar beta,
                            Scalar alpha) { return blended(input, a, x, mv, beta, alpha); },
            .samples = "f32[2] f32[2,3] f32[3] | f32[] f32[2,3] f32[3] 2 0.5",
            .bad = "f32[2] f32[2,3] f32[2]: do not multiply"});
  rows.add({.schema = "aten::addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar "
                      "alpha=1) -> Tensor",
            .kind = OpKind::contraction,
            .decompose = [](LazyTensor input, LazyTensor a, LazyTensor b, Scalar beta,
                            Scalar alpha) { return blended(input, outer(a, b), beta, alpha); },
            .samples = "f32[2,3] f32[2] f32[3] | f32[3] f32[2] f32[3] 2 0.5 | "
                       "bool[2,3] bool[2] bool[3] 3 2",
            .bad = "f32[2,3] f32[2,1] f32[3]: 1 axis"});
}

void add_vector_products(OperationTable& rows) {
  rows.add({.schema = "aten::mv(Tensor self, Tensor vec) -> Tensor",
            .kind = OpKind::contraction,
            .decompose = [](LazyTensor a, LazyTensor x) { return LazyTensors{mv(a, x)}; },
            .samples = "f32[2,3] f32[3] | i64[2,2] i64[2]",
            .bad = "f32[2,3] f32[2]: do not multiply | f32[3] f32[3]: 2 axes"});
  rows.add({.schema = "aten::dot(Tensor self, Tensor tensor) -> Tensor",
            .kind = OpKind::contraction,
            .decompose = [](LazyTensor a, LazyTensor b) { return LazyTensors{dot(a, b)}; },
            .samples = "f32[3] f32[3] | i64[3] i64[3] | f32[0] f32[0] | c64[2] c64[2]",
            .bad = "f32[3] f32[2]: do not multiply | f32[1,3] f32[3]: 1 axis"});
  rows.add({.schema = "aten::vdot(Tensor self, Tensor other) -> Tensor",
            .kind = OpKind::contraction,
            .decompose = [](LazyTensor a, LazyTensor b) { return LazyTensors{dot(conj(a), b)}; },
            .samples = "f32[3] f32[3] | c64[2] c64[2]",
            .bad = "f32[3] f32[2]: do not multiply"});
  rows.add({.schema = "aten::outer(Tensor self, Tensor vec2) -> Tensor",
            .kind = OpKind::contraction,
            .decompose = [](LazyTensor a, LazyTensor b) { return LazyTensors{outer(a, b)}; },
            .samples = "f32[2] f32[3] | i64[2] f32[3]",
            .bad = "f32[2,1] f32[3]: 1 axis",
            .also = {"aten::ger"}});
  rows.add({.schema = "aten::linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor",
            .decompose = [](LazyTensor a, LazyTensor b,
                            int64_t dim) { return LazyTensors{sum(conj(a) * b, {dim})}; },
            .samples = "f32[2,3] f32[2,3] | f32[2,3] f32[2,3] 0 | f32[3] f32[2,3]",
            .bad = "f32[3] f32[2]: do not broadcast"});
  rows.add({.schema = "aten::linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor",
            .decompose =
                [](LazyTensor a, LazyTensor b, int64_t dim) {
                  if (a.rank() == 0 || b.rank() == 0 || a.size(dim) != 3 || b.size(dim) != 3)
                    throw UserError("expected axes of size 3, received sizes " + str(a.sizes()) +
                                    " and " + str(b.sizes()));
                  const auto turned = [&](const LazyTensor& x, int64_t by) {
                    return apply_one("aten::roll", {x, Ints{-by}, Ints{dim}});
                  };
                  return LazyTensors{turned(a, 1) * turned(b, 2) - turned(a, 2) * turned(b, 1)};
                },
            .samples = "f32[3] f32[3] | f32[2,3] f32[2,3] | f32[3,2] f32[3,2] 0",
            .bad = "f32[2] f32[2]: axes of size 3"});
}

// ---- contractions over chosen axes --------------------------------------------------------------

// x as a matrix: the axes of `rows` one after the other, then those of `columns`.
LazyTensor as_matrix(const LazyTensor& x, const Ints& rows, const Ints& columns) {
  Ints order = rows;
  order.insert(order.end(), columns.begin(), columns.end());
  int64_t height = 1, width = 1;
  for (int64_t axis : rows) height *= x.size(axis);
  for (int64_t axis : columns) width *= x.size(axis);
  return reshape(permute(x, order), {height, width});
}

Ints others(const LazyTensor& x, const Ints& axes) {
  const std::vector<bool> given =
      axes.empty() ? std::vector<bool>(size_t(x.rank())) : wrap_axes(axes, x.rank());
  Ints rest;
  for (int64_t axis = 0; axis < x.rank(); ++axis)
    if (!given[static_cast<size_t>(axis)]) rest.push_back(axis);
  return rest;
}

LazyTensor tensordot(LazyTensor a, LazyTensor b, const Ints& axes_a, const Ints& axes_b) {
  if (axes_a.size() != axes_b.size())
    throw UserError("expected as many axes of both, received " + str(axes_a) + " and " +
                    str(axes_b));
  for (size_t i = 0; i < axes_a.size(); ++i) {  // an axis of size 1 stands for any
    const int64_t n = a.size(axes_a[i]), m = b.size(axes_b[i]);
    if (n == 1 && m != 1) b = sum(b, {axes_b[i]}, true);
    if (m == 1 && n != 1) a = sum(a, {axes_a[i]}, true);
    if (n != m && n != 1 && m != 1)
      throw UserError("sizes " + str(a.sizes()) + " and " + str(b.sizes()) +
                      " do not multiply over axes " + str(axes_a) + " and " + str(axes_b));
  }
  const Ints rows = others(a, axes_a), columns = others(b, axes_b);
  Ints sizes;
  for (int64_t axis : rows) sizes.push_back(a.size(axis));
  for (int64_t axis : columns) sizes.push_back(b.size(axis));
  return reshape(mm(as_matrix(a, rows, axes_a), as_matrix(b, axes_b, columns)), sizes);
}

void add_contractions(OperationTable& rows) {
  rows.add({.schema = "aten::tensordot(Tensor self, Tensor other, int[] dims_self, int[] "
                      "dims_other) -> Tensor",
            .kind = OpKind::contraction,
            .decompose = [](LazyTensor a, LazyTensor b, Ints axes_a,
                            Ints axes_b) { return LazyTensors{tensordot(a, b, axes_a, axes_b)}; },
            .samples = "f32[2,3,4] f32[4,3,5] [1,2] [1,0] | f32[2,3] f32[3,2] [-1] [0] | f32[2] "
                       "f32[3] [] [] | f32[2,3] f32[1,4] [1] [0]",
            .bad = "f32[2,3] f32[2,3] [1] [0]: do not multiply | f32[2] f32[2] [0] []: as many"});
  rows.add({.schema = "aten::inner(Tensor self, Tensor other) -> Tensor",
            .kind = OpKind::contraction,
            .decompose =
                [](LazyTensor a, LazyTensor b) {
                  if (a.rank() == 0 || b.rank() == 0) return LazyTensors{a * b};
                  if (a.size(-1) != b.size(-1))
                    throw UserError("sizes " + str(a.sizes()) + " and " + str(b.sizes()) +
                                    " do not multiply");
                  return LazyTensors{tensordot(a, b, {-1}, {-1})};
                },
            .samples = "f32[2,3] f32[4,3] | f32[3] f32[3] | f32[] f32[2]",
            .bad = "f32[2,3] f32[2]: do not multiply"});
  rows.add({.schema = "aten::kron(Tensor self, Tensor other) -> Tensor",
            .decompose =
                [](LazyTensor a, LazyTensor b) {
                  const auto rank = static_cast<size_t>(std::max(a.rank(), b.rank()));
                  Ints left = a.sizes(), right = b.sizes(), apart_a, apart_b, sizes;
                  left.insert(left.begin(), rank - left.size(), 1);
                  right.insert(right.begin(), rank - right.size(), 1);
                  for (size_t axis = 0; axis < rank; ++axis) {
                    apart_a.insert(apart_a.end(), {left[axis], 1});
                    apart_b.insert(apart_b.end(), {1, right[axis]});
                    sizes.push_back(left[axis] * right[axis]);
                  }
                  return LazyTensors{reshape(reshape(a, apart_a) * reshape(b, apart_b), sizes)};
                },
            .samples = "f32[2,3] f32[3,2] | f32[2] f32[2,2] | i64[2] i64[3]"});
  rows.add({.schema = "aten::bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? "
                      "bias=None) -> Tensor",
            .kind = OpKind::contraction,
            .decompose =
                [](LazyTensor a, LazyTensor b, LazyTensor weight, std::optional<LazyTensor> bias) {
                  expect_rank(weight, 3);
                  const LazyTensor y =
                      apply_one("aten::einsum", {"...i,kij,...j->...k", LazyTensors{a, weight, b}});
                  return LazyTensors{bias ? y + *bias : y};
                },
            .samples = "f32[2,3] f32[2,4] f32[5,3,4] f32[5] | f32[2,2,3] f32[2,2,2] f32[3,3,2]",
            .bad = "f32[2,3] f32[2,4] f32[5,4,3]: label 'i'"});
}

// ---- distances ----------------------------------------------------------------------------------

LazyTensor distance(const LazyTensor& apart, double p) {
  return apply_one("aten::linalg_vector_norm", {apart, Scalar(p), Ints{-1}});
}

// The distances of all pairs of rows.
LazyTensors distances(const LazyTensor& a, const LazyTensor& b, double p) {
  if (a.rank() < 2 || b.rank() < 2 || a.size(-1) != b.size(-1))
    throw UserError("expected rows of equal length, received sizes " + str(a.sizes()) + " and " +
                    str(b.sizes()));
  return {distance(unsqueeze(a, -2) - unsqueeze(b, -3), p)};
}

// The gradient of the rows of `a` through their distances `far` to the rows of b; 0 for equal rows.
LazyTensor distances_back(const LazyTensor& g, const LazyTensor& a, const LazyTensor& b, double p,
                          const LazyTensor& far) {
  const LazyTensor apart = unsqueeze(a, -2) - unsqueeze(b, -3), length = unsqueeze(far, -1);
  if (p == 0) return sum(zeros_like(apart), {-2});
  LazyTensor slope = sign(apart);
  if (std::isinf(p)) slope = where(eq(abs(apart), length), slope, 0);
  if (!std::isinf(p) && p != 1) slope = slope * pow(abs(apart) / length, p - 1);
  const LazyTensor none = logical_or(eq(length, 0), eq(apart, 0));
  return sum(where(none, 0, slope * unsqueeze(g, -1)), {-2});
}

void add_distances(OperationTable& rows) {
  rows.add(
      {.schema = "aten::_cdist_backward(Tensor grad, Tensor x1, Tensor x2, float p, Tensor "
                 "cdist) -> Tensor",
       .decompose = [](LazyTensor g, LazyTensor a, LazyTensor b, double p,
                       LazyTensor far) { return LazyTensors{distances_back(g, a, b, p, far)}; },
       .samples = "f32[2,4] f32[2,3] f32[4,3] 2.0 f32[2,4]=1..3 | f32[2,3] f32[2,2] f32[3,2] "
                  "1.0 f32[2,3]=1..3 | f32[2,2,3] f32[2,2,2] f32[2,3,2] 3.0 f32[2,2,3]=1..3"});
  rows.add({.schema = "aten::cdist(Tensor x1, Tensor x2, float p=2., int? compute_mode=None) -> "
                      "Tensor",
            .decompose = [](LazyTensor a, LazyTensor b, double p) { return distances(a, b, p); },
            .samples = "f32[2,3] f32[4,3] | f32[2,2,3] f32[3,3] 1.0",
            .bad = "f32[2,3] f32[2,2]: of equal length"});
  rows.add({.schema = "aten::_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> "
                      "Tensor",
            .decompose = [](LazyTensor a, LazyTensor b, double p) { return distances(a, b, p); },
            .samples = "f32[2,3] f32[4,3] 2.0 None | f32[2,3] f32[3,3] 3.0 None"});
  rows.add({.schema = "aten::dist(Tensor self, Tensor other, Scalar p=2) -> Tensor",
            .decompose =
                [](LazyTensor a, LazyTensor b, Scalar p) {
                  return LazyTensors{apply_one("aten::linalg_vector_norm", {a - b, p})};
                },
            .samples = "f32[2,3] f32[3] | f32[4] f32[4] 1 | f32[4] f32[4] 0.5"});
  rows.add({.schema = "aten::_pdist_forward(Tensor self, float p=2.) -> Tensor",
            .decompose =
                [](LazyTensor x, double p) {
                  expect_rank(x, 2);
                  const int64_t n = x.size(0);
                  const LazyTensor pairs = apply_one("aten::triu_indices", {n, n, 1});
                  const auto rows_of = [&](int64_t side) {
                    return apply_one("aten::index_select", {x, 0, select_at(pairs, 0, side)});
                  };
                  return LazyTensors{distance(rows_of(0) - rows_of(1), p)};
                },
            .samples = "f32[4,3] | f32[3,2] 1.0",
            .bad = "f32[3]: 2 axes",
            .also = {"aten::pdist"}});
}

}  // namespace

void add_products_rows(OperationTable& rows) {
  add_blends(rows);
  add_vector_products(rows);
  add_contractions(rows);
  add_distances(rows);
}

}  // namespace composit
