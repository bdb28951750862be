#include "composit/interchange/onnx/rows.h"

namespace composit::onnx {
namespace {

// Padding before and behind, the same on both sides.
List both_sides(const std::vector<int64_t>& padding) {
  std::vector<int64_t> pads = padding;
  pads.insert(pads.end(), padding.begin(), padding.end());
  return int_list(pads);
}

LazyTensors convolution(const Call& call, const std::vector<Type>& results) {
  const LazyTensor &x = tensor_of(call, "input"), &weight = tensor_of(call, "weight");
  if (x.rank() != weight.rank() || !is_floating_point(x.dtype())) return {};  // without a batch
  const bool transposed = bool_of(call, "transposed");
  Attributes attributes = {attribute("strides", int_list(ints_of(call, "stride"))),
                           attribute("pads", both_sides(ints_of(call, "padding"))),
                           attribute("dilations", int_list(ints_of(call, "dilation"))),
                           attribute("group", int_of(call, "groups"))};
  if (transposed)
    attributes.push_back(attribute("output_padding", int_list(ints_of(call, "output_padding"))));
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
