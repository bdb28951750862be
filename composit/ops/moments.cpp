#include "composit/ops/moments.h"

namespace composit {

Moments moments(const Tensor& x, const Ints& axes, double eps) {
  const Tensor mean = composit::mean(x, axes, true);
  const Tensor centered = x - mean;
  return {centered, mean, rsqrt(composit::mean(square(centered), axes, true) + eps)};
}

Tensor normalized_back(const Tensor& g, const Tensor& normalized, const Tensor& rstd,
                       const Ints& axes) {
  return rstd * (g - mean(g, axes, true) - normalized * mean(g * normalized, axes, true));
}

Tensor affine(Tensor y, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias) {
  if (weight) y = y * *weight;
  return bias ? y + *bias : y;
}

std::optional<Tensor> per_channel(const std::optional<Tensor>& value, const Tensor& x) {
  if (!value) return value;
  Ints sizes(static_cast<size_t>(x.rank() - 1), 1);
  sizes[0] = x.size(1);
  return reshape(*value, sizes);
}

Tensor channel_sum(const Tensor& x) {
  Ints axes{0};
  for (int64_t axis = 2; axis < x.rank(); ++axis) axes.push_back(axis);
  return sum(x, axes);
}

}  // namespace composit
