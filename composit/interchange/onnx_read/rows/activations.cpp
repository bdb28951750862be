#include <algorithm>

#include "composit/interchange/onnx_read/rows.h"
#include "composit/ir/error.h"

namespace composit::onnx_read {
namespace {

template <const char* name>
LazyTensors activation(const OperatorCall& call) {
  return {op(name, {call.operand(0)})};
}

constexpr char kRelu[] = "aten::relu", kSigmoid[] = "aten::sigmoid", kMish[] = "aten::mish",
               kHardSwish[] = "aten::hardswish", kSoftmax[] = "aten::softmax.int",
               kLogSoftmax[] = "aten::log_softmax.int";

Scalar scalar(double value) { return Scalar(value); }

LazyTensors gelu(const OperatorCall& call) {
  const std::string approximate = call.text("approximate", "none");
  expect_one_of("approximate", approximate, {"none", "tanh"});
  return {op("aten::gelu", {call.operand(0), approximate})};
}

LazyTensors swish(const OperatorCall& call) {
  const LazyTensor& x = call.operand(0);
  const double alpha = call.real("alpha", 1);
  if (alpha == 1) return {op("aten::silu", {x})};
  return {x * sigmoid(x * Number(alpha))};
}

LazyTensors elu(const OperatorCall& call) {
  return {op("aten::elu", {call.operand(0), scalar(call.real("alpha", 1))})};
}

LazyTensors celu(const OperatorCall& call) {
  return {op("aten::celu", {call.operand(0), scalar(call.real("alpha", 1))})};
}

// The attributes' defaults are those of float32 numbers.
LazyTensors selu(const OperatorCall& call) {
  const double alpha = call.real("alpha", 1.67326319217681884765625);
  const double gamma = call.real("gamma", 1.05070102214813232421875);
  return {op("aten::elu", {call.operand(0), scalar(alpha), scalar(gamma)})};
}

LazyTensors leaky_relu(const OperatorCall& call) {
  return {op("aten::leaky_relu", {call.operand(0), scalar(call.real("alpha", 0.01))})};
}

// The slope broadcasts to x, which torch's prelu does for channels only.
LazyTensors prelu(const OperatorCall& call) {
  const LazyTensor& x = call.operand(0);
  LazyTensor slope = call.operand(1);
  if (call.version() < 7 && slope.rank() == 1 && slope.numel() > 1) {  // of channels
    Ints sizes(static_cast<size_t>(std::max<int64_t>(x.rank() - 1, 1)), 1);
    sizes[0] = slope.numel();
    slope = reshape(slope, sizes);
  }
  if (broadcast(x.sizes(), slope.sizes()) != x.sizes())
    call.refuse("the slope does not broadcast to the operand");
  return {where(x < 0, slope * x, x)};
}

LazyTensors hard_sigmoid(const OperatorCall& call) {
  const LazyTensor line =
      call.operand(0) * Number(call.real("alpha", 0.2F)) + Number(call.real("beta", 0.5));
  return {op("aten::clamp", {line, scalar(0), scalar(1)})};
}

LazyTensors softplus(const OperatorCall& call) {
  // log(1 + exp(x)) without a threshold: max(x, 0) + log1p(exp(-|x|)).
  const LazyTensor& x = call.operand(0);
  return {relu(x) + log1p(exp(-abs(x)))};
}

LazyTensors softsign(const OperatorCall& call) {
  const LazyTensor& x = call.operand(0);
  return {x / (abs(x) + 1)};
}

LazyTensors shrink(const OperatorCall& call) {
  const LazyTensor& x = call.operand(0);
  const double lambda = call.real("lambd", 0.5), bias = call.real("bias", 0);
  const LazyTensor wide = is_floating_point(x.dtype()) ? x : cast(x, DType::float64);
  const LazyTensor zero = zeros_like(wide);
  const LazyTensor low = where(wide < Number(-lambda), wide + Number(bias), zero);
  return {cast(where(wide > Number(lambda), wide - Number(bias), low), x.dtype())};
}

LazyTensors thresholded_relu(const OperatorCall& call) {
  const LazyTensor& x = call.operand(0);
  return {where(x > Number(call.real("alpha", 1)), x, zeros_like(x))};
}

// Before version 13 the operand is a matrix of the axes before `axis` and those from it on.
template <class Rule>
LazyTensor along(const OperatorCall& call, const LazyTensor& x, const Rule& rule) {
  if (call.version() >= 13) return rule(x, call.axis("axis", -1, x));
  const int64_t given = call.integer("axis", 1);
  const int64_t axis = given == x.rank() ? given : axis_of_rank(given, x.rank());
  if (axis == x.rank() - 1) return rule(x, axis);
  const LazyTensor matrix = joined_axes(joined_axes(x, axis, x.rank()), 0, axis);
  return reshape(rule(matrix, 1), x.sizes());
}

template <const char* name>
LazyTensors softmax_row(const OperatorCall& call) {
  return {along(call, call.operand(0), [](const LazyTensor& x, int64_t axis) {
    return op(name, {x, axis});
  })};
}

// 1 at the first of the largest elements.
LazyTensors hardmax(const OperatorCall& call) {
  return {along(call, call.operand(0), [](const LazyTensor& x, int64_t axis) {
    const LazyTensor place = op("aten::argmax", {x, axis, true});
    Ints sizes(static_cast<size_t>(x.rank()), 1);
    sizes[static_cast<size_t>(axis)] = x.size(axis);
    return cast(eq(reshape(arange(x.size(axis)), sizes), place), x.dtype());
  })};
}

}  // namespace

void add_activation_rows(std::vector<Row>& rows) {
  rows.insert(rows.end(), {{"Celu", celu},
                           {"Elu", elu},
                           {"Gelu", gelu},
                           {"HardSigmoid", hard_sigmoid},
                           {"HardSwish", activation<kHardSwish>},
                           {"Hardmax", hardmax},
                           {"LeakyRelu", leaky_relu},
                           {"LogSoftmax", softmax_row<kLogSoftmax>},
                           {"Mish", activation<kMish>},
                           {"PRelu", prelu},
                           {"Relu", activation<kRelu>},
                           {"Selu", selu},
                           {"Shrink", shrink},
                           {"Sigmoid", activation<kSigmoid>},
                           {"Softmax", softmax_row<kSoftmax>},
                           {"Softplus", softplus},
                           {"Softsign", softsign},
                           {"Swish", swish},
                           {"ThresholdedRelu", thresholded_relu}});
}

}  // namespace composit::onnx_read
