#include "composit/nn/activations.h"

namespace composit::nn {

LazyTensor gelu(const LazyTensor& x, const GeluOptions& options) {
  return apply_one("aten::gelu", {x, options.approximate});
}
LazyTensor silu(const LazyTensor& x) { return apply_one("aten::silu", {x}); }
LazyTensor mish(const LazyTensor& x) { return apply_one("aten::mish", {x}); }
LazyTensor leaky_relu(const LazyTensor& x, double negative_slope) {
  return apply_one("aten::leaky_relu", {x, negative_slope});
}
LazyTensor prelu(const LazyTensor& x, const LazyTensor& weight) {
  return apply_one("aten::prelu", {x, weight});
}
LazyTensor elu(const LazyTensor& x, double alpha) { return apply_one("aten::elu", {x, alpha}); }
LazyTensor selu(const LazyTensor& x) { return apply_one("aten::selu", {x}); }
LazyTensor celu(const LazyTensor& x, double alpha) { return apply_one("aten::celu", {x, alpha}); }
LazyTensor relu6(const LazyTensor& x) { return apply_one("aten::relu6", {x}); }
LazyTensor hardtanh(const LazyTensor& x, double min_val, double max_val) {
  return apply_one("aten::hardtanh", {x, min_val, max_val});
}
LazyTensor hardsigmoid(const LazyTensor& x) { return apply_one("aten::hardsigmoid", {x}); }
LazyTensor hardswish(const LazyTensor& x) { return apply_one("aten::hardswish", {x}); }
LazyTensor hardshrink(const LazyTensor& x, double lambd) {
  return apply_one("aten::hardshrink", {x, lambd});
}
LazyTensor softshrink(const LazyTensor& x, double lambd) {
  return apply_one("aten::softshrink", {x, lambd});
}
LazyTensor tanhshrink(const LazyTensor& x) { return x - tanh(x); }
LazyTensor softsign(const LazyTensor& x) { return x / (abs(x) + 1); }
LazyTensor softplus(const LazyTensor& x, double beta, double threshold) {
  return apply_one("aten::softplus", {x, beta, threshold});
}
LazyTensor logsigmoid(const LazyTensor& x) { return apply_one("aten::log_sigmoid", {x}); }
LazyTensor threshold(const LazyTensor& x, double threshold, double value) {
  return apply_one("aten::threshold", {x, threshold, value});
}
LazyTensor glu(const LazyTensor& x, int64_t dim) { return apply_one("aten::glu", {x, dim}); }
LazyTensor softmin(const LazyTensor& x, int64_t dim) { return softmax(-x, dim); }
LazyTensor log_softmax(const LazyTensor& x, int64_t dim) {
  return apply_one("aten::_log_softmax", {x, dim, false});
}

}  // namespace composit::nn
