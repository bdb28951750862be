// Convolutions over one, two or three axes.
//
//   LazyTensor y = nn::conv2d(x, weight, {.bias = b, .stride = {2}, .padding = {1, 1}});
//
// As torch.nn.functional has them: inputs of sizes [batch, channels, ...] or [channels, ...],
// weights [channels out, channels in / groups, ...] (transposed: [in, out / groups, ...]); lists
// have one number for all axes, or one per axis. `channels_last`: input and result are
// [..., channels]; the weight stays as it is.
#pragma once

#include "composit/ir/node.h"
#include "composit/ops/functions.h"

namespace composit::nn {

// The options of convolutions; lists have one number for all axes, or one per axis.
struct ConvOptions {
  LazyTensor bias = {};        // one number per channel out, or absent
  Ints stride = {1};           // elements from one window to the next
  Ints padding = {0};          // zeros on both sides of each axis
  Ints dilation = {1};         // elements from one tap of the kernel to the next
  int64_t groups = 1;          // number of groups of channels, each convolved on its own
  bool channels_last = false;  // [batch, ..., channels]
};
// x [batch, in, ...] with weight [out, in / groups, ...]. UserError where sizes do not fit.
LazyTensor conv1d(const LazyTensor& x, const LazyTensor& weight, const ConvOptions& options = {});
LazyTensor conv2d(const LazyTensor& x, const LazyTensor& weight, const ConvOptions& options = {});
LazyTensor conv3d(const LazyTensor& x, const LazyTensor& weight, const ConvOptions& options = {});

// The options of transposed convolutions, as above.
struct ConvTransposeOptions {
  LazyTensor bias = {};        // [out]
  Ints stride = {1};           // elements from one window of the result to the next
  Ints padding = {0};          // taken away on both sides of the result
  Ints output_padding = {0};   // added at the end of each axis of the result
  int64_t groups = 1;          // number of groups of channels
  Ints dilation = {1};         // elements from one tap of the kernel to the next
  bool channels_last = false;  // [batch, ..., channels]
};
// x [batch, in, ...] with weight [in, out / groups, ...]. UserError where sizes do not fit.
LazyTensor conv_transpose1d(const LazyTensor& x, const LazyTensor& weight,
                            const ConvTransposeOptions& options = {});
LazyTensor conv_transpose2d(const LazyTensor& x, const LazyTensor& weight,
                            const ConvTransposeOptions& options = {});
LazyTensor conv_transpose3d(const LazyTensor& x, const LazyTensor& weight,
                            const ConvTransposeOptions& options = {});

}  // namespace composit::nn
