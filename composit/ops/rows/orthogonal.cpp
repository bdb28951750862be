// Matrices as products with orthogonal (of complex numbers: unitary) ones: QR, singular values,
// eigenvalues; and pseudoinverses.
#include <algorithm>
#include <cmath>
#include <limits>

#include "composit/op/promotion.h"
#include "composit/ops/functions.h"
#include "composit/ops/linear_algebra.h"
#include "composit/ops/matrices.h"
#include "composit/ops/runtime_options.h"

namespace composit {
namespace {

using Number = Matrices::Number;

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

void add_qr(OperationTable& rows) {
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
            .runtime = "matrices::qr",
            .runtime_options =
                [](Tensor a, std::string mode) {
                  return matrices_with(a, "rank", size_from_end(qr_types(a.type(), mode)[1], 2));
                },
            .vjp = [](Vjp v, Tensor a, std::string mode) { return qr_back(v, a, mode); },
            .samples = "f32[3,3] | f32[4,2] | f32[2,4] | f32[2,3,2] | f32[2,3] 'complete' | "
                       "c64[3,2] | c64[2,3]",
            .bad = "f32[3]: expected matrices | i64[2,2]: floating point | f32[2,2] 'full': "
                   "expected mode"});
}

// ---- singular values ----------------------------------------------------------------------------

// The unitary matrix that makes a Hermitian matrix [p, r; conj(r), q] diagonal: [c, s; -conj(s),
// c].
struct Rotation {
  double c = 1;
  Number s = 0;
};
Rotation rotation_for(double p, double q, Number r) {
  if (r == 0.0) return {};
  const double size = std::abs(r), apart = (q - p) / (2 * size);
  const double t = std::copysign(1, apart) / (std::abs(apart) + std::hypot(1, apart));
  const double c = 1 / std::hypot(1, t);
  return {c, t * c * (r / size)};
}

// Of all columns: those at `p` and `q` become combinations of both.
void rotate_columns(const Rotation& by, Matrices& a, int64_t m, int64_t p, int64_t q) {
  for (int64_t i = 0; i < a.rows; ++i) {
    const Number x = a(m, i, p), y = a(m, i, q);
    a(m, i, p) = by.c * x - std::conj(by.s) * y;
    a(m, i, q) = by.s * x + by.c * y;
  }
}

Number product_of_columns(const Matrices& a, int64_t m, int64_t p, int64_t q) {
  Number sum = 0;
  for (int64_t i = 0; i < a.rows; ++i) sum += std::conj(a(m, i, p)) * a(m, i, q);
  return sum;
}

Matrices identities(int64_t count, int64_t n) {
  Matrices one(count, n, n);
  for (int64_t m = 0; m < count; ++m)
    for (int64_t i = 0; i < n; ++i) one(m, i, i) = 1;
  return one;
}

// Makes the columns of `a` orthogonal to each other, with `v` for all that was done to them: a v.
// One-sided Jacobi: Golub and Van Loan, "Matrix Computations", 8.6.3.
void make_columns_orthogonal(Matrices& a, Matrices& v, int64_t m) {
  constexpr int kMostSweeps = 60;
  constexpr double kSmall = 1e-15;
  bool changed = true;
  for (int sweep = 0; changed && sweep < kMostSweeps; ++sweep) {
    changed = false;
    for (int64_t p = 0; p < a.columns; ++p)
      for (int64_t q = p + 1; q < a.columns; ++q) {
        const double first = product_of_columns(a, m, p, p).real();
        const double second = product_of_columns(a, m, q, q).real();
        const Number both = product_of_columns(a, m, p, q);
        if (!(std::abs(both) > kSmall * std::sqrt(first * second))) continue;
        changed = true;
        const Rotation by = rotation_for(first, second, both);
        rotate_columns(by, a, m, p, q);
        rotate_columns(by, v, m, p, q);
      }
  }
}

void sort_columns_by_length(Matrices& a, Matrices& v, int64_t m) {
  for (int64_t k = 0; k < a.columns; ++k) {
    int64_t best = k;
    for (int64_t j = k; j < a.columns; ++j)
      if (product_of_columns(a, m, j, j).real() > product_of_columns(a, m, best, best).real())
        best = j;
    for (int64_t i = 0; i < a.rows; ++i) std::swap(a(m, i, k), a(m, i, best));
    for (int64_t i = 0; i < v.rows; ++i) std::swap(v(m, i, k), v(m, i, best));
  }
}

struct SingularValues {
  Matrices u, s, v;  // s: one row per matrix; a = u s v^H
};

// `columns` of u, of matrices with as many rows as columns at least.
SingularValues tall_svd(Matrices a, int64_t columns) {
  Matrices v = identities(a.count, a.columns), s(a.count, 1, a.columns);
  for (int64_t m = 0; m < a.count; ++m) {
    make_columns_orthogonal(a, v, m);
    sort_columns_by_length(a, v, m);
  }
  auto [u, r] = qr(a, columns);  // r is diagonal; u is complete, whatever the rank
  for (int64_t m = 0; m < a.count; ++m)
    for (int64_t k = 0; k < a.columns; ++k) {
      s(m, 0, k) = std::abs(r(m, k, k));
      for (int64_t i = 0; r(m, k, k).real() < 0 && i < u.rows; ++i) u(m, i, k) = -u(m, i, k);
    }
  return {u, s, v};
}

SingularValues svd(const Matrices& a, bool full) {
  if (a.rows >= a.columns) return tall_svd(a, full ? a.rows : a.columns);
  SingularValues other = tall_svd(composit::adjoint(a), full ? a.columns : a.rows);
  return {other.v, other.s, other.u};
}

std::vector<Type> svd_types(const Type& a, bool full, bool vectors) {
  const int64_t rows = a.sizes[a.rank() - 2].value(), columns = a.sizes.back().value();
  const int64_t inner = std::min(rows, columns);
  Dims values(a.sizes.begin(), a.sizes.end() - 2);
  values.emplace_back(inner);
  const Type none = tensor_type(a.dtype, {0});
  return {vectors ? with_matrix(a, rows, full ? rows : inner) : none,
          tensor_type(real_dtype(a.dtype), values),
          vectors ? with_matrix(a, full ? columns : inner, columns) : none};
}

Tensor on_diagonal(const Tensor& x, DType dtype) {
  return unsqueeze(to(x, dtype), -1) * apply_one("aten::eye", {x.size(-1), dtype});
}

// What flows to U^H A V from the vectors, which are those of the singular values alone.
Tensor svd_inner_back(const Tensor& u, const Tensor& s, const Tensor& v, const Tensor& gu,
                      const Tensor& gv) {
  const auto skew = [](const Tensor& x) { return x - adjoint(x); };
  const Tensor from_u = skew(matmul(adjoint(u), gu)), from_v = skew(matmul(adjoint(v), gv));
  const Tensor by_column = unsqueeze(s, -2), by_row = unsqueeze(s, -1);
  const Tensor one = apply_one("aten::eye", {s.size(-1), s.dtype()});
  const Tensor apart = square(by_column) - square(by_row) + one;
  const Tensor inner = (from_u * by_column + by_row * from_v) / apart;
  if (!is_complex(u.dtype())) return inner;
  return inner + from_u * (one / (2 * by_row));
}

// J. Townsend, "Differentiating the Singular Value Decomposition" (2016).
Gradients svd_back(const Vjp& v, const Tensor& a) {
  const bool vectors = v.results[0].rank() > 1;
  const Tensors usv =
      vectors ? Tensors{v.results} : apply("aten::_linalg_svd", {a, /*full_matrices=*/false});
  const int64_t inner = usv[1].size(-1);
  const Tensor u = slice(usv[0], -1, 0, inner), vh = slice(usv[2], -2, 0, inner);
  const auto cotangent = [&](size_t i, int64_t axis, const Tensor& like) {
    const bool flows = vectors && v.cotangents[i].defined();
    return flows ? slice(v.cotangents[i], axis, 0, inner) : zeros_like(like);
  };
  const Tensor gu = cotangent(0, -1, u), gvh = cotangent(2, -2, vh);
  const Tensor& s = usv[1];
  const Tensor gs = v.cotangents[1].defined() ? v.cotangents[1] : zeros_like(s);
  Tensor core = on_diagonal(gs, a.dtype());
  if (!v.cotangents[0].defined() && !v.cotangents[2].defined())
    return {matmul(matmul(u, core), vh)};
  core = core + svd_inner_back(u, s, adjoint(vh), gu, adjoint(gvh));
  const Tensor from_u = gu / unsqueeze(s, -2), from_v = gvh / unsqueeze(s, -1);
  const Tensor left = matmul(u, core) + from_u - matmul(u, matmul(adjoint(u), from_u));
  return {matmul(left, vh) + matmul(u, from_v - matmul(matmul(from_v, adjoint(vh)), vh))};
}

void add_svd(OperationTable& rows) {
  rows.add({.schema = "aten::_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, "
                      "*, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
            .infer =
                [](Tensor a, bool full, bool vectors) {
                  expect_matrices(a);
                  return svd_types(a.type(), full, vectors);
                },
            .native =
                [](Array a, bool full, bool vectors) {
                  const std::vector<Type> types = svd_types(a.type(), full, vectors);
                  const SingularValues found = svd(Matrices(a), full);
                  const Matrices none(0, 0, 0);
                  return std::vector<Array>{
                      (vectors ? found.u : none).array(types[0]), found.s.array(types[1]),
                      (vectors ? composit::adjoint(found.v) : none).array(types[2])};
                },
            .runtime = "matrices::svd",
            .runtime_options = [](Tensor a,
                                  bool full) { return matrices_with(a, "full_matrices", full); },
            .vjp = [](Vjp v, Tensor a) { return svd_back(v, a); },
            .samples = "f32[2,2]=[3,0,0,1]",
            .bad = "f32[3]: expected matrices | i64[2,2]: floating point"});
}

// ---- eigenvalues of Hermitian matrices ----------------------------------------------------------

// Jacobi's rotations from both sides, until `a` is diagonal; `v`: the product of all of them.
// Golub and Van Loan, "Matrix Computations", 8.5.
void make_diagonal(Matrices& a, Matrices& v, int64_t m) {
  constexpr int kMostSweeps = 60;
  constexpr double kSmall = 1e-16;
  double size = 0;
  for (int64_t k = 0; k < a.columns; ++k) size += product_of_columns(a, m, k, k).real();
  bool changed = true;
  for (int sweep = 0; changed && sweep < kMostSweeps; ++sweep) {
    changed = false;
    for (int64_t p = 0; p < a.rows; ++p)
      for (int64_t q = p + 1; q < a.rows; ++q) {
        if (!(std::abs(a(m, p, q)) > kSmall * std::sqrt(size))) continue;
        changed = true;
        const Rotation by = rotation_for(a(m, p, p).real(), a(m, q, q).real(), a(m, p, q));
        rotate_columns(by, a, m, p, q);
        rotate_columns(by, v, m, p, q);
        for (int64_t j = 0; j < a.columns; ++j) {
          const Number x = a(m, p, j), y = a(m, q, j);
          a(m, p, j) = by.c * x - by.s * y;
          a(m, q, j) = std::conj(by.s) * x + by.c * y;
        }
      }
  }
}

// Eigenvalues in ascending order, and their vectors, of what stands in one triangle.
std::pair<Matrices, Matrices> eigen(const Matrices& given, bool upper) {
  const int64_t n = given.rows;
  Matrices a(given.count, n, n), v = identities(given.count, n), values(given.count, 1, n);
  for (int64_t m = 0; m < given.count; ++m) {
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j <= i; ++j) {
        a(m, i, j) = upper ? std::conj(given(m, j, i)) : given(m, i, j);
        a(m, j, i) = std::conj(a(m, i, j));
      }
    for (int64_t i = 0; i < n; ++i) a(m, i, i) = a(m, i, i).real();
    make_diagonal(a, v, m);
    for (int64_t i = 0; i < n; ++i) values(m, 0, i) = a(m, i, i).real();
    for (int64_t k = 0; k < n; ++k) {
      int64_t least = k;
      for (int64_t j = k; j < n; ++j)
        if (values(m, 0, j).real() < values(m, 0, least).real()) least = j;
      std::swap(values(m, 0, k), values(m, 0, least));
      for (int64_t i = 0; i < n; ++i) std::swap(v(m, i, k), v(m, i, least));
    }
  }
  return {values, v};
}

std::vector<Type> eigen_types(const Type& a, bool vectors) {
  const Dims values(a.sizes.begin(), a.sizes.end() - 1);
  return {tensor_type(real_dtype(a.dtype), values),
          tensor_type(a.dtype, vectors ? a.sizes : Dims{0})};
}

Gradients eigen_back(const Vjp& v, const Tensor& a, const std::string& triangle) {
  const bool vectors = v.results[1].rank() > 1;
  const Tensors found = vectors ? Tensors{v.results} : apply("aten::_linalg_eigh", {a, triangle});
  const Tensor &values = found[0], &basis = found[1];
  Tensor inner =
      v.cotangents[0].defined() ? on_diagonal(v.cotangents[0], a.dtype()) : zeros_like(a);
  if (vectors && v.cotangents[1].defined()) {
    const Tensor one = apply_one("aten::eye", {values.size(-1), values.dtype()});
    const Tensor apart = unsqueeze(values, -2) - unsqueeze(values, -1) + one;
    inner = inner + matmul(adjoint(basis), v.cotangents[1]) * ((1 - one) / apart);
  }
  return {matmul(basis, matmul(inner, adjoint(basis)))};
}

void add_eigen(OperationTable& rows) {
  rows.add({.schema =
                "aten::_linalg_eigh(Tensor A, str UPLO=\"L\", bool compute_v=True) -> (Tensor "
                "eigenvalues, Tensor eigenvectors)",
            .infer =
                [](Tensor a, std::string triangle, bool vectors) {
                  expect_matrices(a);
                  if (a.size(-1) != a.size(-2))
                    throw UserError("expected square matrices, received sizes " + str(a.sizes()));
                  if (triangle != "L" && triangle != "U")
                    throw UserError("expected UPLO 'L' or 'U', received '" + triangle + "'");
                  return eigen_types(a.type(), vectors);
                },
            .native =
                [](Array a, std::string triangle, bool vectors) {
                  const std::vector<Type> types = eigen_types(a.type(), vectors);
                  const auto [values, basis] = eigen(Matrices(a), triangle == "U");
                  return std::vector<Array>{values.array(types[0]),
                                            (vectors ? basis : Matrices(0, 0, 0)).array(types[1])};
                },
            .runtime = "matrices::eigh",
            .runtime_options =
                [](Tensor a, std::string triangle) {
                  return matrices_with(a, "upper", triangle == "U");
                },
            .vjp = [](Vjp v, Tensor a, std::string triangle) { return eigen_back(v, a, triangle); },
            .samples = "f32[2,2]=[1,0,0,3] | f32[2,2]=[1,0,0,3] 'U'",
            .bad = "f32[2,3]: square matrices | f32[2,2] 'A': expected UPLO"});
}

// ---- pseudoinverses -----------------------------------------------------------------------------

// Singular values that are not larger count as zero. [...] of the batch.
Tensor cutoff(const Tensor& a, const Tensor& largest, const std::optional<Tensor>& atol,
              const std::optional<Tensor>& rtol) {
  const bool narrow = real_dtype(a.dtype()) != DType::float64;
  const double epsilon =
      narrow ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
  const double usual = epsilon * static_cast<double>(std::max(a.size(-1), a.size(-2)));
  if (!atol) return rtol ? *rtol * largest : largest * usual;
  return maximum(*atol, rtol ? *rtol * largest : where(*atol > 0, 0, largest * usual));
}

Tensor pseudoinverse(const Tensor& a, const std::optional<Tensor>& atol,
                     const std::optional<Tensor>& rtol) {
  if (a.numel() == 0) return adjoint(a);
  const Tensors usv = apply("aten::_linalg_svd", {a});
  const Tensor& s = usv[1];
  const Tensor counts = s > unsqueeze(cutoff(a, select_at(s, -1, 0), atol, rtol), -1);
  const Tensor inverse = where(counts, reciprocal(s), 0);
  return matmul(adjoint(usv[2]) * unsqueeze(inverse, -2), adjoint(usv[0]));
}

// The Hermitian matrix with the lower triangle of a.
Tensor lower_reflected(const Tensor& a) {
  const Tensor below = tril(a, -1);
  const Tensor main = apply_one("aten::real", {apply_one("aten::diagonal", {a, 0, -2, -1})});
  return below + adjoint(below) + on_diagonal(main, a.dtype());
}

// G. Golub and V. Pereyra, "The Differentiation of Pseudo-Inverses and Nonlinear Least Squares
// Problems Whose Variables Separate" (1973).
Tensor pseudoinverse_back(const Tensor& g, const Tensor& a, const Tensor& inverse) {
  const Tensor back = adjoint(inverse), gh = adjoint(g);
  const Tensor rows = gh - matmul(a, matmul(inverse, gh));     // outside of a's image
  const Tensor columns = gh - matmul(matmul(gh, inverse), a);  // outside of its adjoint's
  return matmul(rows, matmul(inverse, back)) + matmul(matmul(back, inverse), columns) -
         matmul(back, matmul(g, back));
}

void add_pseudoinverse(OperationTable& rows) {
  rows.add(
      {.schema = "aten::linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, "
                 "Tensor? rtol=None, bool hermitian=False) -> Tensor",
       .decompose =
           [](Tensor a, std::optional<Tensor> atol, std::optional<Tensor> rtol, bool hermitian) {
             expect_matrices(a);
             return Tensors{pseudoinverse(hermitian ? lower_reflected(a) : a, atol, rtol)};
           },
       .vjp =
           [](Vjp v, Tensor a) {
             return Gradients{pseudoinverse_back(v.cotangents[0], a, v.results[0])};
           },
       .samples = "f32[3,3] | f32[4,2] | f32[2,4] f32[]=0.01..0.02 f32[]=0.01..0.02 | "
                  "f32[2,3,2] None f32[2]=0.01..0.02 | c64[3,2]",
       .bad = "f32[3]: expected matrices",
       .nondifferentiable = "atol rtol"});
}

}  // namespace

void add_orthogonal_rows(OperationTable& rows) {
  add_qr(rows);
  add_svd(rows);
  add_eigen(rows);
  add_pseudoinverse(rows);
}

}  // namespace composit
