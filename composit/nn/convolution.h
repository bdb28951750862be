// Convolutions over one, two or three axes.
//
//   Tensor y = nn::conv2d(x, weight, {.bias = b, .stride = {2}, .padding = {1, 1}});
//
// As torch.nn.functional has them: inputs of sizes [batch, channels, ...] or [channels, ...],
// weights [channels out, channels in / groups, ...] (transposed: [in, out / groups, ...]); lists
// have one number for all axes, or one per axis. `channels_last`: input and result are
// [..., channels]; the weight stays as it is.
#pragma once

#include "composit/op/tensor.h"
#include "composit/ops/functions.h"

namespace composit::nn {

struct ConvOptions {
  Tensor bias = {};  // one number per channel out, or absent
  Ints stride = {1};
  Ints padding = {0};
  Ints dilation = {1};
  int64_t groups = 1;
  bool channels_last = false;
};
Tensor conv1d(const Tensor& x, const Tensor& weight, const ConvOptions& options = {});
Tensor conv2d(const Tensor& x, const Tensor& weight, const ConvOptions& options = {});
Tensor conv3d(const Tensor& x, const Tensor& weight, const ConvOptions& options = {});

struct ConvTransposeOptions {
  Tensor bias = {};
  Ints stride = {1};
  Ints padding = {0};
  Ints output_padding = {0};
  int64_t groups = 1;
  Ints dilation = {1};
  bool channels_last = false;
};
Tensor conv_transpose1d(const Tensor& x, const Tensor& weight,
                        const ConvTransposeOptions& options = {});
Tensor conv_transpose2d(const Tensor& x, const Tensor& weight,
                        const ConvTransposeOptions& options = {});
Tensor conv_transpose3d(const Tensor& x, const Tensor& weight,
                        const ConvTransposeOptions& options = {});

}  // namespace composit::nn
