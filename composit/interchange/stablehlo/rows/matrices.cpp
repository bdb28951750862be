// Factors of matrices. IREE has no kernels for them.
#include <numeric>

#include "composit/interchange/stablehlo/rows.h"

namespace composit::stablehlo {
namespace {

using Types = std::vector<Type>;

bool is_supported(const LazyTensor& x) {
  return x.dtype() == DType::float32 || x.dtype() == DType::float64;
}

// Rows from which a triangle is left: those of the lower one, zeros elsewhere.
LazyTensor triangle(const LazyTensor& x, bool upper) {
  const int64_t last = x.rank() - 1;
  const LazyTensor row = iota(DType::int64, x.sizes(), last - 1);
  const LazyTensor column = iota(DType::int64, x.sizes(), last);
  return where(compare(upper ? "LE" : "GE", row, column), x, like(0, x));
}

// What is not positive definite gives no numbers there, and an error in torch.
LazyTensors cholesky(const Call& call, const Types& results) {
  const LazyTensor& x = tensor_of(call, "self");
  if (!is_supported(x)) return {};
  if (x.numel() == 0) return {x, filled(0, results[1].dtype, results[1].sizes)};
  const bool upper = bool_of(call, "upper");
  const LazyTensor factor = triangle(stablehlo::call("cholesky", {x}, {attribute("lower", !upper)},
                                                     tensor_type(x.dtype(), x.sizes())),
                                     upper);
  std::vector<int64_t> axes(x.sizes().size());
  std::iota(axes.begin(), axes.end(), 0);
  const LazyTensor wrong = reduced("or", is_nan(factor), number(0, DType::bool_), axes, false);
  return {checked(factor, unary("not", wrong), "matrices are positive definite"),
          filled(0, results[1].dtype, results[1].sizes)};
}

LazyTensors solve_triangular(const Call& call, const Types& results) {
  const LazyTensor &a = tensor_of(call, "A"), &b = tensor_of(call, "B");
  if (!is_supported(a)) return {};
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
