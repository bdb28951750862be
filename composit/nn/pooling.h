// Pools over one, two or three axes: the maximum or the mean of a window that moves.
//
//   LazyTensor y = nn::max_pool2d(x, {2});
//   LazyTensor z = nn::avg_pool2d(x, {3, 3}, {.stride = {2}, .padding = {1}});
//
// As torch.nn.functional has them: inputs of sizes [batch, channels, ...] or [channels, ...], lists
// of one number for all axes, or one per axis. Where no stride is given, it is the kernel's size.
#pragma once

#include "composit/ops/functions.h"

namespace composit::nn {

// The options of maximum pools.
struct MaxPoolOptions {
  Ints stride = {};            // elements from one window to the next
  Ints padding = {0};          // with minus infinity
  Ints dilation = {1};         // elements from one tap of a window to the next
  bool ceil_mode = false;      // a last window may go beyond the end
  bool channels_last = false;  // [batch, ..., channels]
};
// The maximum of each window.
LazyTensor max_pool1d(const LazyTensor& x, const Ints& kernel_size,
                      const MaxPoolOptions& options = {});
LazyTensor max_pool2d(const LazyTensor& x, const Ints& kernel_size,
                      const MaxPoolOptions& options = {});
LazyTensor max_pool3d(const LazyTensor& x, const Ints& kernel_size,
                      const MaxPoolOptions& options = {});

// The options of mean pools.
struct AvgPoolOptions {
  Ints stride = {};               // elements from one window to the next
  Ints padding = {0};             // with zeros
  bool ceil_mode = false;         // a last window may go beyond the end
  bool count_include_pad = true;  // zeros of the padding count in the mean
  bool channels_last = false;     // [batch, ..., channels]
};
// The mean of each window.
LazyTensor avg_pool1d(const LazyTensor& x, const Ints& kernel_size,
                      const AvgPoolOptions& options = {});
LazyTensor avg_pool2d(const LazyTensor& x, const Ints& kernel_size,
                      const AvgPoolOptions& options = {});
LazyTensor avg_pool3d(const LazyTensor& x, const Ints& kernel_size,
                      const AvgPoolOptions& options = {});

// The result has the sizes `output_size`; windows are as large as that takes.
LazyTensor adaptive_avg_pool1d(const LazyTensor& x, const Ints& output_size,
                               bool channels_last = false);
LazyTensor adaptive_avg_pool2d(const LazyTensor& x, const Ints& output_size,
                               bool channels_last = false);
LazyTensor adaptive_avg_pool3d(const LazyTensor& x, const Ints& output_size,
                               bool channels_last = false);
LazyTensor adaptive_max_pool1d(const LazyTensor& x, const Ints& output_size,
                               bool channels_last = false);
LazyTensor adaptive_max_pool2d(const LazyTensor& x, const Ints& output_size,
                               bool channels_last = false);

}  // namespace composit::nn
