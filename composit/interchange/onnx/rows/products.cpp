#include <algorithm>

#include "composit/interchange/onnx/rows.h"

namespace composit::onnx {
namespace {

bool is_product_dtype(const LazyTensor& x) {
  return is_floating_point(x.dtype()) || x.dtype() == DType::int32 || x.dtype() == DType::int64;
}

LazyTensors product(const LazyTensor& a, const LazyTensor& b, const std::vector<Type>& results) {
  if (!is_product_dtype(a)) return {};
  // Runtimes do not take products over nothing.
  if (a.numel() == 0) return {filled(0, results[0].dtype, results[0].sizes)};
  return {onnx::call("MatMul", {a, b}, {}, results[0])};
}

LazyTensors matmul(const Call& call, const std::vector<Type>& results) {
  return product(tensor_of(call, "self"), tensor_of(call, "other"), results);
}

LazyTensors mm(const Call& call, const std::vector<Type>& results) {
  return product(tensor_of(call, "self"), tensor_of(call, "mat2"), results);
}

LazyTensor gemm(const LazyTensor& a, const LazyTensor& b, const LazyTensor& c, bool transposed,
                double alpha, double beta, const Type& result) {
  Attributes attributes;
  if (transposed) attributes.push_back(attribute("transB", 1));
  if (alpha != 1) attributes.push_back(attribute("alpha", alpha));
  if (beta != 1) attributes.push_back(attribute("beta", beta));
  LazyTensors operands = {a, b};
  if (c) operands.push_back(c);
  return onnx::call("Gemm", operands, std::move(attributes), result);
}

LazyTensors addmm(const Call& call, const std::vector<Type>& results) {
  const LazyTensor& a = tensor_of(call, "mat1");
  // A product over nothing leaves `beta` out in runtimes.
  if (!is_floating_point(a.dtype()) || a.numel() == 0) return {};
  if (!fits_attribute(real_of(call, "alpha"), a) || !fits_attribute(real_of(call, "beta"), a))
    return {};
  return {gemm(a, tensor_of(call, "mat2"), tensor_of(call, "self"), false, real_of(call, "alpha"),
               real_of(call, "beta"), results[0])};
}

LazyTensors linear(const Call& call, const std::vector<Type>& results) {
  const LazyTensor &x = tensor_of(call, "input"), &weight = tensor_of(call, "weight");
  const LazyTensor& bias = tensor_of(call, "bias");
  if (!is_floating_point(x.dtype()) || weight.rank() != 2 || x.rank() == 0) return {};
  if (x.numel() == 0) return {};
  if (x.rank() == 2) return {gemm(x, weight, bias, true, 1, 1, results[0])};
  const LazyTensor y = onnx::call("MatMul", {x, transposed(weight, {1, 0})}, {}, results[0]);
  return {bias ? binary("Add", y, bias) : y};
}

LazyTensors einsum(const Call& call, const std::vector<Type>& results) {
  const LazyTensors& tensors = call["tensors"].tensors();
  if (!std::all_of(tensors.begin(), tensors.end(), is_product_dtype)) return {};
  if (std::any_of(tensors.begin(), tensors.end(),
                  [](const LazyTensor& x) { return x.numel() == 0; }))
    return {filled(0, results[0].dtype, results[0].sizes)};
  return {onnx::call("Einsum", tensors,
                     {attribute("equation", call["equation"].data().as<std::string>())},
                     results[0])};
}

}  // namespace

void add_product_rows(std::vector<Row>& rows) {
  rows.insert(rows.end(), {{"aten::matmul", matmul},
                           {"aten::mm", mm},
                           {"aten::bmm", mm},
                           {"aten::addmm", addmm},
                           {"aten::linear", linear},
                           {"aten::einsum", einsum}});
}

}  // namespace composit::onnx
