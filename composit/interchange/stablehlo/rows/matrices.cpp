// Factors of matrices, by loops over columns. IREE has no kernels for the first two.
#include <algorithm>

#include "composit/interchange/stablehlo/loops.h"
#include "composit/interchange/stablehlo/rows.h"

namespace composit::stablehlo {
namespace {

using Types = std::vector<Type>;

bool is_real(const LazyTensor& x) {
  return x.dtype() == DType::float32 || x.dtype() == DType::float64;
}

LazyTensor row_of(const LazyTensor& x) { return iota(DType::int64, x.sizes(), x.rank() - 2); }
LazyTensor column_of(const LazyTensor& x) { return iota(DType::int64, x.sizes(), x.rank() - 1); }

// The elements on and on one side of the diagonal, zeros elsewhere.
LazyTensor triangle(const LazyTensor& x, bool upper) {
  return select(compare(upper ? "LE" : "GE", row_of(x), column_of(x)), x, like(0, x));
}

// What is not positive definite gives no numbers there, and an error in torch.
LazyTensors cholesky(const Call& call, const Types& results) {
  const LazyTensor& x = tensor_of(call, "self");
  if (!is_real(x)) return {};
  if (x.numel() == 0) return {x, filled(0, results[1].dtype, results[1].sizes)};
  const bool upper = bool_of(call, "upper");
  const LazyTensor factor = triangle(stablehlo::call("cholesky", {x}, {attribute("lower", !upper)},
                                                     tensor_type(x.dtype(), x.sizes())),
                                     upper);
  const LazyTensor wrong = over_all("or", is_nan(factor), number(0, DType::bool_));
  return {checked(factor, unary("not", wrong), "matrices are positive definite"),
          filled(0, results[1].dtype, results[1].sizes)};
}

LazyTensors solve_triangular(const Call& call, const Types& results) {
  const LazyTensor &a = tensor_of(call, "A"), &b = tensor_of(call, "B");
  if (b.numel() == 0) return {filled(0, b.dtype(), results[0].sizes)};
  Dims batch_of_a(a.sizes().begin(), a.sizes().end() - 2);
  if (batch_of_a != Dims(b.sizes().begin(), b.sizes().end() - 2)) return {};
  return {stablehlo::call(
      "triangular_solve", {a, b},
      {attribute("lower", !bool_of(call, "upper")), attribute("unit", bool_of(call, "unit"))},
      tensor_type(b.dtype(), b.sizes()))};
}

// ---- by loops -----------------------------------------------------------------------------------

// One axis for the batch.
LazyTensor flat_batch(const LazyTensor& x, int64_t kept) {
  Dims sizes = {1};
  for (int64_t axis = 0; axis < x.rank() - kept; ++axis) sizes[0] *= x.size(axis);
  sizes.insert(sizes.end(), x.sizes().end() - kept, x.sizes().end());
  return reshaped(x, sizes);
}

// The sum over an axis of what is chosen there: one element, or 0.
LazyTensor picked(const LazyTensor& x, const LazyTensor& chosen, int64_t axis) {
  return reduced("add", select(chosen, x, like(0, x)), like(0, x), {axis}, true);
}

// A number per matrix, [batch, 1, 1].
LazyTensor per_matrix(const LazyTensor& x) { return reshaped(x, {x.numel(), 1, 1}); }

// The place of the largest element of a column [batch, m, 1].
LazyTensor largest_in(const LazyTensor& column) {
  const Dims sizes = {column.size(0), 1};
  return calls("reduce",
               {column, iota(DType::int64, column.sizes(), 1), lowest(column.dtype()),
                counter(column.size(1))},
               {list("dimensions", {1}), attribute("body", chooser(column.dtype(), true))},
               {tensor_type(column.dtype(), sizes), tensor_type(DType::int64, sizes)})[1];
}

// A step of Gaussian elimination as LAPACK's getrf makes it: the exchange of two rows, and what the
// rows below lose.
LazyTensors eliminate(const LazyTensors& in, bool pivots) {
  const LazyTensor &i = in[0], &x = in[1], &places = in[2], &info = in[3];
  const LazyTensor row = row_of(x), column = column_of(x), zero = like(0, x);
  const LazyTensor is_column = compare("EQ", column, i);
  const LazyTensor values = picked(x, is_column, 2);
  const LazyTensor from = row_of(values);
  const LazyTensor size = select(compare("GE", from, i), unary("abs", values), like(-1, x));
  const LazyTensor best = pivots ? per_matrix(largest_in(size))
                                 : broadcast_to(reshaped(i, {1, 1, 1}), {x.size(0), 1, 1});
  const LazyTensor is_best = compare("EQ", row, best), is_own = compare("EQ", row, i);
  const LazyTensor best_row = picked(x, is_best, 1), own_row = picked(x, is_own, 1);
  const LazyTensor exchanged = select(is_own, best_row, select(is_best, own_row, x));
  const LazyTensor pivot = picked(best_row, compare("EQ", column_of(best_row), i), 2);
  const LazyTensor singular = compare("EQ", pivot, zero);
  const LazyTensor below =
      binary("divide", picked(exchanged, is_column, 2), select(singular, like(1, x), pivot));
  const LazyTensor rest = compare("GT", row, i);
  const LazyTensor reduced_rest =
      binary("subtract", exchanged, binary("multiply", below, best_row));
  const LazyTensor next = select(rest,
                                 select(is_column, broadcast_to(below, x.sizes()),
                                        select(compare("GT", column, i), reduced_rest, exchanged)),
                                 exchanged);
  const LazyTensor one_based =
      cast_to(binary("add", reshaped(best, {x.size(0), 1}), counter(1)), DType::int32);
  const LazyTensor at = compare("EQ", iota(DType::int64, places.sizes(), 1), i);
  const LazyTensor first =
      binary("and", compare("EQ", info, like(0, info)), reshaped(singular, info.sizes()));
  const LazyTensor step = cast_to(binary("add", i, counter(1)), DType::int32);
  return {next, select(at, one_based, places), select(first, step, info)};
}

LazyTensors lu(const Call& call, const Types& results) {
  const LazyTensor& a = tensor_of(call, "A");
  if (!is_real(a)) return {};
  if (a.numel() == 0)
    return {a, filled(0, DType::int32, results[1].sizes),
            filled(0, DType::int32, results[2].sizes)};
  const bool pivots = bool_of(call, "pivot");
  const LazyTensor x = flat_batch(a, 2);
  const int64_t batch = x.size(0), count = std::min(x.size(1), x.size(2));
  const LazyTensors end = counted_loop(
      count, {x, filled(0, DType::int32, {batch, count}), filled(0, DType::int32, {batch, 1})}, {},
      [&](const LazyTensors& in) { return eliminate(in, pivots); });
  return {reshaped(end[0], results[0].sizes), reshaped(end[1], results[1].sizes),
          reshaped(end[2], results[2].sizes)};
}

// The matrix P of A = P L U: exchanges in their order.
LazyTensors permutation(const Call& call, const Types& results) {
  const LazyTensor& given = tensor_of(call, "pivots");
  const int64_t n = int_of(call, "n");
  if (results[0].numel() == 0) return {filled(0, results[0].dtype, results[0].sizes)};
  const LazyTensor pivots = flat_batch(given, 1);
  const int64_t batch = pivots.size(0);
  const LazyTensor order = counted_loop(
      pivots.size(1), {iota(DType::int64, {batch, n}, 1)}, {pivots}, [](const LazyTensors& in) {
        const LazyTensor &i = in[0], &rows = in[1], &all = in[2];
        const LazyTensor here = compare("EQ", iota(DType::int64, all.sizes(), 1), i);
        const LazyTensor other =
            binary("subtract", cast_to(picked(all, here, 1), DType::int64), counter(1));
        const LazyTensor place = iota(DType::int64, rows.sizes(), 1);
        const LazyTensor is_own = compare("EQ", place, i), is_other = compare("EQ", place, other);
        const LazyTensor own_row = picked(rows, is_own, 1), other_row = picked(rows, is_other, 1);
        return LazyTensors{select(is_own, other_row, select(is_other, own_row, rows))};
      })[0];
  const Dims square = {batch, n, n};
  const LazyTensor chosen = broadcast_along(order, square, {0, 2});
  const LazyTensor matrix = compare("EQ", iota(DType::int64, square, 1), chosen);
  return {reshaped(cast_to(matrix, results[0].dtype), results[0].sizes)};
}

// A Householder reflection as LAPACK's geqrf makes it: column i of R below the diagonal becomes 0.
LazyTensors reflect(const LazyTensors& in) {
  const LazyTensor &i = in[0], &q = in[1], &r = in[2];
  const LazyTensor zero = like(0, r), one = like(1, r);
  const LazyTensor column = picked(r, compare("EQ", column_of(r), i), 2), from = row_of(column);
  const LazyTensor alpha = picked(column, compare("EQ", from, i), 1);
  const LazyTensor below = select(compare("GT", from, i), column, zero);
  const LazyTensor rest_of_column = select(compare("GE", from, i), unary("abs", column), zero);
  const LazyTensor largest = reduced("maximum", rest_of_column, zero, {1}, true);
  const LazyTensor safe = select(compare("EQ", largest, zero), one, largest);
  const auto square_sum = [&](const LazyTensor& x) {
    const LazyTensor scaled = binary("divide", x, safe);
    return reduced("add", binary("multiply", scaled, scaled), zero, {1}, true);
  };
  const LazyTensor rest = square_sum(below), a = binary("divide", alpha, safe);
  const LazyTensor norm =
      binary("multiply", safe, unary("sqrt", binary("add", rest, binary("multiply", a, a))));
  const LazyTensor beta = select(compare("LT", alpha, zero), norm, unary("negate", norm));
  const LazyTensor none = compare("EQ", rest, zero);
  const LazyTensor safe_beta = select(none, one, beta);
  const LazyTensor tau =
      select(none, zero, binary("divide", binary("subtract", beta, alpha), safe_beta));
  const LazyTensor divisor = select(none, one, binary("subtract", alpha, beta));
  const LazyTensor v = select(compare("EQ", from, i), one, binary("divide", below, divisor));
  // R - tau v (v' R), Q - tau (Q v) v'.
  const LazyTensor along = reduced("add", binary("multiply", v, r), zero, {1}, true);
  const LazyTensor next_r =
      binary("subtract", r, binary("multiply", binary("multiply", tau, v), along));
  const LazyTensor across = transposed(v, {0, 2, 1});
  const LazyTensor into = reduced("add", binary("multiply", q, across), zero, {2}, true);
  const LazyTensor next_q =
      binary("subtract", q, binary("multiply", binary("multiply", tau, into), across));
  return {next_q, next_r};
}

LazyTensors qr(const Call& call, const Types& results) {
  const LazyTensor& a = tensor_of(call, "A");
  if (!is_real(a)) return {};
  if (results[0].numel() == 0 && results[1].numel() == 0)
    return {filled(0, a.dtype(), results[0].sizes), filled(0, a.dtype(), results[1].sizes)};
  const LazyTensor x = flat_batch(a, 2);
  const int64_t m = x.size(1), n = x.size(2), count = std::min(m, n);
  const Dims square = {x.size(0), m, m};
  const LazyTensor unit = cast_to(
      compare("EQ", iota(DType::int64, square, 1), iota(DType::int64, square, 2)), a.dtype());
  const LazyTensors end = counted_loop(count, {unit, x}, {}, reflect);
  const LazyTensor r = triangle(end[1], true);
  const auto sized = [](const LazyTensor& matrix, int64_t axis, const Type& type) {
    const int64_t kept = type.sizes[type.sizes.size() - (axis == 1 ? 2 : 1)];
    return reshaped(sliced(matrix, axis, 0, kept), type.sizes);
  };
  const bool gives_q = results[0].numel() > 0;
  return {gives_q ? sized(end[0], 2, results[0]) : filled(0, a.dtype(), results[0].sizes),
          sized(r, 1, results[1])};
}

}  // namespace

void add_matrix_rows(std::vector<Row>& rows) {
  rows.insert(rows.end(), {{"aten::linalg_cholesky_ex", cholesky},
                           {"aten::linalg_lu_factor_ex", lu},
                           {"aten::linalg_qr", qr},
                           {"composit::permutation", permutation},
                           {"composit::solve_triangular", solve_triangular}});
}

}  // namespace composit::stablehlo
