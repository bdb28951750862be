// onnxruntime's operators on numbers of few bits: weights in blocks, inputs that are quantized when
// they come, element by element on integers.
#include <algorithm>

#include "composit/interchange/onnx_read/rows.h"
#include "composit/ir/error.h"

namespace composit::onnx_read {
namespace {

// ---- weights of 4 and 8 bits in blocks ----------------------------------------------------------

struct Blocks {
  int64_t columns, terms, bits, size, count;  // `size` terms each, the last filled up
};

Blocks blocks_of(const OperatorCall& call) {
  Blocks blocks{.columns = call.integer("N"),
                .terms = call.integer("K"),
                .bits = call.integer("bits", 4),
                .size = call.integer("block_size"),
                .count = 0};
  if (blocks.bits != 4 && blocks.bits != 8) call.refuse("bits: 4 and 8 are read");
  if (blocks.columns < 1 || blocks.terms < 1 || blocks.size < 2 || blocks.size > (1 << 20) ||
      blocks.size % 2 != 0)
    call.refuse("K, N or block_size is out of range");
  blocks.count = (blocks.terms - 1) / blocks.size + 1;
  return blocks;
}

// Integers of 0 and more, uint8 [rows, count], of bytes in which those of 4 bits lie two by two.
LazyTensor codes_of(const OperatorCall& call, const LazyTensor& bytes, int64_t rows, int64_t count,
                    int64_t bits) {
  const int64_t width = bits == 8 ? count : (count + 1) / 2;
  if (bytes.dtype() != DType::uint8 || bytes.numel() != product_of({rows, width}))
    call.refuse("expected " + std::to_string(rows) + " rows of " + std::to_string(width) +
                " bytes, received " + std::string(name(bytes.dtype())) + " " + str(bytes.sizes()));
  const LazyTensor matrix = reshape(bytes, {rows, width});
  if (bits == 8) return matrix;
  return slice(op("composit::unpack_uint4", {matrix}), 1, 0, count);
}

LazyTensors matmul_nbits(const OperatorCall& call) {
  const Blocks blocks = blocks_of(call);
  call.pass_over({"accuracy_level"});  // how exact a kernel may be
  const LazyTensor &x = call.operand(0), &scales = call.operand(2), zeros = call.optional(3);
  if (call.optional(4)) call.refuse("an order of groups (g_idx) is not read");
  if (x.rank() < 1 || x.size(-1) != blocks.terms) call.refuse("its input has no K columns");
  if (scales.numel() != product_of({blocks.columns, blocks.count}))
    call.refuse("expected a scale per block");
  const Ints each = {blocks.columns, blocks.count, 1};
  const LazyTensor codes =
      codes_of(call, call.operand(1), blocks.columns, blocks.count * blocks.size, blocks.bits);
  LazyTensor zero = number_like(blocks.bits == 4 ? 8 : 128, DType::float32);
  if (zeros && zeros.dtype() == DType::uint8)
    zero = reshape(codes_of(call, zeros, blocks.columns, blocks.count, blocks.bits), each);
  else if (zeros)
    zero = reshape(zeros, each);
  const LazyTensor moved =
      cast(reshape(codes, {blocks.columns, blocks.count, blocks.size}), DType::float32) -
      cast(zero, DType::float32);
  const LazyTensor numbers = cast(moved * cast(reshape(scales, each), DType::float32), x.dtype());
  const LazyTensor weight =
      slice(reshape(numbers, {blocks.columns, blocks.count * blocks.size}), 1, 0, blocks.terms);
  return {op("aten::linear", {x, weight, call.optional(5)})};
}

// ---- products of integers -----------------------------------------------------------------------

LazyTensor wide(const LazyTensor& x, const LazyTensor& zero) {
  const LazyTensor numbers = cast(x, DType::float64);
  return zero ? numbers - cast(zero, DType::float64) : numbers;
}

// Sums of integers with the scales of both sides.
LazyTensor scaled(const LazyTensor& a, const LazyTensor& b, const LazyTensor& scale,
                  const LazyTensor& bias) {
  const LazyTensor sums = cast(cast(matmul(a, b), DType::int32), DType::float32) * scale;
  return bias ? sums + bias : sums;
}

LazyTensors matmul_integer_to_float(const OperatorCall& call) {
  const LazyTensor a = wide(call.operand(0), call.optional(4)),
                   b = wide(call.operand(1), call.optional(5));
  return {scaled(a, b, call.operand(2) * call.operand(3), call.optional(6))};
}

LazyTensors dynamic_quantize_matmul(const OperatorCall& call) {
  const LazyTensor& x = call.operand(0);
  if (x.dtype() != DType::float32) call.refuse("expected float32");
  const LazyTensor none = number_like(0, DType::float32);
  const LazyTensor low = minimum(-amax(-x), none), high = maximum(amax(x), none);
  const LazyTensor scale = (high - low) / Number(255.0);
  const auto clamped = [](const LazyTensor& value) {
    return op("aten::clamp", {value, Scalar(0.0), Scalar(255.0)});
  };
  const LazyTensor point = clamped(op("aten::round", {-low / scale}));
  const LazyTensor a = clamped(op("aten::round", {x / scale}) + point) - point;
  return {scaled(cast(a, DType::float64), wide(call.operand(1), call.optional(3)),
                 scale * call.operand(2), call.optional(4))};
}

// ---- element by element -------------------------------------------------------------------------

// (x - zero) * scale of three operands in a row.
LazyTensor real_of(const OperatorCall& call, size_t first) {
  const LazyTensor& x = call.operand(first);
  if (x.dtype() != DType::uint8 && x.dtype() != DType::int8) call.refuse("expected bytes");
  const LazyTensor zero = call.optional(first + 2);
  LazyTensor numbers = cast(x, DType::float32);
  if (zero) numbers = numbers - cast(zero, DType::float32);
  return numbers * call.operand(first + 1);
}
LazyTensor bytes_of(const OperatorCall& call, const LazyTensor& x, size_t scale, DType dtype) {
  const LazyTensor zero = call.optional(scale + 1);
  LazyTensor numbers = op("aten::round", {x / call.operand(scale)});
  if (zero) numbers = numbers + cast(zero, DType::float32);
  const bool has_sign = dtype == DType::int8;
  return cast(op("aten::clamp",
                 {numbers, Scalar(has_sign ? -128.0 : 0.0), Scalar(has_sign ? 127.0 : 255.0)}),
              dtype);
}

LazyTensors qlinear_add(const OperatorCall& call) {
  return {bytes_of(call, real_of(call, 0) + real_of(call, 3), 6, call.operand(0).dtype())};
}
LazyTensors qlinear_mul(const OperatorCall& call) {
  return {bytes_of(call, real_of(call, 0) * real_of(call, 3), 6, call.operand(0).dtype())};
}
LazyTensors qlinear_sigmoid(const OperatorCall& call) {
  return {bytes_of(call, sigmoid(real_of(call, 0)), 3, call.operand(0).dtype())};
}
LazyTensors qlinear_leaky_relu(const OperatorCall& call) {
  const LazyTensor y =
      op("aten::leaky_relu", {real_of(call, 0), Scalar(call.real("alpha", 0.01F))});
  return {bytes_of(call, y, 3, call.operand(0).dtype())};
}
LazyTensors qlinear_global_average_pool(const OperatorCall& call) {
  if (call.flag("channels_last")) call.refuse("channels_last: expected 0");
  const LazyTensor x = real_of(call, 0);
  if (x.rank() < 3) call.refuse("expected a batch, channels and axes of planes");
  Ints axes;
  for (int64_t axis = 2; axis < x.rank(); ++axis) axes.push_back(axis);
  return {bytes_of(call, mean(x, axes, true), 3, call.operand(0).dtype())};
}
LazyTensors qlinear_concat(const OperatorCall& call) {
  if (call.size() < 5 || (call.size() - 2) % 3 != 0) call.refuse("expected operands by three");
  LazyTensors parts;
  for (size_t first = 2; first < call.size(); first += 3) parts.push_back(real_of(call, first));
  const int64_t axis = call.axis("axis", {}, parts[0]);
  return {bytes_of(call, cat(parts, axis), 0, call.operand(2).dtype())};
}

}  // namespace

void add_microsoft_quantized_rows(std::vector<Row>& rows) {
  const Row* const quantize = find_row("", "QuantizeLinear");
  const Row* const dequantize = find_row("", "DequantizeLinear");
  rows.insert(rows.end(), {{"DequantizeLinear", dequantize->rule},
                           {"DynamicQuantizeMatMul", dynamic_quantize_matmul},
                           {"MatMulIntegerToFloat", matmul_integer_to_float},
                           {"MatMulNBits", matmul_nbits},
                           {"QLinearAdd", qlinear_add},
                           {"QLinearConcat", qlinear_concat},
                           {"QLinearGlobalAveragePool", qlinear_global_average_pool},
                           {"QLinearLeakyRelu", qlinear_leaky_relu},
                           {"QLinearMul", qlinear_mul},
                           {"QLinearSigmoid", qlinear_sigmoid},
                           {"QuantizeLinear", quantize->rule}});
}

}  // namespace composit::onnx_read
