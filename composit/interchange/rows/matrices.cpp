// Factors of matrices, and what is solved by them, by loops over columns: G. Golub and C. Van Loan,
// "Matrix Computations". Elements are chosen by masks, since places that a loop counts are not
// known to be in range.
#include "composit/interchange/matrices.h"

#include <algorithm>

#include "composit/interchange/checks.h"
#include "composit/interchange/common_rows.h"
#include "composit/interchange/values.h"
#include "composit/ops/control_flow.h"
#include "composit/ops/functions.h"

namespace composit::interchange {

bool is_single_or_double(const LazyTensor& x) {
  return x.dtype() == DType::float32 || x.dtype() == DType::float64;
}

LazyTensor flat_batch(const LazyTensor& x, int64_t kept) {
  Dims sizes = {1};
  for (int64_t axis = 0; axis < x.rank() - kept; ++axis) sizes[0] *= x.size(axis);
  sizes.insert(sizes.end(), x.sizes().end() - kept, x.sizes().end());
  return reshape(x, sizes);
}

LazyTensor unit_matrices(int64_t batch, int64_t n, DType dtype) {
  return expand(to(eq(unsqueeze(arange(n), 1), arange(n)), dtype), {batch, n, n});
}

namespace {

using Types = std::vector<Type>;
using X = const LazyTensor&;

// The number of each row, [m, 1], and of each column, [n].
LazyTensor row_of(X x) { return unsqueeze(arange(x.size(-2)), 1); }
LazyTensor column_of(X x) { return arange(x.size(-1)); }

// The sum over an axis of what is chosen there: one element, or 0.
LazyTensor picked(X x, X chosen, int64_t axis) { return sum(where(chosen, x, 0), {axis}, true); }

LazyTensor triangle(X x, bool upper) {
  return where(upper ? row_of(x) <= column_of(x) : row_of(x) >= column_of(x), x, 0);
}

// `step` for i = 0, …, count - 1.
LazyTensors counted(int64_t count, const LazyTensors& carried,
                    const std::function<LazyTensors(X i, const LazyTensors& in)>& step,
                    bool reverse = false) {
  const auto body = [&](const LazyTensors& in, const LazyTensors& slots) {
    return ScanStep{step(slots[0], in), {}};
  };
  return scan(body, carried, {arange(count)}, {.reverse = reverse}).carried;
}

// ---- positive definite matrices -----------------------------------------------------------------

// What is not positive definite is an error in torch, or a number for what is then not said.
LazyTensors cholesky(const Call& call, const Types& results) {
  X given = tensor_of(call, "self");
  if (!is_single_or_double(given)) return {};
  const LazyTensor none = zeros(results[1].sizes, results[1].dtype);
  if (given.numel() == 0) return {given, none};
  const bool upper = bool_of(call, "upper");
  const LazyTensor x = upper ? transpose(given, -1, -2) : given;
  const LazyTensor lower = counted(x.size(-1), {flat_batch(x, 2)}, [](X i, const LazyTensors& in) {
    X a = in[0];
    const LazyTensor is_column = eq(column_of(a), i), row = row_of(a);
    const LazyTensor values = picked(a, is_column, -1);
    const LazyTensor pivot = sqrt(picked(values, eq(row, i), -2));
    const LazyTensor factor = where(row > i, values / pivot, 0);
    const LazyTensor rest = a - factor * transpose(factor, -1, -2);
    return LazyTensors{where(is_column, where(eq(row, i), pivot, factor), rest)};
  })[0];
  const LazyTensor factor = triangle(reshape(lower, given.sizes()), false);
  // A number that is none spoils all that follows.
  const LazyTensor right = apply_one("aten::all", {eq(factor, factor)});
  const LazyTensor positive =
      apply_one("aten::all", {apply_one("aten::diagonal", {factor, 0, -2, -1}) > 0});
  const LazyTensor result = upper ? transpose(factor, -1, -2) : factor;
  return {checked(result, logical_and(right, positive), "matrices are positive definite"), none};
}

// Older than linalg_solve_triangular; gives the matrix as well.
LazyTensors old_solve_triangular(const Call& call, const Types& results) {
  X a = tensor_of(call, "A"), b = tensor_of(call, "self");
  const bool turns = bool_of(call, "transpose"), upper = bool_of(call, "upper") != turns;
  Dims sizes(results[0].sizes.begin(), results[0].sizes.end() - 2);
  sizes.insert(sizes.end(), {a.size(-2), a.size(-1)});
  const LazyTensor system = expand(turns ? transpose(a, -1, -2) : a, sizes);
  return {apply_one("composit::solve_triangular",
                    {system, expand(b, results[0].sizes), upper, bool_of(call, "unitriangular")}),
          expand(a, results[1].sizes)};
}

LazyTensors solve_triangular(const Call& call, const Types& results) {
  X a = tensor_of(call, "A"), b = tensor_of(call, "B");
  if (!is_single_or_double(b)) return {};
  if (b.numel() == 0) return {zeros(results[0].sizes, b.dtype())};
  const bool upper = bool_of(call, "upper"), unit = bool_of(call, "unit");
  Dims batch(b.sizes().begin(), b.sizes().end() - 2), sizes = batch;
  sizes.insert(sizes.end(), {a.size(-2), a.size(-1)});
  const LazyTensor matrices = flat_batch(expand(a, sizes), 2);
  const auto step = [&](X i, const LazyTensors& in) {
    const LazyTensor row = row_of(in[0]), is_row = eq(row, i);
    const LazyTensor column = picked(matrices, eq(column_of(matrices), i), -1);
    const LazyTensor own = picked(in[0], is_row, -2);
    const LazyTensor x = unit ? own : own / picked(column, is_row, -2);
    const LazyTensor rest = where(upper ? row < i : row > i, in[0] - column * x, in[0]);
    return LazyTensors{where(is_row, x, rest)};
  };
  return {reshape(counted(a.size(-1), {flat_batch(b, 2)}, step, upper)[0], results[0].sizes)};
}

// ---- P L U --------------------------------------------------------------------------------------

// A step of Gaussian elimination as LAPACK's getrf makes it: the exchange of two rows, and what the
// rows below lose.
LazyTensors eliminate(X i, const LazyTensors& in, bool pivots) {
  X x = in[0], places = in[1], info = in[2];
  const LazyTensor row = row_of(x), column = column_of(x);
  const LazyTensor is_column = eq(column, i);
  const LazyTensor size = where(row >= i, abs(picked(x, is_column, -1)), -1);
  const LazyTensor found = apply_one("aten::argmax", {size, -2, true});
  const LazyTensor best = pivots ? found : found * 0 + i;
  const LazyTensor is_best = eq(row, best), is_own = eq(row, i);
  const LazyTensor best_row = picked(x, is_best, -2), own_row = picked(x, is_own, -2);
  const LazyTensor exchanged = where(is_own, best_row, where(is_best, own_row, x));
  const LazyTensor pivot = picked(best_row, is_column, -1), singular = eq(pivot, 0);
  const LazyTensor below = picked(exchanged, is_column, -1) / where(singular, 1, pivot);
  const LazyTensor rest = exchanged - below * best_row;
  const LazyTensor beside = where(column > i, rest, exchanged);
  const LazyTensor next = where(row > i, where(is_column, below, beside), exchanged);
  const Dims per_matrix = {x.size(0), 1};
  const LazyTensor one_based = to(reshape(best, per_matrix) + 1, DType::int32);
  const LazyTensor is_first = logical_and(eq(info, 0), reshape(singular, per_matrix));
  return {next, where(eq(arange(places.size(-1)), i), one_based, places),
          where(is_first, to(i + 1, DType::int32), info)};
}

LazyTensors lu(const Call& call, const Types& results) {
  X a = tensor_of(call, "A");
  if (!is_single_or_double(a)) return {};
  if (a.numel() == 0)
    return {a, zeros(results[1].sizes, DType::int32), zeros(results[2].sizes, DType::int32)};
  const bool pivots = bool_of(call, "pivot");
  const LazyTensor x = flat_batch(a, 2);
  const int64_t batch = x.size(0), count = std::min(x.size(1), x.size(2));
  const LazyTensors end =
      counted(count, {x, zeros({batch, count}, DType::int32), zeros({batch, 1}, DType::int32)},
              [&](X i, const LazyTensors& in) { return eliminate(i, in, pivots); });
  return {reshape(end[0], results[0].sizes), reshape(end[1], results[1].sizes),
          reshape(end[2], results[2].sizes)};
}

// The matrix P of A = P L U: exchanges in their order.
LazyTensors permutation(const Call& call, const Types& results) {
  const int64_t n = int_of(call, "n");
  if (results[0].numel() == 0) return {zeros(results[0].sizes, results[0].dtype)};
  const LazyTensor pivots = to(flat_batch(tensor_of(call, "pivots"), 1), DType::int64);
  const int64_t batch = pivots.size(0);
  const LazyTensor rows = expand(arange(n), {batch, n});
  const LazyTensor order =
      pivots.size(1) == 0 ? rows : counted(pivots.size(1), {rows}, [&](X i, const LazyTensors& in) {
        const LazyTensor other = picked(pivots, eq(arange(pivots.size(1)), i), -1) - 1;
        const LazyTensor is_own = eq(arange(n), i), is_other = eq(arange(n), other);
        const LazyTensor own = picked(in[0], is_own, -1), away = picked(in[0], is_other, -1);
        return LazyTensors{where(is_own, away, where(is_other, own, in[0]))};
      })[0];
  const LazyTensor matrix = eq(unsqueeze(arange(n), 1), unsqueeze(order, 1));
  return {reshape(to(matrix, results[0].dtype), results[0].sizes)};
}

}  // namespace

// ---- Q R ----------------------------------------------------------------------------------------

// A Householder reflection as LAPACK's geqrf makes it: column i of R below the diagonal becomes 0.
static LazyTensors reflect(X i, const LazyTensors& in) {
  X q = in[0], r = in[1];
  const LazyTensor column = picked(r, eq(column_of(r), i), -1), from = row_of(r);
  const LazyTensor alpha = picked(column, eq(from, i), -2);
  const LazyTensor below = where(from > i, column, 0);
  const LazyTensor largest = amax(where(from >= i, abs(column), 0), {-2}, true);
  const LazyTensor safe = where(eq(largest, 0), 1, largest);
  const LazyTensor a = alpha / safe, rest = sum(square(below / safe), {-2}, true);
  const LazyTensor norm = safe * sqrt(rest + a * a);
  const LazyTensor beta = where(alpha < 0, norm, -norm), none = eq(rest, 0);
  const LazyTensor tau = where(none, 0, (beta - alpha) / where(none, 1, beta));
  const LazyTensor divisor = where(none, 1, alpha - beta);
  const LazyTensor v = where(eq(from, i), 1, below / divisor);
  const LazyTensor along = sum(v * r, {-2}, true), across = transpose(v, -1, -2);
  const LazyTensor into = sum(q * across, {-1}, true);
  return {q - tau * into * across, r - tau * v * along};
}

Factors orthogonal_factors(const LazyTensor& a) {
  const LazyTensor unit = unit_matrices(a.size(0), a.size(1), a.dtype());
  const LazyTensors end = counted(std::min(a.size(1), a.size(2)), {unit, a}, reflect);
  return {end[0], triangle(end[1], true)};
}

namespace {

LazyTensors qr(const Call& call, const Types& results) {
  X a = tensor_of(call, "A");
  if (!is_single_or_double(a)) return {};
  const auto empty = [](const Type& type) { return zeros(type.sizes, type.dtype); };
  if (a.numel() == 0) {
    if (results[0].numel() > 0) return {};
    return {empty(results[0]), empty(results[1])};
  }
  const Factors factors = orthogonal_factors(flat_batch(a, 2));
  const auto sized = [](X matrix, int64_t axis, const Type& type) {
    const int64_t kept = type.sizes[type.sizes.size() - (axis == 1 ? 2 : 1)];
    return reshape(slice(matrix, axis, 0, kept), type.sizes);
  };
  return {results[0].numel() > 0 ? sized(factors.q, 2, results[0]) : empty(results[0]),
          sized(factors.r, 1, results[1])};
}

}  // namespace

void add_matrix_rows(std::vector<Row>& rows) {
  rows.insert(rows.end(), {{"aten::linalg_cholesky_ex", cholesky},
                           {"aten::linalg_lu_factor_ex", lu},
                           {"aten::linalg_qr", qr},
                           {"aten::triangular_solve", old_solve_triangular},
                           {"composit::permutation", permutation},
                           {"composit::solve_triangular", solve_triangular}});
}

}  // namespace composit::interchange
