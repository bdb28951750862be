// Factors of matrices that StableHLO has operators for; IREE has no kernels for them.
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

}  // namespace

void add_matrix_rows(std::vector<Row>& rows) {
  rows.insert(rows.end(), {{"aten::linalg_cholesky_ex", cholesky},
                           {"composit::solve_triangular", solve_triangular}});
}

}  // namespace composit::stablehlo
