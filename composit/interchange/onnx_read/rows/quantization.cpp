#include <algorithm>

#include "composit/interchange/onnx_read/windows.h"
#include "composit/ir/error.h"
#include "composit/ops/integer_limits.h"

namespace composit::onnx_read {
namespace {

IntegerLimits bounds_of(DType dtype) {
  const auto limits = integer_limits(dtype);
  if (limits && dtype != DType::int32) return *limits;
  throw UserError("quantized numbers of " + std::string(name(dtype)) + " are not read");
}

LazyTensor saturated(const LazyTensor& x, DType dtype) {
  const IntegerLimits bounds = bounds_of(dtype);
  const auto real = [](int64_t number) { return Scalar(static_cast<double>(number)); };
  return cast(op("aten::clamp", {x, real(bounds.low), real(bounds.high)}), dtype);
}

// A scale, or a zero point: one number, one per index of an axis, or one per block of an axis.
LazyTensor spread_over(const LazyTensor& x, const LazyTensor& list, int64_t given, int64_t block) {
  if (list.numel() == 1) return reshape(list, {});
  const int64_t axis = axis_of_rank(given, x.rank());
  if (block > 0) {
    const LazyTensor repeated = op("aten::repeat_interleave.self_int", {list, block, axis});
    return slice(repeated, axis, 0, x.size(axis));
  }
  if (list.rank() != 1 || list.numel() != x.size(axis))
    throw UserError("expected one scale, or one per index of the axis");
  Ints sizes(static_cast<size_t>(x.rank()), 1);
  sizes[static_cast<size_t>(axis)] = -1;
  return reshape(list, sizes);
}

int64_t block_of(const OperatorCall& call, const LazyTensor& x) {
  const int64_t block = call.integer("block_size", 0);
  if (block < 0 || block > std::max<int64_t>(1, x.numel()))
    call.refuse("block_size is out of range");
  return block;
}

LazyTensors quantize(const OperatorCall& call) {
  const LazyTensor &x = call.operand(0), &scale = call.operand(1), zero = call.optional(2);
  const int64_t axis = call.integer("axis", 1), block = block_of(call, x);
  call.pass_over({"saturate", "output_dtype"});
  const DType dtype = zero ? zero.dtype() : call.dtype("output_dtype", DType::uint8);
  DType precision = call.integer("precision", 0) != 0 ? call.dtype("precision") : scale.dtype();
  if (is_half(precision)) precision = DType::float32;
  LazyTensor y =
      op("aten::round", {cast(x, precision) / cast(spread_over(x, scale, axis, block), precision)});
  if (zero) y = y + cast(spread_over(x, zero, axis, block), precision);
  return {saturated(y, dtype)};
}

LazyTensors dequantize(const OperatorCall& call) {
  const LazyTensor &x = call.operand(0), &scale = call.operand(1), zero = call.optional(2);
  const int64_t axis = call.integer("axis", 1), block = block_of(call, x);
  if (x.dtype() != DType::int32) static_cast<void>(bounds_of(x.dtype()));
  LazyTensor y = cast(x, DType::int32);
  if (zero) y = y - cast(spread_over(x, zero, axis, block), DType::int32);
  DType precision = scale.dtype();
  if (is_half(precision)) precision = DType::float32;
  y = cast(y, precision) * cast(spread_over(x, scale, axis, block), precision);
  return {
      cast(y, call.integer("output_dtype", 0) != 0 ? call.dtype("output_dtype") : scale.dtype())};
}

LazyTensors dynamic_quantize(const OperatorCall& call) {
  const LazyTensor& x = call.operand(0);
  if (x.dtype() != DType::float32) call.refuse("expected float32");
  const LazyTensor zero = number_like(0, x.dtype());
  const LazyTensor low = minimum(-amax(-x), zero), high = maximum(amax(x), zero);
  const LazyTensor scale = (high - low) / Number(255.0);
  const LazyTensor point = saturated(op("aten::round", {-low / scale}), DType::uint8);
  const LazyTensor y = op("aten::round", {x / scale}) + cast(point, x.dtype());
  return {saturated(y, DType::uint8), scale, point};
}

// Numbers less their zero point, in float64, which counts all sums of them.
LazyTensor centered(const LazyTensor& x, const LazyTensor& zero) {
  static_cast<void>(bounds_of(x.dtype()));
  const LazyTensor wide = cast(x, DType::float64);
  return zero ? wide - cast(zero, DType::float64) : wide;
}

// Of the left matrix a zero point may belong to a row, of the right one to a column.
LazyTensor by_row(const LazyTensor& list) {
  return list && list.rank() == 1 && list.numel() > 1 ? unsqueeze(list, 1) : list;
}

LazyTensors matmul_integer(const OperatorCall& call) {
  const LazyTensor a = centered(call.operand(0), by_row(call.optional(2)));
  const LazyTensor b = centered(call.operand(1), call.optional(3));
  return {cast(matmul(a, b), DType::int32)};
}

// round(sum * scale) + zero
LazyTensor requantized(const LazyTensor& sums, const LazyTensor& scale, const LazyTensor& zero) {
  const LazyTensor scaled = cast(sums, DType::float32) * cast(scale, DType::float32);
  return saturated(op("aten::round", {scaled}) + cast(zero, DType::float32), zero.dtype());
}

LazyTensors qlinear_matmul(const OperatorCall& call) {
  const LazyTensor a = centered(call.operand(0), by_row(call.operand(2)));
  const LazyTensor b = centered(call.operand(3), call.operand(5));
  const auto scale = [&](size_t index) { return cast(call.operand(index), DType::float32); };
  return {requantized(matmul(a, b), by_row(scale(1)) * scale(4) / scale(6), call.operand(7))};
}

LazyTensor convolved(const OperatorCall& call, const LazyTensor& x, const LazyTensor& weight,
                     const LazyTensor& bias) {
  const Windows windows = windows_of(call, x, sizes_from(weight, 2));
  const Ints none(windows.axes(), 0);
  return op("aten::convolution", {padded(x, windows, Scalar(0.0)), weight, bias, windows.strides,
                                  none, windows.dilations, false, none, call.integer("group", 1)});
}

// A number per channel of the result, beside its axes.
LazyTensor beside_channel(const LazyTensor& list, int64_t rank, size_t axis) {
  if (!list || list.numel() == 1) return list ? reshape(list, {}) : list;
  Ints sizes(static_cast<size_t>(rank), 1);
  sizes[axis] = -1;
  return reshape(list, sizes);
}

LazyTensors conv_integer(const OperatorCall& call) {
  const LazyTensor& weight = call.operand(1);
  const LazyTensor x =
      centered(call.operand(0), beside_channel(call.optional(2), weight.rank(), 0));
  const LazyTensor w = centered(weight, beside_channel(call.optional(3), weight.rank(), 0));
  return {cast(convolved(call, x, w, {}), DType::int32)};
}

LazyTensors qlinear_conv(const OperatorCall& call) {
  const LazyTensor& weight = call.operand(3);
  const int64_t rank = weight.rank();
  const LazyTensor x = centered(call.operand(0), beside_channel(call.operand(2), rank, 0));
  const LazyTensor w = centered(weight, beside_channel(call.operand(5), rank, 0));
  const LazyTensor bias = call.optional(8) ? cast(call.operand(8), DType::float64) : LazyTensor();
  const auto scale = [&](size_t index) {
    return beside_channel(cast(call.operand(index), DType::float32), rank, 1);
  };
  return {requantized(convolved(call, x, w, bias), scale(1) * scale(4) / scale(6),
                      reshape(call.operand(7), {}))};
}

}  // namespace

void add_quantization_rows(std::vector<Row>& rows) {
  rows.insert(rows.end(), {{"ConvInteger", conv_integer},
                           {"DequantizeLinear", dequantize},
                           {"DynamicQuantizeLinear", dynamic_quantize},
                           {"MatMulInteger", matmul_integer},
                           {"QLinearConv", qlinear_conv},
                           {"QLinearMatMul", qlinear_matmul},
                           {"QuantizeLinear", quantize}});
}

}  // namespace composit::onnx_read
