// Factors of matrices, and systems of equations solved by them. The factors and the solution by
// triangles are native; all else is made of these.
#include <algorithm>
#include <stdexcept>

#include "composit/ir/error.h"
#include "composit/ops/functions.h"
#include "composit/ops/linear_algebra.h"
#include "composit/ops/matrices.h"

namespace composit {
namespace {

int64_t size_of(const Type& type, size_t from_end) { return type.sizes[type.rank() - from_end]; }

void expect_square(const LazyTensor& x) {
  expect_matrices(x);
  if (x.size(-1) != x.size(-2))
    throw UserError("expected square matrices, received sizes " + str(x.sizes()));
}

// Types of one result per batch, with `last` after the batch's axes.
Type per_matrix(const Type& matrices, DType dtype, const Ints& last) {
  Dims sizes(matrices.sizes.begin(), matrices.sizes.end() - 2);
  sizes.insert(sizes.end(), last.begin(), last.end());
  return tensor_type(dtype, sizes);
}

// ---- factors ------------------------------------------------------------------------------------

std::vector<Type> lu_types(const Type& a) {
  const int64_t pivots = std::min(size_of(a, 1), size_of(a, 2));
  return {tensor_type(a.dtype, a.sizes), per_matrix(a, DType::int32, {pivots}),
          per_matrix(a, DType::int32, {})};
}

std::vector<int32_t> ints_for(const Type& type) {
  return std::vector<int32_t>(static_cast<size_t>(type.numel()));
}

std::vector<Array> lu_factors(const Array& a, bool pivoted) {
  const std::vector<Type> types = lu_types(a.type());
  Numbers lu = room_for(types[0]);
  std::vector<int32_t> pivots = ints_for(types[1]), info = ints_for(types[2]);
  fl::lu_factor(numbers_of(a).data(), matrices_of(a.type()), pivoted, lu.data(), pivots.data(),
                info.data());
  return {array_of(types[0], lu), Array::copy_of(types[1], pivots.data()),
          Array::copy_of(types[2], info.data())};
}

std::vector<Type> cholesky_types(const Type& a) {
  return {tensor_type(a.dtype, a.sizes), per_matrix(a, DType::int32, {})};
}

std::vector<Array> cholesky_factors(const Array& a, bool upper) {
  const std::vector<Type> types = cholesky_types(a.type());
  Numbers l = room_for(types[0]);
  std::vector<int32_t> info = ints_for(types[1]);
  fl::cholesky(numbers_of(a).data(), matrices_of(a.type()), upper, l.data(), info.data());
  return {array_of(types[0], l), Array::copy_of(types[1], info.data())};
}

Array triangular_solution(const Array& triangle, const Array& right, bool upper, bool unit) {
  const Type type = tensor_type(right.type().dtype, right.type().sizes);
  Numbers x = room_for(type);
  fl::solve_triangular(numbers_of(triangle).data(), numbers_of(right).data(), matrices_of(type),
                       upper, unit, x.data());
  return array_of(type, x);
}

// Exchanges of rows as the matrix that undoes them: A = P L U.
Type permutation_type(const Type& pivots, int64_t n, DType dtype) {
  Dims sizes = pivots.sizes;
  sizes.back() = n;
  sizes.emplace_back(n);
  return tensor_type(dtype, sizes);
}
Array permutation(const Array& pivots, int64_t n, DType dtype) {
  const Type type = permutation_type(pivots.type(), n, dtype);
  const Array plain = pivots.contiguous();
  const auto* exchanged = reinterpret_cast<const int32_t*>(plain.data());
  std::vector<int64_t> p(static_cast<size_t>(type.numel()));
  try {
    fl::permutation(exchanged, batch(plain.type(), 1), size_of(plain.type(), 1), n, p.data());
  } catch (const std::out_of_range& error) {
    throw UserError(std::string("pivots: ") + error.what());
  }
  return array_of(type, p);
}

// ---- in terms of operations ---------------------------------------------------------------------

LazyTensor triangle(const LazyTensor& x, bool upper, int64_t diagonal = 0) {
  return apply_one(upper ? "aten::triu" : "aten::tril", {x, diagonal});
}
LazyTensor identity(int64_t n, DType dtype) { return apply_one("aten::eye", {n, dtype}); }

LazyTensor solve_triangular(const LazyTensor& a, const LazyTensor& b, bool upper, bool left = true,
                            bool unit = false) {
  return apply_one("aten::linalg_solve_triangular", {a, b, upper, left, unit});
}

// Both with the batch that their batches broadcast to.
std::pair<LazyTensor, LazyTensor> batched(const LazyTensor& a, const LazyTensor& b) {
  const auto with = [](const LazyTensor& x, const Ints& batch) {
    Ints sizes = batch;
    sizes.insert(sizes.end(), {x.size(-2), x.size(-1)});
    return expand(x, sizes);
  };
  const Ints first = a.sizes(), second = b.sizes();
  const Ints batch = broadcast_sizes(
      {Ints(first.begin(), first.end() - 2), Ints(second.begin(), second.end() - 2)});
  return {with(a, batch), with(b, batch)};
}

LazyTensors unpacked(const LazyTensor& lu, const LazyTensor& pivots) {
  const int64_t m = lu.size(-2), n = lu.size(-1), k = std::min(m, n);
  const LazyTensor lower = triangle(slice(lu, -1, 0, k), false, -1);
  const LazyTensor unit = apply_one("aten::eye.m", {m, k, lu.dtype()});
  return {apply_one("composit::permutation", {pivots, m, lu.dtype()}), lower + unit,
          triangle(slice(lu, -2, 0, k), true)};
}

LazyTensor lu_solution(const LazyTensor& lu, const LazyTensor& pivots, const LazyTensor& b,
                       bool left, bool adjoint_system) {
  if (!left) return adjoint(lu_solution(lu, pivots, adjoint(b), true, !adjoint_system));
  const LazyTensor p = apply_one("composit::permutation", {pivots, lu.size(-1), lu.dtype()});
  if (!adjoint_system)
    return solve_triangular(
        lu, solve_triangular(lu, matmul(transpose(p, -1, -2), b), false, true, true), true);
  const LazyTensor back = adjoint(lu);
  return matmul(p, solve_triangular(back, solve_triangular(back, b, false), true, true, true));
}

LazyTensors lu_of(const LazyTensor& a) { return apply("aten::linalg_lu_factor_ex", {a}); }

// torch factors the transpose of real matrices, which lie in LAPACK's order then.
LazyTensor as_factored(const LazyTensor& a) {
  return is_complex(a.dtype()) ? a : transpose(a, -1, -2);
}

// 1, or -1 for an odd number of exchanges.
LazyTensor parity(const LazyTensor& pivots, DType dtype) {
  const LazyTensor moved = sum(ne(pivots, arange(pivots.size(-1)) + 1), {-1});
  return to(1 - apply_one("aten::remainder.Scalar", {moved, 2}) * 2, dtype);
}
LazyTensor diagonal(const LazyTensor& x) { return apply_one("aten::diagonal", {x, 0, -2, -1}); }

bool is_vector(const LazyTensor& a, const LazyTensor& b) {
  Ints sizes = a.sizes();
  sizes.pop_back();
  return b.rank() == 1 || b.sizes() == sizes;
}

LazyTensors solution(const LazyTensor& a, LazyTensor b, bool left) {
  expect_square(a);
  const bool vector = left && is_vector(a, b);
  if (vector) b = unsqueeze(b, -1);
  if (b.rank() < 2 || b.size(left ? -2 : -1) != a.size(-1))
    throw UserError("expected right sides for sizes " + str(a.sizes()) + ", received " +
                    str(b.sizes()));
  const LazyTensors lu = lu_of(as_factored(a));
  const auto [factors, right] = batched(lu[0], b);
  Ints batch = right.sizes();
  batch.resize(batch.size() - 2);
  batch.push_back(lu[1].size(-1));
  const bool transposed = !is_complex(a.dtype());
  const LazyTensor x = lu_solution(factors, expand(lu[1], batch), right, left, transposed);
  return {vector ? squeeze(x, {-1}) : x, lu[0], lu[1], lu[2]};
}

// ---- rows ---------------------------------------------------------------------------------------

// A = P L U, of which a square part [L1; L2] [U1 U2] is inverted: with M = L1^-1 dA1 U1^-1, dL1 is
// L1 times its part below the diagonal, and dU1 the other part times U1.
Gradients lu_factor_back(const Vjp& v, const LazyTensor& a) {
  const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  const LazyTensor& g = v.cotangents[0];
  const LazyTensors plu = unpacked(v.results[0], v.results[1]);
  const LazyTensor gl = triangle(slice(g, -1, 0, k), false, -1),
                   gu = triangle(slice(g, -2, 0, k), true);
  const LazyTensor l1 = slice(plu[1], -2, 0, k), u1 = slice(plu[2], -1, 0, k);
  LazyTensor lower = matmul(adjoint(l1), slice(gl, -2, 0, k)),
             upper = matmul(slice(gu, -1, 0, k), adjoint(u1));
  if (n > k) lower = lower - matmul(slice(gu, -1, k, n), adjoint(slice(plu[2], -1, k, n)));
  if (m > k) upper = upper - matmul(adjoint(slice(plu[1], -2, k, m)), slice(gl, -2, k, m));
  const auto from_left = [&](const LazyTensor& x) {
    return solve_triangular(adjoint(l1), x, true, true, true);
  };
  const auto from_right = [&](const LazyTensor& x) {
    return solve_triangular(adjoint(u1), x, false, false);
  };
  LazyTensor whole = from_left(from_right(triangle(lower, false, -1) + triangle(upper, true)));
  if (n > k) whole = cat({whole, from_left(slice(gu, -1, k, n))}, -1);
  if (m > k) whole = cat({whole, from_right(slice(gl, -2, k, m))}, -2);
  return {matmul(plu[0], whole)};
}

Gradients cholesky_back(const Vjp& v, const LazyTensor&, bool upper) {
  const LazyTensor l = upper ? adjoint(v.results[0]) : v.results[0];
  const LazyTensor g = upper ? adjoint(v.cotangents[0]) : v.cotangents[0];
  const LazyTensor inner = matmul(adjoint(l), g);
  const LazyTensor symmetric = triangle(inner, false) + adjoint(triangle(inner, false, -1));
  const LazyTensor left = solve_triangular(adjoint(l), symmetric, true);
  return {solve_triangular(l, left, false, false) * 0.5};
}

void add_factors(OperationTable& rows) {
  rows.add(
      {.schema = "aten::linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool "
                 "check_errors=False) -> (Tensor LU, Tensor pivots, Tensor info)",
       .infer =
           [](LazyTensor a) {
             expect_matrices(a);
             return lu_types(a.type());
           },
       .native = [](Array a, bool pivot) { return lu_factors(a, pivot); },
       .runtime = "matrices::lu_factor",
       .runtime_options = [](LazyTensor a, bool pivot) { return matrices_with(a, "pivot", pivot); },
       .vjp = [](Vjp v, LazyTensor a) { return lu_factor_back(v, a); },
       .samples = "f32[3,3] | f32[2,3,3] | c64[2,2] | f32[4,2] | f32[2,2,4]",
       .bad = "f32[3]: expected matrices | i64[2,2]: floating point"});
  rows.add(
      {.schema = "aten::linalg_cholesky_ex(Tensor self, *, bool upper=False, bool "
                 "check_errors=False) -> (Tensor L, Tensor info)",
       .infer =
           [](LazyTensor a) {
             expect_square(a);
             return cholesky_types(a.type());
           },
       .native = [](Array a, bool upper) { return cholesky_factors(a, upper); },
       .runtime = "matrices::cholesky",
       .runtime_options = [](LazyTensor a, bool upper) { return matrices_with(a, "upper", upper); },
       .vjp = [](Vjp v, LazyTensor a, bool upper) { return cholesky_back(v, a, upper); },
       .samples = "f32[2,2]=[4,1,1,3] | f32[2,2]=[4,1,1,3] True | f32[1,2,2]=[2,0,0,5]",
       .bad = "f32[2,3]: square matrices"});
  rows.add({.schema = "composit::permutation(Tensor pivots, int n, ScalarType dtype) -> Tensor",
            .infer =
                [](LazyTensor pivots, int64_t n, DType dtype) {
                  if (pivots.rank() == 0 || pivots.dtype() != DType::int32)
                    throw UserError("expected pivots of int32, received " +
                                    std::string(name(pivots.dtype())));
                  return std::vector<Type>{permutation_type(pivots.type(), n, dtype)};
                },
            .native = [](Array pivots, int64_t n,
                         DType dtype) { return std::vector<Array>{permutation(pivots, n, dtype)}; },
            .runtime = "matrices::permutation",
            .runtime_options =
                [](LazyTensor pivots, int64_t n) {
                  return Attributes{option("batch", batch(pivots.type(), 1)),
                                    option("pivots", size_from_end(pivots.type(), 1)),
                                    option("n", n)};
                },
            .samples = "i32[3]=[2,2,3] 3 float32",
            .bad = "f32[2] 2 float32: pivots of int32"});
}

Gradients triangular_back(const Vjp& v, const LazyTensor& a, bool upper, bool unit) {
  const LazyTensor gb = solve_triangular(adjoint(a), v.cotangents[0], !upper, true, unit);
  const LazyTensor ga = -matmul(gb, adjoint(v.results[0]));
  return {triangle(ga, upper, unit ? (upper ? 1 : -1) : 0), gb};
}

void add_triangles(OperationTable& rows) {
  rows.add(
      {.schema = "composit::solve_triangular(Tensor A, Tensor B, bool upper, bool unit) -> "
                 "Tensor",
       .infer =
           [](LazyTensor a, LazyTensor b) {
             expect_square(a);
             expect_matrices(b);
             if (b.size(-2) != a.size(-1) || a.dtype() != b.dtype())
               throw UserError("expected right sides for sizes " + str(a.sizes()) + ", received " +
                               str(b.sizes()));
             return std::vector<Type>{tensor_type(b.dtype(), b.type().sizes)};
           },
       .native =
           [](Array a, Array b, bool upper, bool unit) {
             return std::vector<Array>{triangular_solution(a, b, upper, unit)};
           },
       .runtime = "matrices::solve_triangular",
       .runtime_options =
           [](LazyTensor, LazyTensor b, bool upper, bool unit) {
             return Attributes{matrices(b.type()), option("upper", upper), option("unit", unit)};
           },
       .vjp = [](Vjp v, LazyTensor a, LazyTensor, bool upper,
                 bool unit) { return triangular_back(v, a, upper, unit); },
       .samples = "f32[3,3] f32[3,2] True False | f32[2,3,3] f32[2,3,2] False True",
       .bad = "f32[3,3] f32[2,2] True False: right sides"});
  rows.add({.schema = "aten::linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool "
                      "left=True, bool unitriangular=False) -> Tensor",
            .decompose =
                [](LazyTensor a, LazyTensor b, bool upper, bool left, bool unit) {
                  if (!left) {
                    a = transpose(a, -1, -2);
                    b = transpose(b, -1, -2);
                  }
                  const auto [matrices, right] = batched(a, b);
                  const LazyTensor x = apply_one("composit::solve_triangular",
                                                 {matrices, right, left ? upper : !upper, unit});
                  return LazyTensors{left ? x : transpose(x, -1, -2)};
                },
            .samples = "f32[3,3] f32[3,2] True | f32[2,3,3] f32[3,2] False True True | f32[3,3] "
                       "f32[2,3] True False | c64[2,2] c64[2,2] False"});
  rows.add({.schema = "aten::triangular_solve(Tensor self, Tensor A, bool upper=True, bool "
                      "transpose=False, bool unitriangular=False) -> (Tensor solution, Tensor "
                      "cloned_coefficient)",
            .decompose =
                [](LazyTensor b, LazyTensor a, bool upper, bool transposed, bool unit) {
                  const auto [matrices, right] = batched(a, b);
                  const LazyTensor system = transposed ? transpose(matrices, -1, -2) : matrices;
                  return LazyTensors{
                      solve_triangular(system, right, transposed ? !upper : upper, true, unit),
                      matrices};
                },
            .samples = "f32[3,2] f32[3,3] | f32[3,2] f32[3,3] False True True"});
  rows.add(
      {.schema = "aten::cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor",
       .decompose =
           [](LazyTensor b, LazyTensor l, bool upper) {
             if (upper) l = adjoint(l);
             return LazyTensors{solve_triangular(adjoint(l), solve_triangular(l, b, false), true)};
           },
       .samples = "f32[3,2] f32[3,3] | f32[3,2] f32[3,3] True"});
  rows.add({.schema = "aten::cholesky_inverse(Tensor self, bool upper=False) -> Tensor",
            .decompose =
                [](LazyTensor l, bool upper) {
                  return apply("aten::cholesky_solve", {identity(l.size(-1), l.dtype()), l, upper});
                },
            .samples = "f32[3,3] | f32[3,3] True"});
  rows.add({.schema = "aten::cholesky(Tensor self, bool upper=False) -> Tensor",
            .decompose =
                [](LazyTensor a, bool upper) {
                  return LazyTensors{apply("aten::linalg_cholesky_ex", {a, upper})[0]};
                },
            .samples = "f32[2,2]=[4,1,1,3] | f32[2,2]=[4,1,1,3] True"});
}

void add_lu(OperationTable& rows) {
  rows.add({.schema = "aten::lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, "
                      "bool unpack_pivots=True) -> (Tensor P, Tensor L, Tensor U)",
            .decompose =
                [](LazyTensor lu, LazyTensor pivots, bool data, bool exchanges) {
                  LazyTensors plu = unpacked(lu, pivots);
                  const LazyTensor none = zeros({0}, lu.dtype());
                  if (!data) plu[1] = plu[2] = none;
                  if (!exchanges) plu[0] = none;
                  return plu;
                },
            .samples = "f32[3,3] i32[3]=[2,2,3] | f32[2,3] i32[2]=[2,2] | f32[3,2] i32[2]=[3,2] | "
                       "f32[2,2] i32[2]=[2,2] True False"});
  rows.add({.schema = "aten::linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, "
                      "Tensor U)",
            .decompose =
                [](LazyTensor a, bool pivot) {
                  const LazyTensors lu = apply("aten::linalg_lu_factor_ex", {a, pivot});
                  LazyTensors plu = unpacked(lu[0], lu[1]);
                  if (!pivot) plu[0] = zeros({0}, a.dtype());
                  return plu;
                },
            .samples = "f32[3,3] | f32[2,2,2]"});
  rows.add({.schema = "aten::linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool "
                      "left=True, bool adjoint=False) -> Tensor",
            .decompose =
                [](LazyTensor lu, LazyTensor pivots, LazyTensor b, bool left, bool adjoint_system) {
                  const auto [factors, right] = batched(lu, b);
                  Ints sizes = right.sizes();
                  sizes.resize(sizes.size() - 2);
                  sizes.push_back(pivots.size(-1));
                  return LazyTensors{
                      lu_solution(factors, expand(pivots, sizes), right, left, adjoint_system)};
                },
            .samples = "f32[3,3] i32[3]=[2,2,3] f32[3,2] | f32[3,3] i32[3]=[2,3,3] f32[3,2] True "
                       "True | f32[3,3] i32[3]=[2,3,3] f32[2,3] False"});
}

void add_solutions(OperationTable& rows) {
  rows.add({.schema = "aten::_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool "
                      "check_errors=False) -> (Tensor result, Tensor LU, Tensor pivots, Tensor "
                      "info)",
            .decompose = [](LazyTensor a, LazyTensor b, bool left) { return solution(a, b, left); },
            .samples = "f32[3,3] f32[3,2] | f32[3,3] f32[3] | f32[2,3,3] f32[3,2] | f32[3,3] "
                       "f32[2,3] False",
            .bad = "f32[3,3] f32[2,2]: right sides | f32[2,3] f32[2]: square"});
  rows.add({.schema = "aten::linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor "
                      "inverse, Tensor info)",
            .decompose =
                [](LazyTensor a) {
                  expect_square(a);
                  const LazyTensors lu = lu_of(a);
                  const auto [factors, one] = batched(lu[0], identity(a.size(-1), a.dtype()));
                  return LazyTensors{lu_solution(factors, lu[1], one, true, false), lu[2]};
                },
            .vjp =
                [](Vjp v, LazyTensor) {
                  const LazyTensor back = adjoint(v.results[0]);
                  return Gradients{-matmul(back, matmul(v.cotangents[0], back))};
                },
            .samples = "f32[3,3] | f32[2,2,2] | c64[2,2]",
            .bad = "f32[2,3]: square"});
  rows.add({.schema = "aten::_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)",
            .decompose =
                [](LazyTensor a) {
                  expect_square(a);
                  const LazyTensors lu = lu_of(as_factored(a));
                  const LazyTensor product = apply_one("aten::prod.dim_int", {diagonal(lu[0]), -1});
                  return LazyTensors{product * parity(lu[1], a.dtype()), lu[0], lu[1]};
                },
            .samples = "f32[3,3] | f32[2,2,2] | c64[2,2]",
            .bad = "f32[2,3]: square"});
  rows.add({.schema = "aten::_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor "
                      "LU, Tensor pivots)",
            .decompose =
                [](LazyTensor a) {
                  expect_square(a);
                  const LazyTensors lu = lu_of(as_factored(a));
                  const LazyTensor main = diagonal(lu[0]);
                  const LazyTensor signs =
                      apply_one("aten::prod.dim_int", {apply_one("aten::sgn", {main}), -1});
                  return LazyTensors{signs * parity(lu[1], a.dtype()), sum(log(abs(main)), {-1}),
                                     lu[0], lu[1]};
                },
            .samples = "f32[3,3] | f32[2,2,2]",
            .bad = "f32[2,3]: square"});
}

}  // namespace

void add_linear_systems_rows(OperationTable& rows) {
  add_factors(rows);
  add_triangles(rows);
  add_lu(rows);
  add_solutions(rows);
}

}  // namespace composit
