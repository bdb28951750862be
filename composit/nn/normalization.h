// Norms: to mean 0 and variance 1 over some axes, then scaled by `weight` and moved by `bias`,
// where these are given.
//
//   LazyTensor y = nn::layer_norm(x, {768}, {.weight = w, .bias = b});
//   auto [z, mean, var] =
//       nn::batch_norm(x, {.running_mean = m, .running_var = v, .training = true});
//
// As torch.nn.functional has them; channels are axis 1, or the last one where `channels_last`.
#pragma once

#include <optional>

#include "composit/ops/functions.h"

namespace composit::nn {

struct LayerNormOptions {
  LazyTensor weight = {}, bias = {};  // sizes `normalized_shape`
  double eps = 1e-5;                  // added to the variance
};
// Over the last axes, whose sizes are `normalized_shape`.
LazyTensor layer_norm(const LazyTensor& x, const Ints& normalized_shape,
                      const LayerNormOptions& options = {});

struct RmsNormOptions {
  LazyTensor weight = {};          // sizes `normalized_shape`
  std::optional<double> eps = {};  // absent: that of the dtype, the distance from 1 to the next
};
// Divides by the root of the mean square over the last axes.
LazyTensor rms_norm(const LazyTensor& x, const Ints& normalized_shape,
                    const RmsNormOptions& options = {});

struct GroupNormOptions {
  LazyTensor weight = {}, bias = {};  // one per channel
  double eps = 1e-5;                  // added to the variance
  bool channels_last = false;         // channels are the last axis
};
// Each sample over `num_groups` groups of channels. UserError where they do not divide the
// channels.
LazyTensor group_norm(const LazyTensor& x, int64_t num_groups,
                      const GroupNormOptions& options = {});

struct BatchNormOptions {
  LazyTensor running_mean = {}, running_var = {};  // one per channel; needed outside of training
  LazyTensor weight = {}, bias = {};               // one per channel
  bool training = false;       // normalizes by the batch, not by the running values
  double momentum = 0.1;       // share of the batch in new running values
  double eps = 1e-5;           // added to the variance
  bool channels_last = false;  // channels are the last axis
};
struct BatchNormResult {
  LazyTensor y;                          // has the sizes of x
  LazyTensor running_mean, running_var;  // new in training, as they were otherwise
};
// Over the batch and all axes but that of the channels.
BatchNormResult batch_norm(const LazyTensor& x, const BatchNormOptions& options);

struct InstanceNormOptions {
  LazyTensor weight = {}, bias = {};  // one per channel
  double eps = 1e-5;                  // added to the variance
  bool channels_last = false;         // channels are the last axis
};
// Each channel of each sample.
LazyTensor instance_norm(const LazyTensor& x, const InstanceNormOptions& options = {});

struct NormalizeOptions {
  double p = 2;        // the p of the p-norm
  int64_t dim = 1;     // the axis
  double eps = 1e-12;  // the least divisor
};
// Divided by its p-norm along `dim`, or by eps where that is larger.
LazyTensor normalize(const LazyTensor& x, const NormalizeOptions& options = {});

}  // namespace composit::nn
