#include "composit/nn/activations.h"

namespace composit::nn {

Tensor gelu(const Tensor& x, const GeluOptions& options) {
  return apply_one("aten::gelu", {x, options.approximate});
}
Tensor silu(const Tensor& x) { return apply_one("aten::silu", {x}); }
Tensor mish(const Tensor& x) { return apply_one("aten::mish", {x}); }
Tensor leaky_relu(const Tensor& x, double negative_slope) {
  return apply_one("aten::leaky_relu", {x, negative_slope});
}
Tensor prelu(const Tensor& x, const Tensor& weight) {
  return apply_one("aten::prelu", {x, weight});
}
Tensor elu(const Tensor& x, double alpha) { return apply_one("aten::elu", {x, alpha}); }
Tensor selu(const Tensor& x) { return apply_one("aten::selu", {x}); }
Tensor celu(const Tensor& x, double alpha) { return apply_one("aten::celu", {x, alpha}); }
Tensor relu6(const Tensor& x) { return apply_one("aten::relu6", {x}); }
Tensor hardtanh(const Tensor& x, double min_val, double max_val) {
  return apply_one("aten::hardtanh", {x, min_val, max_val});
}
Tensor hardsigmoid(const Tensor& x) { return apply_one("aten::hardsigmoid", {x}); }
Tensor hardswish(const Tensor& x) { return apply_one("aten::hardswish", {x}); }
Tensor hardshrink(const Tensor& x, double lambd) {
  return apply_one("aten::hardshrink", {x, lambd});
}
Tensor softshrink(const Tensor& x, double lambd) {
  return apply_one("aten::softshrink", {x, lambd});
}
Tensor tanhshrink(const Tensor& x) { return x - tanh(x); }
Tensor softsign(const Tensor& x) { return x / (abs(x) + 1); }
Tensor softplus(const Tensor& x, double beta, double threshold) {
  return apply_one("aten::softplus", {x, beta, threshold});
}
Tensor logsigmoid(const Tensor& x) { return apply_one("aten::log_sigmoid", {x}); }
Tensor threshold(const Tensor& x, double threshold, double value) {
  return apply_one("aten::threshold", {x, threshold, value});
}
Tensor glu(const Tensor& x, int64_t dim) { return apply_one("aten::glu", {x, dim}); }
Tensor softmin(const Tensor& x, int64_t dim) { return softmax(-x, dim); }
Tensor log_softmax(const Tensor& x, int64_t dim) {
  return apply_one("aten::_log_softmax", {x, dim, false});
}

}  // namespace composit::nn
