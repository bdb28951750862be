// Pools over one, two or three axes: the maximum or the mean of a window that moves.
//
//   Tensor y = nn::max_pool2d(x, {2});
//   Tensor y = nn::avg_pool2d(x, {3, 3}, {.stride = {2}, .padding = {1}});
//
// As torch.nn.functional has them: inputs of sizes [batch, channels, ...] or [channels, ...], lists
// of one number for all axes, or one per axis. Where no stride is given, it is the kernel's size.
#pragma once

#include "composit/ops/functions.h"

namespace composit::nn {

struct MaxPoolOptions {
  Ints stride = {};
  Ints padding = {0};  // with minus infinity
  Ints dilation = {1};
  bool ceil_mode = false;
  bool channels_last = false;
};
Tensor max_pool1d(const Tensor& x, const Ints& kernel_size, const MaxPoolOptions& options = {});
Tensor max_pool2d(const Tensor& x, const Ints& kernel_size, const MaxPoolOptions& options = {});
Tensor max_pool3d(const Tensor& x, const Ints& kernel_size, const MaxPoolOptions& options = {});

struct AvgPoolOptions {
  Ints stride = {};
  Ints padding = {0};
  bool ceil_mode = false;
  bool count_include_pad = true;
  bool channels_last = false;
};
Tensor avg_pool1d(const Tensor& x, const Ints& kernel_size, const AvgPoolOptions& options = {});
Tensor avg_pool2d(const Tensor& x, const Ints& kernel_size, const AvgPoolOptions& options = {});
Tensor avg_pool3d(const Tensor& x, const Ints& kernel_size, const AvgPoolOptions& options = {});

// The result has the sizes `output_size`; windows are as large as that takes.
Tensor adaptive_avg_pool1d(const Tensor& x, const Ints& output_size, bool channels_last = false);
Tensor adaptive_avg_pool2d(const Tensor& x, const Ints& output_size, bool channels_last = false);
Tensor adaptive_avg_pool3d(const Tensor& x, const Ints& output_size, bool channels_last = false);
Tensor adaptive_max_pool1d(const Tensor& x, const Ints& output_size, bool channels_last = false);
Tensor adaptive_max_pool2d(const Tensor& x, const Ints& output_size, bool channels_last = false);

}  // namespace composit::nn
