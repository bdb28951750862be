#include "composit/ops/moments.h"

#include <algorithm>

namespace composit {

bool is_mixed(
    const LazyTensor& x,
    std::initializer_list<std::reference_wrapper<const std::optional<LazyTensor>>> beside) {
  const bool is_half = x.dtype() == DType::bfloat16 || x.dtype() == DType::float16;
  return is_half && std::any_of(beside.begin(), beside.end(), [](const auto& one) {
           return one.get() && one.get()->dtype() == DType::float32;
         });
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
