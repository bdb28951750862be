#include "composit/nn/normalization.h"

#include "composit/nn/channels.h"

namespace composit::nn {

LazyTensor layer_norm(const LazyTensor& x, const Ints& normalized_shape,
                      const LayerNormOptions& o) {
  return apply_one("aten::layer_norm", {x, normalized_shape, o.weight, o.bias, o.eps});
}

LazyTensor rms_norm(const LazyTensor& x, const Ints& normalized_shape, const RmsNormOptions& o) {
  const ArgumentValue eps = o.eps ? ArgumentValue(*o.eps) : ArgumentValue();
  return apply_one("aten::rms_norm", {x, normalized_shape, o.weight, eps});
}

LazyTensor group_norm(const LazyTensor& x, int64_t num_groups, const GroupNormOptions& o) {
  return with_channels_first(x, x.rank() - 2, o.channels_last, [&](const LazyTensor& y) {
    return apply_one("aten::group_norm", {y, num_groups, o.weight, o.bias, o.eps});
  });
}

BatchNormResult batch_norm(const LazyTensor& x, const BatchNormOptions& o) {
  if (o.running_mean.defined() != o.running_var.defined())
    throw UserError("[batch_norm] expected running_mean and running_var, received one of them");
  BatchNormResult result{{}, o.running_mean, o.running_var};
  result.y = with_channels_first(x, x.rank() - 2, o.channels_last, [&](const LazyTensor& y) {
    const LazyTensors results =
        apply("aten::batch_norm",
              {y, o.weight, o.bias, o.running_mean, o.running_var, o.training, o.momentum, o.eps,
               /*cudnn_enabled=*/false});
    if (results.size() == 3) {
      result.running_mean = results[1];
      result.running_var = results[2];
    }
    return results[0];
  });
  return result;
}

LazyTensor instance_norm(const LazyTensor& x, const InstanceNormOptions& o) {
  return with_channels_first(x, x.rank() - 2, o.channels_last, [&](const LazyTensor& y) {
    constexpr double kNoMomentum = 0;  // there are no running values
    return apply_one("aten::instance_norm",
                     {y, o.weight, o.bias, LazyTensor(), LazyTensor(), /*use_input_stats=*/true,
                      kNoMomentum, o.eps, /*cudnn_enabled=*/false});
  });
}

LazyTensor normalize(const LazyTensor& x, const NormalizeOptions& o) {
  const LazyTensor norm = apply_one("aten::linalg_vector_norm", {x, o.p, Ints{o.dim}, true});
  return x / apply_one("aten::clamp_min", {norm, o.eps});
}

}  // namespace composit::nn
