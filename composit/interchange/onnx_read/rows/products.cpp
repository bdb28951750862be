#include <algorithm>
#include <cctype>
#include <cmath>

#include "composit/interchange/onnx_read/rows.h"
#include "composit/ir/error.h"

namespace composit::onnx_read {
namespace {

LazyTensors matmul_row(const OperatorCall& call) {
  if (call.operand(0).dtype() != call.operand(1).dtype())
    call.refuse("its operands differ in dtype");
  return {matmul(call.operand(0), call.operand(1))};
}

// alpha A B + beta C
LazyTensors gemm(const OperatorCall& call) {
  const LazyTensor &x = call.operand(0), &y = call.operand(1);
  const LazyTensor bias = call.optional(2);
  if (x.rank() != 2 || y.rank() != 2) call.refuse("expected matrices");
  if (call.version() < 7) call.pass_over({"broadcast"});
  const double alpha = call.real("alpha", 1), beta = call.real("beta", 1);
  const LazyTensor a = call.flag("transA") ? transpose(x, 0, 1) : x;
  const bool plain = alpha == 1 && (!bias || (beta == 1 && bias.rank() <= 1));
  if (plain && call.flag("transB") && is_floating_point(x.dtype()) &&
      (!bias || (bias.rank() == 1 && bias.numel() == y.size(0))))
    return {op("aten::linear", {a, y, bias})};
  const LazyTensor b = call.flag("transB") ? transpose(y, 0, 1) : y;
  LazyTensor product = mm(a, b);
  const bool whole = !is_floating_point(x.dtype());
  if (whole && (alpha != std::floor(alpha) || beta != std::floor(beta)))
    call.refuse("factors of integers that are no integers");
  const auto factor = [&](double value) {
    return whole ? Number(static_cast<int64_t>(value)) : Number(value);
  };
  if (alpha != 1) product = product * factor(alpha);
  if (!bias || beta == 0) return {product};
  if (broadcast(product.sizes(), bias.sizes()) != product.sizes())
    call.refuse("the third operand does not broadcast to the product");
  return {product + (beta == 1 ? bias : bias * factor(beta))};
}

// torch wants the equation without spaces around its commas only.
LazyTensors einsum_row(const OperatorCall& call) {
  std::string equation = call.text("equation");
  std::erase_if(equation, [](unsigned char c) { return std::isspace(c) != 0; });
  LazyTensors operands;
  for (size_t i = 0; i < call.size(); ++i) operands.push_back(call.operand(i));
  return {op("aten::einsum", {equation, operands})};
}

LazyTensors det(const OperatorCall& call) {
  return {apply("aten::_linalg_det", {call.operand(0)})[0]};
}

}  // namespace

void add_product_rows(std::vector<Row>& rows) {
  rows.insert(rows.end(),
              {{"Det", det}, {"Einsum", einsum_row}, {"Gemm", gemm}, {"MatMul", matmul_row}});
}

}  // namespace composit::onnx_read
