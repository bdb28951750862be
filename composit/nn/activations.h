// Activation functions, element by element but for those with a `dim`.
//
//   Tensor h = nn::gelu(x, {.approximate = "tanh"});
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
// Of each element.
Tensor gelu(const Tensor& x, const GeluOptions& options = {});
Tensor silu(const Tensor& x);  // x * sigmoid(x)
Tensor mish(const Tensor& x);  // x * tanh(softplus(x))
Tensor leaky_relu(
    const Tensor& x,
    double negative_slope = 0.01);  // x where it is positive, negative_slope * x elsewhere
// `weight`: one slope, or one per channel (axis 1).
// x where it is positive, weight * x elsewhere.
Tensor prelu(const Tensor& x, const Tensor& weight);
// torch's functions of each element, by their names.
Tensor elu(const Tensor& x, double alpha = 1);
Tensor selu(const Tensor& x);
Tensor celu(const Tensor& x, double alpha = 1);
Tensor relu6(const Tensor& x);
Tensor hardtanh(const Tensor& x, double min_val = -1, double max_val = 1);
Tensor hardsigmoid(const Tensor& x);
Tensor hardswish(const Tensor& x);
Tensor hardshrink(const Tensor& x, double lambd = 0.5);
Tensor softshrink(const Tensor& x, double lambd = 0.5);
Tensor tanhshrink(const Tensor& x);
Tensor softsign(const Tensor& x);
Tensor softplus(const Tensor& x, double beta = 1, double threshold = 20);
Tensor logsigmoid(const Tensor& x);
Tensor threshold(const Tensor& x, double threshold, double value);
// The first half along `dim`, times the sigmoid of the second.
Tensor glu(const Tensor& x, int64_t dim = -1);
// softmax of -x; the logarithm of softmax of x. Both along `dim`.
Tensor softmin(const Tensor& x, int64_t dim);
Tensor log_softmax(const Tensor& x, int64_t dim);

}  // namespace composit::nn
