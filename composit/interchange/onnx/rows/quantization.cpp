#include <algorithm>

#include "composit/interchange/onnx/rows.h"

namespace composit::onnx {
namespace {

bool is_byte(const LazyTensor& x) { return x.dtype() == DType::int8 || x.dtype() == DType::uint8; }

// Zero points of another dtype than the integers' could be out of its range: the definition has
// them.
bool fits(const LazyTensor& zeros, const LazyTensor& x) {
  return !zeros || zeros.dtype() == x.dtype();
}

LazyTensor dequantized(const LazyTensor& x, const LazyTensor& scales, const LazyTensor& zeros,
                       Attributes attributes, const Type& result) {
  LazyTensors operands{x, scales};
  if (zeros) operands.push_back(zeros);
  return onnx::call("DequantizeLinear", operands, std::move(attributes),
                    tensor_type(result.dtype, result.sizes));
}

LazyTensors dequantize_per_channel(const Call& call, const std::vector<Type>& results) {
  const LazyTensor &x = tensor_of(call, "input"), &scales = tensor_of(call, "scales");
  const LazyTensor& zeros = tensor_of(call, "zero_points");
  if (!is_byte(x) || !fits(zeros, x) || scales.dtype() != DType::float32 ||
      results[0].dtype != DType::float32)
    return {};
  return {dequantized(x, scales, zeros, {attribute("axis", axis_of(call, "axis", x))}, results[0])};
}

// One scale: the integers of a dtype, all of its range.
bool is_whole_range(const Call& call, DType dtype) {
  const int64_t low = int_of(call, "quant_min"), high = int_of(call, "quant_max");
  return dtype == DType::int8 ? low == -128 && high == 127
                              : dtype == DType::uint8 && low == 0 && high == 255;
}
struct OneStep {
  LazyTensor scale, zero;
};
OneStep step_of(const Call& call, DType dtype) {
  return {number(real_of(call, "scale"), DType::float32),
          number(static_cast<double>(int_of(call, "zero_point")), dtype)};
}
// torch multiplies with the inverse of the scale, which rounds once more than ONNX's division: a
// number halfway between two integers may become the other one.
LazyTensors quantize_per_tensor(const Call& call, const std::vector<Type>& results) {
  const LazyTensor& x = tensor_of(call, "input");
  if (x.dtype() != DType::float32 || !is_whole_range(call, results[0].dtype)) return {};
  const OneStep step = step_of(call, results[0].dtype);
  return {onnx::call("QuantizeLinear", {x, step.scale, step.zero}, {}, results[0])};
}
LazyTensors dequantize_per_tensor(const Call& call, const std::vector<Type>& results) {
  const LazyTensor& x = tensor_of(call, "input");
  if (results[0].dtype != DType::float32 || !is_whole_range(call, x.dtype())) return {};
  const OneStep step = step_of(call, x.dtype());
  return {dequantized(x, step.scale, step.zero, {}, results[0])};
}

// Low and high halves side by side, in two's complement. By arithmetic: OpenVINO's BitShift rounds.
// Weights are no bytes from opset 21 on: see lower.cpp.
LazyTensors unpack_int4(const Call& call, const std::vector<Type>& results) {
  const auto integer = [](int value) { return number(value, DType::int32); };
  const LazyTensor bytes = cast_to(tensor_of(call, "bytes"), DType::int32);
  const LazyTensor high = binary("Div", bytes, integer(16));
  const LazyTensor low = binary("Sub", bytes, binary("Mul", high, integer(16)));
  Dims apart = bytes.sizes(), both = bytes.sizes();
  apart.push_back(1);
  both.push_back(2);
  const LazyTensor pairs = onnx::call("Concat", {reshaped(low, apart), reshaped(high, apart)},
                                      {attribute("axis", static_cast<int64_t>(bytes.rank()))},
                                      tensor_type(DType::int32, both));
  const LazyTensor bits = reshaped(pairs, results[0].sizes);
  const LazyTensor turned = binary("Mod", binary("Add", bits, integer(8)), integer(16));
  return {cast_to(binary("Sub", turned, integer(8)), DType::int8)};
}

// ---- blocks, from opset 21 on -------------------------------------------------------------------

LazyTensors dequantize_groups(const Call& call, const std::vector<Type>& results) {
  const LazyTensor &x = tensor_of(call, "input"), &scales = tensor_of(call, "scales");
  const LazyTensor& zeros = tensor_of(call, "zero_points");
  const int64_t group = std::min(int_of(call, "group_size"), x.size(1));
  const Dims sizes{x.size(0), group == 0 ? 0 : x.size(1) / group};
  if (!is_byte(x) || scales.dtype() != DType::float32 || scales.sizes() != sizes ||
      results[0].dtype != DType::float32 || !fits(zeros, x) || (zeros && zeros.sizes() != sizes))
    return {};
  return {dequantized(x, scales, zeros, {attribute("axis", 1), attribute("block_size", group)},
                      results[0])};
}

}  // namespace

void add_quantization_rows(std::vector<Row>& rows) {
  rows.insert(rows.end(), {{"composit::unpack_int4", unpack_int4},
                           {"quantized_decomposed::dequantize_per_channel", dequantize_per_channel},
                           {"quantized_decomposed::dequantize_per_tensor", dequantize_per_tensor},
                           {"quantized_decomposed::quantize_per_tensor", quantize_per_tensor}});
}

void add_block_rows(std::vector<Row>& rows) {
  rows.push_back({"quantized_decomposed::dequantize_per_channel_group", dequantize_groups});
}

}  // namespace composit::onnx
