// Activation functions, element by element but for those with a `dim`.
//
//   LazyTensor h = nn::gelu(x, {.approximate = "tanh"});
//
// Names, arguments and defaults are those of torch.nn.functional; so are dtypes and values.
// UserError for integers, except where torch takes them (relu).
#pragma once

#include <string>

#include "composit/ops/functions.h"

namespace composit::nn {

using composit::relu;
using composit::sigmoid;
using composit::softmax;
using composit::tanh;

struct GeluOptions {
  std::string approximate = "none";  // or "tanh"
};
// The activation of each element.
LazyTensor gelu(const LazyTensor& x, const GeluOptions& options = {});
LazyTensor silu(const LazyTensor& x);  // x * sigmoid(x)
LazyTensor mish(const LazyTensor& x);  // x * tanh(softplus(x))
LazyTensor leaky_relu(
    const LazyTensor& x,
    double negative_slope = 0.01);  // x where it is positive, negative_slope * x elsewhere
// `weight`: one slope, or one per channel (axis 1).
// x where it is positive, weight * x elsewhere.
LazyTensor prelu(const LazyTensor& x, const LazyTensor& weight);
// torch's functions of each element, by their names.
LazyTensor elu(const LazyTensor& x, double alpha = 1);
LazyTensor selu(const LazyTensor& x);
LazyTensor celu(const LazyTensor& x, double alpha = 1);
LazyTensor relu6(const LazyTensor& x);
LazyTensor hardtanh(const LazyTensor& x, double min_val = -1, double max_val = 1);
LazyTensor hardsigmoid(const LazyTensor& x);
LazyTensor hardswish(const LazyTensor& x);
LazyTensor hardshrink(const LazyTensor& x, double lambd = 0.5);
LazyTensor softshrink(const LazyTensor& x, double lambd = 0.5);
LazyTensor tanhshrink(const LazyTensor& x);
LazyTensor softsign(const LazyTensor& x);
LazyTensor softplus(const LazyTensor& x, double beta = 1, double threshold = 20);
LazyTensor logsigmoid(const LazyTensor& x);
LazyTensor threshold(const LazyTensor& x, double threshold, double value);
// The first half along `dim`, times the sigmoid of the second.
LazyTensor glu(const LazyTensor& x, int64_t dim = -1);
// softmax of -x; the logarithm of softmax of x. Both along `dim`.
LazyTensor softmin(const LazyTensor& x, int64_t dim);
LazyTensor log_softmax(const LazyTensor& x, int64_t dim);

}  // namespace composit::nn
