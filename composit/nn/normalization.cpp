#include "composit/nn/normalization.h"

#include "composit/nn/channels.h"

namespace composit::nn {

Tensor layer_norm(const Tensor& x, const Ints& normalized_shape, const LayerNormOptions& o) {
  return apply_one("aten::layer_norm", {x, normalized_shape, o.weight, o.bias, o.eps});
}

Tensor rms_norm(const Tensor& x, const Ints& normalized_shape, const RmsNormOptions& o) {
  const ArgumentValue eps = o.eps ? ArgumentValue(*o.eps) : ArgumentValue();
  return apply_one("aten::rms_norm", {x, normalized_shape, o.weight, eps});
}

Tensor group_norm(const Tensor& x, int64_t num_groups, const GroupNormOptions& o) {
  return with_channels_first(x, x.rank() - 2, o.channels_last, [&](const Tensor& y) {
    return apply_one("aten::group_norm", {y, num_groups, o.weight, o.bias, o.eps});
  });
}

BatchNormResult batch_norm(const Tensor& x, const BatchNormOptions& o) {
  if (o.running_mean.defined() != o.running_var.defined())
    throw UserError("[batch_norm] expected running_mean and running_var, received one of them");
  BatchNormResult result{{}, o.running_mean, o.running_var};
  result.y = with_channels_first(x, x.rank() - 2, o.channels_last, [&](const Tensor& y) {
    const Tensors results = apply("aten::batch_norm", {y, o.weight, o.bias, o.running_mean,
                                                       o.running_var, o.training, o.momentum, o.eps,
                                                       /*cudnn_enabled=*/false});
    if (results.size() == 3) {
      result.running_mean = results[1];
      result.running_var = results[2];
    }
    return results[0];
  });
  return result;
}

Tensor instance_norm(const Tensor& x, const InstanceNormOptions& o) {
  return with_channels_first(x, x.rank() - 2, o.channels_last, [&](const Tensor& y) {
    constexpr double kNoMomentum = 0;  // there are no running values
    return apply_one("aten::instance_norm",
                     {y, o.weight, o.bias, Tensor(), Tensor(), /*use_input_stats=*/true,
                      kNoMomentum, o.eps, /*cudnn_enabled=*/false});
  });
}

Tensor normalize(const Tensor& x, const NormalizeOptions& o) {
  const Tensor norm = apply_one("aten::linalg_vector_norm", {x, o.p, Ints{o.dim}, true});
  return x / apply_one("aten::clamp_min", {norm, o.eps});
}

}  // namespace composit::nn
