#include "composit/interchange/onnx/rows.h"

namespace composit::onnx {
namespace {

LazyTensors gelu(const Call& call, const std::vector<Type>& results) {
  // In float64 runtimes compute it with constants of float32.
  if (tensor_of(call, "self").dtype() == DType::float64) return {};
  return {onnx::call("Gelu", {tensor_of(call, "self")},
                     {attribute("approximate", call["approximate"].data().as<std::string>())},
                     results[0])};
}

LazyTensors silu(const Call& call, const std::vector<Type>&) {
  const LazyTensor& x = tensor_of(call, "self");
  if (!is_floating_point(x.dtype())) return {};
  return {binary("Mul", x, unary("Sigmoid", x))};
}

template <const char* op>
LazyTensors of_self(const Call& call, const std::vector<Type>& results) {
  const LazyTensor& x = tensor_of(call, "self");
  if (!is_floating_point(x.dtype())) return {};
  return {onnx::call(op, {x}, {}, results[0])};
}

template <const char* op>
LazyTensors along_axis(const Call& call, const std::vector<Type>& results) {
  const LazyTensor& x = tensor_of(call, "self");
  if (x.rank() == 0 || x.dtype() != results[0].dtype) return {};
  return {onnx::call(op, {x}, {attribute("axis", axis_of(call, "dim", x))}, results[0])};
}

constexpr char kRelu[] = "Relu", kSigmoid[] = "Sigmoid", kSoftmax[] = "Softmax",
               kLogSoftmax[] = "LogSoftmax", kMish[] = "Mish", kHardSwish[] = "HardSwish";

}  // namespace

void add_activation_rows(std::vector<Row>& rows) {
  rows.insert(rows.end(), {{"aten::relu", of_self<kRelu>},
                           {"aten::sigmoid", of_self<kSigmoid>},
                           {"aten::mish", of_self<kMish>},
                           {"aten::hardswish", of_self<kHardSwish>},
                           {"aten::gelu", gelu},
                           {"aten::silu", silu},
                           {"aten::softmax.int", along_axis<kSoftmax>},
                           {"aten::_softmax", along_axis<kSoftmax>},
                           {"aten::log_softmax.int", along_axis<kLogSoftmax>},
                           {"aten::_log_softmax", along_axis<kLogSoftmax>}});
}

}  // namespace composit::onnx
