#include "composit/interchange/onnx/rows.h"

namespace composit::onnx {
namespace {

LazyTensors convolution(const Call& call, const std::vector<Type>& results) {
  const LazyTensor &x = tensor_of(call, "input"), &weight = tensor_of(call, "weight");
  if (x.rank() != weight.rank() || !is_floating_point(x.dtype())) return {};  // without a batch
  const bool transposed = bool_of(call, "transposed");
  const auto list = [&](std::string_view name) {
    return ints_of(call, name, x.sizes().size() - 2);
  };
  if (transposed) {  // onnxruntime takes less padding behind than a step only
    const std::vector<int64_t> more = list("output_padding"), stride = list("stride");
    for (size_t i = 0; i < more.size(); ++i)
      if (more[i] >= stride[i]) return {};
  }
  std::vector<int64_t> pads = list("padding");  // before, then behind
  const std::vector<int64_t> behind = pads;
  pads.insert(pads.end(), behind.begin(), behind.end());
  Attributes attributes = {attribute("strides", int_list(list("stride"))),
                           attribute("pads", int_list(pads)),
                           attribute("dilations", int_list(list("dilation"))),
                           attribute("group", int_of(call, "groups"))};
  if (transposed)
    attributes.push_back(attribute("output_padding", int_list(list("output_padding"))));
  LazyTensors operands = {x, weight};
  if (const LazyTensor& bias = tensor_of(call, "bias")) operands.push_back(bias);
  return {onnx::call(transposed ? "ConvTranspose" : "Conv", operands, std::move(attributes),
                     results[0])};
}

}  // namespace

void add_convolution_rows(std::vector<Row>& rows) {
  rows.push_back({"aten::convolution", convolution});
}

}  // namespace composit::onnx
