// Operators that onnxruntime fuses others to: activations with their bias, norms with what is added
// before, products with factors. Meanings are those of its ContribOperators.md.
#include <cmath>

#include "composit/interchange/onnx_read/rows.h"
#include "composit/ir/error.h"

namespace composit::onnx_read {
namespace {

LazyTensor gelu(const LazyTensor& x, const char* approximate) {
  return op("aten::gelu", {x, approximate});
}

LazyTensors exact_gelu(const OperatorCall& call) { return {gelu(call.operand(0), "none")}; }
LazyTensors bias_gelu(const OperatorCall& call) {
  return {gelu(call.operand(0) + call.operand(1), "none")};
}
LazyTensors fast_gelu(const OperatorCall& call) {
  const LazyTensor &x = call.operand(0), bias = call.optional(1);
  return {gelu(bias ? x + bias : x, "tanh")};
}
LazyTensors quick_gelu(const OperatorCall& call) {
  const LazyTensor& x = call.operand(0);
  return {x * sigmoid(x * Number(call.real("alpha", 1.702F)))};
}

// What the norms of sums normalize: input + skip + bias.
LazyTensor skipped(const OperatorCall& call, size_t bias) {
  const LazyTensor &x = call.operand(0), &skip = call.operand(1);
  if (x.rank() != 2 && x.rank() != 3) call.refuse("expected tokens, with or without a batch");
  if (broadcast(x.sizes(), skip.sizes()) != x.sizes())
    call.refuse("what is skipped does not broadcast to its input");
  const LazyTensor sums = x + skip;
  return call.optional(bias) ? sums + call.operand(bias) : sums;
}

LazyTensors skip_layer_norm(const OperatorCall& call) {
  const LazyTensor x = skipped(call, 4), beta = call.optional(3);
  const double eps = call.real("epsilon", 1e-12F);
  const LazyTensor wide = is_half(x.dtype()) ? cast(x, DType::float32) : x;
  const LazyTensor mu = mean(wide, {-1}, true);
  const LazyTensor inverse = rsqrt(mean(square(wide - mu), {-1}, true) + Number(eps));
  const LazyTensor& gamma = call.operand(2);
  if (!call.wants(1) && !call.wants(2))
    return {op("aten::layer_norm",
               {x, sizes_from(x, static_cast<size_t>(x.rank() - 1)), gamma, beta, eps, false}),
            {},
            {},
            x};
  LazyTensor y = cast((wide - mu) * inverse, x.dtype()) * gamma;
  if (beta) y = y + beta;
  return {y, mu, inverse, x};
}

// Root of the mean square of the last axis.
struct Normalized {
  LazyTensor value, inverse;
};
Normalized rms_normalized(const LazyTensor& x, const LazyTensor& scale, double eps) {
  const LazyTensor wide = is_half(x.dtype()) ? cast(x, DType::float32) : x;
  const LazyTensor inverse = rsqrt(mean(square(wide), {-1}, true) + Number(eps));
  return {cast(wide * inverse * cast(scale, wide.dtype()), x.dtype()), inverse};
}

LazyTensors skip_rms_norm(const OperatorCall& call) {
  const LazyTensor x = skipped(call, 3);
  const Normalized y = rms_normalized(x, call.operand(2), call.real("epsilon", 1e-12F));
  return {y.value, {}, y.inverse, x};
}

LazyTensors fused_matmul(const OperatorCall& call) {
  const auto side = [&](size_t index, const char* turned, const char* batch) {
    const LazyTensor& x = call.operand(index);
    if (call.flag(batch)) call.refuse(std::string(batch) + ": expected 0");
    if (!call.flag(turned) || x.rank() < 2) return x;
    return transpose(x, x.rank() - 2, x.rank() - 1);
  };
  const LazyTensor products =
      matmul(side(0, "transA", "transBatchA"), side(1, "transB", "transBatchB"));
  const double alpha = call.real("alpha", 1);
  return {alpha == 1 ? products : products * Number(alpha)};
}

}  // namespace

void add_microsoft_fused_rows(std::vector<Row>& rows) {
  rows.insert(rows.end(), {{"BiasGelu", bias_gelu},
                           {"FastGelu", fast_gelu},
                           {"FusedMatMul", fused_matmul},
                           {"Gelu", exact_gelu},
                           {"QuickGelu", quick_gelu},
                           {"SkipLayerNormalization", skip_layer_norm},
                           {"SkipSimplifiedLayerNormalization", skip_rms_norm}});
}

}  // namespace composit::onnx_read
