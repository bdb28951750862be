// Helpers for rows of norms.
//
//   const Moments m = moments(x, {-1}, 1e-5);
//   LazyTensor y = affine(m.centered * m.rstd, weight, bias);
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>

#include "composit/ops/functions.h"

namespace composit {

struct Moments {
  LazyTensor centered, mean, rstd;
};

// The dtype of means and factors: that of x, or float32 for 16-bit floats beside float32, as norms
// have them under autocast. What has the sizes of x has its dtype.
DType moments_dtype(
    const LazyTensor& x,
    std::initializer_list<std::reference_wrapper<const std::optional<LazyTensor>>> beside);

// The gradients of x, weight and bias, those that are there, in the dtypes of these.
LazyTensors norm_gradients(LazyTensors gradients, DType x, DType weight_and_bias);

// Mean and 1 / sqrt(variance + eps) over `axes`, which are kept with size 1.
Moments moments(const LazyTensor& x, const Ints& axes, double eps);

// The gradient of `normalized = centered * rstd` where mean and rstd come from x over `axes`.
LazyTensor normalized_back(const LazyTensor& g, const LazyTensor& normalized,
                           const LazyTensor& rstd, const Ints& axes);

// y * weight + bias, of those that are there.
LazyTensor affine(LazyTensor y, const std::optional<LazyTensor>& weight,
                  const std::optional<LazyTensor>& bias);

// A value per channel, in sizes that broadcast with x, whose channels are its axis 1.
std::optional<LazyTensor> per_channel(const std::optional<LazyTensor>& value, const LazyTensor& x);
// x summed over all axes but the channels.
LazyTensor channel_sum(const LazyTensor& x);

}  // namespace composit
