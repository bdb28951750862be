// What rows of norms share.
//
//   const Moments m = moments(x, {-1}, 1e-5);
//   Tensor y = affine(m.centered * m.rstd, weight, bias);
#pragma once

#include "composit/ops/functions.h"

namespace composit {

struct Moments {
  Tensor centered, mean, rstd;
};

// Mean and 1 / sqrt(variance + eps) over `axes`, which are kept with size 1.
Moments moments(const Tensor& x, const Ints& axes, double eps);

// The gradient of `normalized = centered * rstd` where mean and rstd come from x over `axes`.
Tensor normalized_back(const Tensor& g, const Tensor& normalized, const Tensor& rstd,
                       const Ints& axes);

// y * weight + bias, of those that are there.
Tensor affine(Tensor y, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias);

// A value per channel, in sizes that broadcast with x, whose channels are its axis 1.
std::optional<Tensor> per_channel(const std::optional<Tensor>& value, const Tensor& x);
// x summed over all axes but the channels.
Tensor channel_sum(const Tensor& x);

}  // namespace composit
