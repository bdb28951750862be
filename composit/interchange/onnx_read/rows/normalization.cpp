#include <algorithm>
#include <cmath>
#include <numeric>

#include "composit/interchange/onnx_read/rows.h"
#include "composit/ir/error.h"

namespace composit::onnx_read {
namespace {

// Sizes that broadcast a list over the channels of `x`.
Ints by_channel(const LazyTensor& x) {
  Ints sizes(static_cast<size_t>(std::max<int64_t>(x.rank() - 1, 1)), 1);
  sizes[0] = -1;
  return sizes;
}

LazyTensors batch_norm(const OperatorCall& call) {
  const LazyTensor& x = call.operand(0);
  const bool trains = call.version() >= 14 && call.flag("training_mode");
  if (x.rank() < 2) call.refuse("expected a batch and channels");
  if (call.version() < 9 && !call.flag("spatial", true)) call.refuse("spatial: expected 1");
  if (call.version() < 7 && !call.flag("is_test")) call.refuse("it trains, in a version before 14");
  call.pass_over({"momentum"});  // of training
  const double eps = call.real("epsilon", 1e-5F);
  if (!trains) {
    if (call.wants(1) || call.wants(2)) call.refuse("it trains, in a version before 14");
    return {op("aten::batch_norm", {x, call.operand(1), call.operand(2), call.operand(3),
                                    call.operand(4), false, 0.0, eps, false})};
  }
  Ints axes(static_cast<size_t>(x.rank()));
  std::iota(axes.begin(), axes.end(), 0);
  axes.erase(axes.begin() + 1);
  const LazyTensor mu = mean(x, axes, true);
  const LazyTensor var = mean(square(x - mu), axes, true);
  const auto shaped = [&](size_t index) { return reshape(call.operand(index), by_channel(x)); };
  const LazyTensor y = (x - mu) / sqrt(var + Number(eps)) * shaped(1) + shaped(2);
  const double momentum = call.real("momentum", 0.9F);
  const auto running = [&](size_t index, const LazyTensor& now) {
    const LazyTensor& before = call.operand(index);
    return before * Number(momentum) +
           cast(reshape(now, before.sizes()), before.dtype()) * Number(1 - momentum);
  };
  return {cast(y, x.dtype()), running(3, mu), running(4, var)};
}

LazyTensors instance_norm(const OperatorCall& call) {
  const LazyTensor& x = call.operand(0);
  if (x.rank() < 3) call.refuse("expected a batch, channels and axes of planes");
  return {op("aten::instance_norm", {x, call.operand(1), call.operand(2), LazyTensor(),
                                     LazyTensor(), true, 0.0, call.real("epsilon", 1e-5F), false})};
}

// Half precision is computed in float32, as `stash_type` says.
LazyTensors layer_norm(const OperatorCall& call) {
  const LazyTensor& x = call.operand(0);
  const LazyTensor &scale = call.operand(1), bias = call.optional(2);
  const int64_t axis = call.axis("axis", -1, x);
  if (call.integer("stash_type", 1) != 1) call.refuse("stash_type: expected 1");
  const double eps = call.real("epsilon", 1e-5F);
  const Dims sizes = sizes_from(x, static_cast<size_t>(axis));
  const bool plain = !call.wants(1) && !call.wants(2) && scale.sizes() == sizes &&
                     (!bias || bias.sizes() == sizes) && scale.dtype() == x.dtype();
  if (plain) return {op("aten::layer_norm", {x, sizes, scale, bias, eps, false})};
  const LazyTensor wide = is_half(x.dtype()) ? cast(x, DType::float32) : x;
  Ints axes(sizes.size());
  std::iota(axes.begin(), axes.end(), axis);
  const LazyTensor mu = mean(wide, axes, true);
  const LazyTensor inverse = rsqrt(mean(square(wide - mu), axes, true) + Number(eps));
  LazyTensor y = cast((wide - mu) * inverse, x.dtype()) * scale;
  if (bias) y = y + bias;
  return {y, mu, inverse};
}

LazyTensors rms_norm(const OperatorCall& call) {
  const LazyTensor &x = call.operand(0), &scale = call.operand(1);
  const int64_t axis = call.axis("axis", -1, x);
  if (call.integer("stash_type", 1) != 1) call.refuse("stash_type: expected 1");
  const double eps = call.real("epsilon", 1e-5F);
  const LazyTensor wide = is_half(x.dtype()) ? cast(x, DType::float32) : x;
  Ints axes(static_cast<size_t>(x.rank() - axis));
  std::iota(axes.begin(), axes.end(), axis);
  const LazyTensor inverse = rsqrt(mean(square(wide), axes, true) + Number(eps));
  return {cast(wide * inverse, x.dtype()) * scale};
}

// Scale and bias are per group in version 18, per channel from 21 on.
LazyTensors group_norm(const OperatorCall& call) {
  const LazyTensor& x = call.operand(0);
  const int64_t groups = call.integer("num_groups");
  if (call.integer("stash_type", 1) != 1) call.refuse("stash_type: expected 1");
  const double eps = call.real("epsilon", 1e-5F);
  if (x.rank() < 3 || groups < 1 || x.size(1) % groups != 0)
    call.refuse("expected channels that are a multiple of the groups");
  const int64_t each = x.size(1) / groups;
  const auto per_channel = [&](const LazyTensor& list) {
    if (call.version() >= 21) return list;
    return reshape(expand(reshape(list, {groups, 1}), {groups, each}), {x.size(1)});
  };
  return {op("aten::group_norm",
             {x, groups, per_channel(call.operand(1)), per_channel(call.operand(2)), eps, false})};
}

// Local response: over the squares of the channels around.
LazyTensors lrn(const OperatorCall& call) {
  const LazyTensor& x = call.operand(0);
  const int64_t size = call.integer("size");
  if (x.rank() < 2 || size < 1 || size > (1 << 20)) call.refuse("expected channels, and a size");
  const double alpha = call.real("alpha", 1e-4F), beta = call.real("beta", 0.75F);
  const double bias = call.real("bias", 1);
  const int64_t before = (size - 1) / 2, behind = size - 1 - before;
  Ints pads(2 * static_cast<size_t>(x.rank() - 1), 0);
  pads[pads.size() - 2] = before;
  pads[pads.size() - 1] = behind;
  const LazyTensor squares = op("aten::constant_pad_nd", {square(x), pads, Scalar(0.0)});
  LazyTensor around;
  for (int64_t i = 0; i < size; ++i) {
    const LazyTensor part = slice(squares, 1, i, i + x.size(1));
    around = around ? around + part : part;
  }
  return {x / pow(around * Number(alpha / static_cast<double>(size)) + Number(bias), beta)};
}

// 0 where all are 0.
LazyTensors lp_normalization(const OperatorCall& call) {
  const LazyTensor& x = call.operand(0);
  const int64_t axis = call.axis("axis", -1, x), p = call.integer("p", 2);
  if (p != 1 && p != 2) call.refuse("p: expected 1 or 2");
  const LazyTensor norm = p == 1 ? sum(abs(x), {axis}, true) : sqrt(sum(square(x), {axis}, true));
  const LazyTensor none = eq(norm, 0);
  return {where(none, zeros_like(x), x / where(none, ones_like(norm), norm))};
}

LazyTensors mean_variance(const OperatorCall& call) {
  const LazyTensor& x = call.operand(0);
  Ints axes = call.has("axes") ? call.ints("axes") : Ints{0, 2, 3};
  for (int64_t& axis : axes) axis = axis_of_rank(axis, x.rank());
  const LazyTensor mu = mean(x, axes, true);
  const LazyTensor deviation = sqrt(mean(square(x), axes, true) - square(mu));
  return {(x - mu) / (deviation + Number(1e-9))};
}

}  // namespace

void add_normalization_rows(std::vector<Row>& rows) {
  rows.insert(rows.end(), {{"BatchNormalization", batch_norm},
                           {"GroupNormalization", group_norm},
                           {"InstanceNormalization", instance_norm},
                           {"LRN", lrn},
                           {"LayerNormalization", layer_norm},
                           {"LpNormalization", lp_normalization},
                           {"MeanVarianceNormalization", mean_variance},
                           {"RMSNormalization", rms_norm}});
}

}  // namespace composit::onnx_read
