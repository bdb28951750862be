// Matrices as products with orthogonal (of complex numbers: unitary) ones: QR, singular values,
// eigenvalues; and pseudoinverses.
#include <algorithm>
#include <limits>

#include "composit/op/promotion.h"
#include "composit/ops/functions.h"
#include "composit/ops/linear_algebra.h"
#include "composit/ops/matrices.h"

namespace composit {
namespace {

// ---- QR -----------------------------------------------------------------------------------------

Type with_matrix(const Type& batch, int64_t rows, int64_t columns) {
  Dims sizes(batch.sizes.begin(), batch.sizes.end() - 2);
  sizes.insert(sizes.end(), {rows, columns});
  return tensor_type(batch.dtype, sizes);
}

std::vector<Type> qr_types(const Type& a, const std::string& mode) {
  const int64_t rows = a.sizes[a.rank() - 2], columns = a.sizes.back();
  const int64_t inner = mode == "complete" ? rows : std::min(rows, columns);
  const Type q = mode == "r" ? tensor_type(a.dtype, {0}) : with_matrix(a, rows, inner);
  return {q, with_matrix(a, inner, columns)};
}

std::vector<Array> qr(const Array& a, const std::string& mode) {
  const std::vector<Type> types = qr_types(a.type(), mode);
  Numbers q = room_for(types[0]), r = room_for(types[1]);
  fl::qr(numbers_of(a).data(), matrices_of(a.type()), size_from_end(types[1], 2),
         mode == "r" ? nullptr : q.data(), r.data());
  return {array_of(types[0], q), array_of(types[1], r)};
}

LazyTensor with_half_diagonal(const LazyTensor& x) {
  const LazyTensor one = apply_one("aten::eye", {x.size(-1), x.dtype()});
  return x * (1 - 0.5 * one);
}
// x R^-H
LazyTensor divided_by_adjoint(const LazyTensor& x, const LazyTensor& r) {
  return apply_one("aten::linalg_solve_triangular",
                   {adjoint(r), x, /*upper=*/false, /*left=*/false});
}

// Roberts and Roberts, "QR and LQ Decomposition Matrix Backpropagation Algorithms for Square, Wide,
// and Deep Matrices" (2020).
Gradients qr_back(const Vjp& v, const LazyTensor& a, const std::string& mode) {
  const LazyTensor &q = v.results[0], &r = v.results[1];
  const int64_t rows = a.size(-2), columns = a.size(-1);
  if (mode == "r") throw UserError("expected mode 'reduced' for a derivative: it needs Q");
  if (mode == "complete" && rows > columns)
    throw UserError("expected mode 'reduced' for a derivative of more rows than columns");
  const LazyTensor gq = v.cotangents[0].defined() ? v.cotangents[0] : zeros_like(q);
  const LazyTensor gr = v.cotangents[1].defined() ? v.cotangents[1] : zeros_like(r);
  const LazyTensor inner = matmul(gr, adjoint(r)) - matmul(adjoint(q), gq);
  if (rows >= columns) {
    const LazyTensor upper = apply_one("aten::triu", {inner});
    return {divided_by_adjoint(gq + matmul(q, with_half_diagonal(upper + adjoint(upper))), r)};
  }
  const LazyTensor skew = tril(adjoint(inner) - inner);
  const LazyTensor square =
      divided_by_adjoint(matmul(q, with_half_diagonal(skew)), slice(r, -1, 0, rows));
  Ints rest = square.sizes();
  rest.back() = columns - rows;
  return {cat({square, zeros(rest, a.dtype())}, -1) + matmul(q, gr)};
}

void add_qr(OperationTable& rows) {
  rows.add({.schema = "aten::linalg_qr(Tensor A, str mode=\"reduced\") -> (Tensor Q, Tensor R)",
            .infer =
                [](LazyTensor a, std::string mode) {
                  expect_matrices(a);
                  if (mode != "reduced" && mode != "complete" && mode != "r")
                    throw UserError("expected mode 'reduced', 'complete' or 'r', received '" +
                                    mode + "'");
                  return qr_types(a.type(), mode);
                },
            .native = [](Array a, std::string mode) { return qr(a, mode); },
            .runtime = "matrices::qr",
            .runtime_options =
                [](LazyTensor a, std::string mode) {
                  return matrices_with(a, "rank", size_from_end(qr_types(a.type(), mode)[1], 2));
                },
            .vjp = [](Vjp v, LazyTensor a, std::string mode) { return qr_back(v, a, mode); },
            .samples = "f32[3,3] | f32[4,2] | f32[2,4] | f32[2,3,2] | f32[2,3] 'complete' | "
                       "c64[3,2] | c64[2,3]",
            .bad = "f32[3]: expected matrices | i64[2,2]: floating point | f32[2,2] 'full': "
                   "expected mode"});
}

// ---- singular values ----------------------------------------------------------------------------

std::vector<Type> svd_types(const Type& a, bool full, bool vectors) {
  const int64_t rows = a.sizes[a.rank() - 2], columns = a.sizes.back();
  const int64_t inner = std::min(rows, columns);
  Dims values(a.sizes.begin(), a.sizes.end() - 2);
  values.emplace_back(inner);
  const Type none = tensor_type(a.dtype, {0});
  return {vectors ? with_matrix(a, rows, full ? rows : inner) : none,
          tensor_type(real_dtype(a.dtype), values),
          vectors ? with_matrix(a, full ? columns : inner, columns) : none};
}

std::vector<Array> svd(const Array& a, bool full, bool vectors) {
  const std::vector<Type> types = svd_types(a.type(), full, vectors);
  Numbers u = room_for(types[0]), vh = room_for(types[2]);
  std::vector<double> s(static_cast<size_t>(types[1].numel()));
  fl::svd(numbers_of(a).data(), matrices_of(a.type()), full, vectors ? u.data() : nullptr, s.data(),
          vectors ? vh.data() : nullptr);
  return {array_of(types[0], u), array_of(types[1], s), array_of(types[2], vh)};
}

LazyTensor on_diagonal(const LazyTensor& x, DType dtype) {
  return unsqueeze(to(x, dtype), -1) * apply_one("aten::eye", {x.size(-1), dtype});
}

// The cotangent of U^H A V that comes from the singular vectors. U and V have the vectors of the
// singular values alone.
LazyTensor svd_inner_back(const LazyTensor& u, const LazyTensor& s, const LazyTensor& v,
                          const LazyTensor& gu, const LazyTensor& gv) {
  const auto skew = [](const LazyTensor& x) { return x - adjoint(x); };
  const LazyTensor from_u = skew(matmul(adjoint(u), gu)), from_v = skew(matmul(adjoint(v), gv));
  const LazyTensor by_column = unsqueeze(s, -2), by_row = unsqueeze(s, -1);
  const LazyTensor one = apply_one("aten::eye", {s.size(-1), s.dtype()});
  const LazyTensor apart = square(by_column) - square(by_row) + one;
  const LazyTensor inner = (from_u * by_column + by_row * from_v) / apart;
  if (!is_complex(u.dtype())) return inner;
  return inner + from_u * (one / (2 * by_row));
}

// J. Townsend, "Differentiating the Singular Value Decomposition" (2016).
Gradients svd_back(const Vjp& v, const LazyTensor& a) {
  const bool vectors = v.results[0].rank() > 1;
  const LazyTensors usv =
      vectors ? LazyTensors{v.results} : apply("aten::_linalg_svd", {a, /*full_matrices=*/false});
  const int64_t inner = usv[1].size(-1);
  const LazyTensor u = slice(usv[0], -1, 0, inner), vh = slice(usv[2], -2, 0, inner);
  const auto cotangent = [&](size_t i, int64_t axis, const LazyTensor& like) {
    const bool flows = vectors && v.cotangents[i].defined();
    return flows ? slice(v.cotangents[i], axis, 0, inner) : zeros_like(like);
  };
  const LazyTensor gu = cotangent(0, -1, u), gvh = cotangent(2, -2, vh);
  const LazyTensor& s = usv[1];
  const LazyTensor gs = v.cotangents[1].defined() ? v.cotangents[1] : zeros_like(s);
  LazyTensor core = on_diagonal(gs, a.dtype());
  if (!v.cotangents[0].defined() && !v.cotangents[2].defined())
    return {matmul(matmul(u, core), vh)};
  core = core + svd_inner_back(u, s, adjoint(vh), gu, adjoint(gvh));
  const LazyTensor from_u = gu / unsqueeze(s, -2), from_v = gvh / unsqueeze(s, -1);
  const LazyTensor left = matmul(u, core) + from_u - matmul(u, matmul(adjoint(u), from_u));
  return {matmul(left, vh) + matmul(u, from_v - matmul(matmul(from_v, adjoint(vh)), vh))};
}

void add_svd(OperationTable& rows) {
  rows.add({.schema = "aten::_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, "
                      "*, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
            .infer =
                [](LazyTensor a, bool full, bool vectors) {
                  expect_matrices(a);
                  return svd_types(a.type(), full, vectors);
                },
            .native = [](Array a, bool full, bool vectors) { return svd(a, full, vectors); },
            .runtime = "matrices::svd",
            .runtime_options = [](LazyTensor a,
                                  bool full) { return matrices_with(a, "full_matrices", full); },
            .vjp = [](Vjp v, LazyTensor a) { return svd_back(v, a); },
            .samples = "f32[2,2]=[3,0,0,1]",
            .bad = "f32[3]: expected matrices | i64[2,2]: floating point"});
}

// ---- eigenvalues of Hermitian matrices ----------------------------------------------------------

std::vector<Type> eigen_types(const Type& a, bool vectors) {
  const Dims values(a.sizes.begin(), a.sizes.end() - 1);
  return {tensor_type(real_dtype(a.dtype), values),
          tensor_type(a.dtype, vectors ? a.sizes : Dims{0})};
}

std::vector<Array> eigen(const Array& a, bool upper, bool vectors) {
  const std::vector<Type> types = eigen_types(a.type(), vectors);
  std::vector<double> values(static_cast<size_t>(types[0].numel()));
  Numbers basis = room_for(types[1]);
  fl::eigh(numbers_of(a).data(), matrices_of(a.type()), upper, values.data(),
           vectors ? basis.data() : nullptr);
  return {array_of(types[0], values), array_of(types[1], basis)};
}

Gradients eigen_back(const Vjp& v, const LazyTensor& a, const std::string& triangle) {
  const bool vectors = v.results[1].rank() > 1;
  const LazyTensors found =
      vectors ? LazyTensors{v.results} : apply("aten::_linalg_eigh", {a, triangle});
  const LazyTensor &values = found[0], &basis = found[1];
  LazyTensor inner =
      v.cotangents[0].defined() ? on_diagonal(v.cotangents[0], a.dtype()) : zeros_like(a);
  if (vectors && v.cotangents[1].defined()) {
    const LazyTensor one = apply_one("aten::eye", {values.size(-1), values.dtype()});
    const LazyTensor apart = unsqueeze(values, -2) - unsqueeze(values, -1) + one;
    inner = inner + matmul(adjoint(basis), v.cotangents[1]) * ((1 - one) / apart);
  }
  return {matmul(basis, matmul(inner, adjoint(basis)))};
}

void add_eigen(OperationTable& rows) {
  rows.add(
      {.schema = "aten::_linalg_eigh(Tensor A, str UPLO=\"L\", bool compute_v=True) -> (Tensor "
                 "eigenvalues, Tensor eigenvectors)",
       .infer =
           [](LazyTensor a, std::string triangle, bool vectors) {
             expect_matrices(a);
             if (a.size(-1) != a.size(-2))
               throw UserError("expected square matrices, received sizes " + str(a.sizes()));
             if (triangle != "L" && triangle != "U")
               throw UserError("expected UPLO 'L' or 'U', received '" + triangle + "'");
             return eigen_types(a.type(), vectors);
           },
       .native = [](Array a, std::string triangle,
                    bool vectors) { return eigen(a, triangle == "U", vectors); },
       .runtime = "matrices::eigh",
       .runtime_options =
           [](LazyTensor a, std::string triangle) {
             return matrices_with(a, "upper", triangle == "U");
           },
       .vjp = [](Vjp v, LazyTensor a, std::string triangle) { return eigen_back(v, a, triangle); },
       .samples = "f32[2,2]=[1,0,0,3] | f32[2,2]=[1,0,0,3] 'U'",
       .bad = "f32[2,3]: square matrices | f32[2,2] 'A': expected UPLO"});
}

// ---- pseudoinverses -----------------------------------------------------------------------------

// Singular values that are not larger count as zero. [...] of the batch.
LazyTensor cutoff(const LazyTensor& a, const LazyTensor& largest,
                  const std::optional<LazyTensor>& atol, const std::optional<LazyTensor>& rtol) {
  const bool narrow = real_dtype(a.dtype()) != DType::float64;
  const double epsilon =
      narrow ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
  const double usual = epsilon * static_cast<double>(std::max(a.size(-1), a.size(-2)));
  if (!atol) return rtol ? *rtol * largest : largest * usual;
  return maximum(*atol, rtol ? *rtol * largest : where(*atol > 0, 0, largest * usual));
}

LazyTensor pseudoinverse(const LazyTensor& a, const std::optional<LazyTensor>& atol,
                         const std::optional<LazyTensor>& rtol) {
  if (a.numel() == 0) return adjoint(a);
  const LazyTensors usv = apply("aten::_linalg_svd", {a});
  const LazyTensor& s = usv[1];
  const LazyTensor counts = s > unsqueeze(cutoff(a, select_at(s, -1, 0), atol, rtol), -1);
  const LazyTensor inverse = where(counts, reciprocal(s), 0);
  return matmul(adjoint(usv[2]) * unsqueeze(inverse, -2), adjoint(usv[0]));
}

// The Hermitian matrix with the lower triangle of a.
LazyTensor lower_reflected(const LazyTensor& a) {
  const LazyTensor below = tril(a, -1);
  const LazyTensor main = apply_one("aten::real", {apply_one("aten::diagonal", {a, 0, -2, -1})});
  return below + adjoint(below) + on_diagonal(main, a.dtype());
}

// G. Golub and V. Pereyra, "The Differentiation of Pseudo-Inverses and Nonlinear Least Squares
// Problems Whose Variables Separate" (1973).
LazyTensor pseudoinverse_back(const LazyTensor& g, const LazyTensor& a, const LazyTensor& inverse) {
  const LazyTensor back = adjoint(inverse), gh = adjoint(g);
  const LazyTensor rows = gh - matmul(a, matmul(inverse, gh));     // outside of a's image
  const LazyTensor columns = gh - matmul(matmul(gh, inverse), a);  // outside of its adjoint's
  return matmul(rows, matmul(inverse, back)) + matmul(matmul(back, inverse), columns) -
         matmul(back, matmul(g, back));
}

void add_pseudoinverse(OperationTable& rows) {
  rows.add({.schema = "aten::linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, "
                      "Tensor? rtol=None, bool hermitian=False) -> Tensor",
            .decompose =
                [](LazyTensor a, std::optional<LazyTensor> atol, std::optional<LazyTensor> rtol,
                   bool hermitian) {
                  expect_matrices(a);
                  return LazyTensors{pseudoinverse(hermitian ? lower_reflected(a) : a, atol, rtol)};
                },
            .vjp =
                [](Vjp v, LazyTensor a) {
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
