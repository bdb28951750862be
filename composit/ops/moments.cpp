#include "composit/ops/moments.h"

#include <algorithm>

namespace composit {

DType moments_dtype(
    const LazyTensor& x,
    std::initializer_list<std::reference_wrapper<const std::optional<LazyTensor>>> beside) {
  const bool mixed = is_half(x.dtype()) && std::any_of(beside.begin(), beside.end(), [](auto& one) {
                       return one.get() && one.get()->dtype() == DType::float32;
                     });
  return mixed ? DType::float32 : x.dtype();
}

LazyTensors norm_gradients(LazyTensors gradients, DType x, DType weight_and_bias) {
  for (size_t i = 0; i < gradients.size(); ++i)
    if (gradients[i]) gradients[i] = to(gradients[i], i == 0 ? x : weight_and_bias);
  return gradients;
}

Moments moments(const LazyTensor& x, const Ints& axes, double eps) {
  const LazyTensor mean = composit::mean(x, axes, true);
  const LazyTensor centered = x - mean;
  return {centered, mean, rsqrt(composit::mean(square(centered), axes, true) + eps)};
}

LazyTensor normalized_back(const LazyTensor& g, const LazyTensor& normalized,
                           const LazyTensor& rstd, const Ints& axes) {
  return rstd * (g - mean(g, axes, true) - normalized * mean(g * normalized, axes, true));
}

LazyTensor affine(LazyTensor y, const std::optional<LazyTensor>& weight,
                  const std::optional<LazyTensor>& bias) {
  if (weight) y = y * *weight;
  return bias ? y + *bias : y;
}

std::optional<LazyTensor> per_channel(const std::optional<LazyTensor>& value, const LazyTensor& x) {
  if (!value) return value;
  Ints sizes(static_cast<size_t>(x.rank() - 1), 1);
  sizes[0] = x.size(1);
  return reshape(*value, sizes);
}

LazyTensor channel_sum(const LazyTensor& x) {
  Ints axes{0};
  for (int64_t axis = 2; axis < x.rank(); ++axis) axes.push_back(axis);
  return sum(x, axes);
}

}  // namespace composit
