// Batch norm and instance norm.
#include <algorithm>

#include "composit/ops/moments.h"

namespace composit {
namespace {

using Optional = std::optional<LazyTensor>;

Ints all_but_channels(const LazyTensor& x) {
  if (x.rank() < 2) throw UserError("expected 2 axes at least, received sizes " + str(x.sizes()));
  Ints axes{0};
  for (int64_t axis = 2; axis < x.rank(); ++axis) axes.push_back(axis);
  return axes;
}

int64_t per_channel_count(const LazyTensor& x) {
  return x.numel() / std::max<int64_t>(x.size(1), 1);
}

// y and, in training, mean and 1/sqrt(variance + eps) per channel and the new running values: what
// batch_norm writes without its schema's saying so.
struct BatchNorm {
  LazyTensor y, mean, rstd, running_mean, running_var;
};

BatchNorm in_evaluation(const LazyTensor& x, const Optional& weight, const Optional& bias,
                        const Optional& running_mean, const Optional& running_var, double eps) {
  if (!running_mean || !running_var)
    throw UserError("expected running_mean and running_var outside of training");
  all_but_channels(x);
  const LazyTensor rstd = rsqrt(widened(*running_var) + eps);
  const LazyTensor normalized = (x - *per_channel(running_mean, x)) * *per_channel(rstd, x);
  return {affine(normalized, per_channel(weight, x), per_channel(bias, x)), {}, {}, {}, {}};
}

BatchNorm in_training(const LazyTensor& x, const Optional& weight, const Optional& bias,
                      const Optional& running_mean, const Optional& running_var, double momentum,
                      double eps) {
  const Ints axes = all_but_channels(x);
  const Moments m = moments(x, axes, eps);
  BatchNorm result{affine(m.centered * m.rstd, per_channel(weight, x), per_channel(bias, x)),
                   reshape(m.mean, {x.size(1)}),
                   reshape(m.rstd, {x.size(1)}),
                   {},
                   {}};
  const auto blend = [&](const LazyTensor& old, const LazyTensor& now) {
    return widened(old) * (1 - momentum) + now * momentum;
  };
  if (running_mean) result.running_mean = blend(*running_mean, result.mean);
  if (running_var) {  // of the sample: n - 1
    const auto freedom = static_cast<double>(per_channel_count(x) - 1);
    result.running_var = blend(*running_var, channel_sum(square(m.centered)) / freedom);
  }
  return result;
}

BatchNorm batch_norm(const LazyTensor& x, const Optional& weight, const Optional& bias,
                     const Optional& running_mean, const Optional& running_var, bool training,
                     double momentum, double eps) {
  const LazyTensor wide = widened(x);
  BatchNorm b = training ? in_training(wide, weight, bias, running_mean, running_var, momentum, eps)
                         : in_evaluation(wide, weight, bias, running_mean, running_var, eps);
  const DType saved = moments_dtype(x, {weight, bias, running_mean, running_var});
  b.y = to(b.y, x.dtype());
  for (LazyTensor* one : {&b.mean, &b.rstd, &b.running_mean, &b.running_var})
    if (one->defined()) *one = to(*one, saved);
  return b;
}

// y, then mean and rstd, which are empty outside of training.
LazyTensors saved(const BatchNorm& b, bool training) {
  if (training) return {b.y, b.mean, b.rstd};
  const LazyTensor none = zeros({0}, b.y.dtype());
  return {b.y, none, none};
}

// Appends the new running values to the results.
LazyTensors with_written(LazyTensors results, const BatchNorm& b) {
  for (const LazyTensor& written : {b.running_mean, b.running_var})
    if (written.defined()) results.push_back(written);
  return results;
}

// As one operation, from what the forward pass saved. Nothing if other nodes use what it saved.
Gradients batch_norm_gradients(const Vjp& v, const LazyTensor& x, const Optional& weight,
                               const Optional& mean, const Optional& var,
                               const Optional& saved_mean, const Optional& saved_rstd,
                               bool training, double eps) {
  for (size_t i = 1; i < v.cotangents.size(); ++i)
    if (v.cotangents[i].defined()) return {};
  const std::vector<bool> mask(v.wanted.begin(), v.wanted.begin() + 3);
  Gradients gradients =
      apply("aten::native_batch_norm_backward",
            {v.cotangents[0], x, weight, mean, var, saved_mean, saved_rstd, training, eps, mask});
  gradients.resize(v.wanted.size());
  return gradients;
}

// y, what the backward pass needs, and what is written.
LazyTensors native(const LazyTensor& x, const Optional& weight, const Optional& bias,
                   const Optional& mean, const Optional& var, bool training, double momentum,
                   double eps) {
  return apply("aten::native_batch_norm", {x, weight, bias, mean, var, training, momentum, eps});
}

void add_batch_norm(OperationTable& rows) {
  rows.add(
      {.schema =
           "aten::batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, "
           "Tensor? running_var, bool training, float momentum, float eps, bool "
           "cudnn_enabled) -> Tensor",
       .kind = OpKind::normalisation,
       .decompose =
           [](LazyTensor x, Optional weight, Optional bias, Optional mean, Optional var,
              bool training, double momentum, double eps) {
             LazyTensors results = native(x, weight, bias, mean, var, training, momentum, eps);
             results.erase(results.begin() + 1, results.begin() + 3);
             return results;
           },
       .vjp =
           [](Vjp v, LazyTensor x, Optional weight, Optional bias, Optional mean, Optional var,
              bool training, double momentum, double eps) {
             if (!training)
               return batch_norm_gradients(v, x, weight, mean, var, {}, {}, false, eps);
             const LazyTensors saved = native(x, weight, bias, mean, var, training, momentum, eps);
             return batch_norm_gradients(v, x, weight, mean, var, saved[1], saved[2], true, eps);
           },
       .samples =
           "f32[4,3] f32[3] f32[3] f32[3] f32[3]=0.5..2 False 0.1 1e-05 False | f32[4,3,2,2] "
           "f32[3] f32[3] f32[3] f32[3]=0.5..2 True 0.1 1e-05 False | f32[4,3,2] None None "
           "None None True 0.1 1e-05 False",
       .bad =
           "f32[3] None None None None True 0.1 1e-05 False: 2 axes | f32[2,3] None None None None "
           "False 0.1 1e-05 False: outside of training",
       .nondifferentiable = "running_mean running_var"});
  rows.add(
      {.schema = "aten::_native_batch_norm_legit_functional(Tensor input, Tensor? weight, Tensor? "
                 "bias, Tensor running_mean, Tensor running_var, bool training, float momentum, "
                 "float eps) -> (Tensor, Tensor, Tensor, Tensor running_mean_out, Tensor "
                 "running_var_out)",
       .decompose =
           [](LazyTensor x, Optional weight, Optional bias, LazyTensor mean, LazyTensor var,
              bool training, double momentum, double eps) {
             const BatchNorm b = batch_norm(x, weight, bias, mean, var, training, momentum, eps);
             LazyTensors results = saved(b, training);
             results.push_back(training ? b.running_mean : mean);
             results.push_back(training ? b.running_var : var);
             return results;
           },
       .samples = "f32[4,3,2] f32[3] f32[3] f32[3] f32[3]=0.5..2 True 0.1 1e-05",
       .nondifferentiable = "running_mean running_var"});
}

void add_native_batch_norm(OperationTable& rows) {
  rows.add({.schema = "aten::native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? "
                      "running_mean, Tensor? running_var, bool training, float momentum, float "
                      "eps) -> (Tensor, Tensor, Tensor)",
            .kind = OpKind::normalisation,
            .decompose =
                [](LazyTensor x, Optional weight, Optional bias, Optional mean, Optional var,
                   bool training, double momentum, double eps) {
                  const BatchNorm b =
                      batch_norm(x, weight, bias, mean, var, training, momentum, eps);
                  return with_written(saved(b, training), b);
                },
            .vjp =
                [](Vjp v, LazyTensor x, Optional weight, Optional, Optional mean, Optional var,
                   bool training, double, double eps) {
                  return batch_norm_gradients(v, x, weight, mean, var, v.results[1], v.results[2],
                                              training, eps);
                },
            .samples =
                "f32[4,3] f32[3] f32[3] f32[3] f32[3]=0.5..2 False 0.1 1e-05 | f32[4,3,2] f32[3] "
                "f32[3] f32[3] f32[3]=0.5..2 True 0.1 1e-05 | f32[4,3,2] None None None None True "
                "0.1 1e-05",
            .bad = "f32[2,3] None None None None False 0.1 1e-05: outside of training",
            .nondifferentiable = "running_mean running_var"});
  rows.add({.schema = "aten::_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, "
                      "Tensor? bias, bool training, float momentum, float eps) -> (Tensor, Tensor, "
                      "Tensor)",
            .kind = OpKind::normalisation,
            .decompose =
                [](LazyTensor x, Optional weight, Optional bias, bool training, double momentum,
                   double eps) {
                  return saved(batch_norm(x, weight, bias, {}, {}, training, momentum, eps),
                               training);
                },
            .samples = "f32[4,3,2] f32[3] f32[3] True 0.1 1e-05 | f32[4,3] None None True 0.1 0.1",
            .bad = "f32[2,3] None None False 0.1 1e-05: outside of training"});
  rows.add({.schema = "aten::_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, "
                      "Tensor? bias, Tensor running_mean, Tensor running_var, float momentum, "
                      "float eps) -> (Tensor, Tensor, Tensor)",
            .decompose =
                [](LazyTensor x, Optional weight, Optional bias, LazyTensor mean, LazyTensor var,
                   double, double eps) {
                  return saved(batch_norm(x, weight, bias, mean, var, false, 0, eps), false);
                },
            .samples = "f32[4,3,2] f32[3] f32[3] f32[3] f32[3]=0.5..2 0.1 1e-05",
            .nondifferentiable = "running_mean running_var"});
}

// In training mean and rstd are functions of x; outside they are the running values.
LazyTensors batch_norm_back(const LazyTensor& g, const LazyTensor& x, const Optional& weight,
                            const Optional& mean, const Optional& rstd, bool training,
                            const std::vector<bool>& mask) {
  if (!mean || !rstd)
    throw UserError(training ? "expected save_mean and save_invstd in training"
                             : "expected running_mean and running_var outside of training");
  const Ints axes = all_but_channels(x);
  const LazyTensor scale = *per_channel(rstd, x);
  const LazyTensor normalized = (x - *per_channel(mean, x)) * scale;
  LazyTensors results(3);
  if (mask[0]) {
    const LazyTensor inner = affine(g, per_channel(weight, x), {});
    results[0] = training ? normalized_back(inner, normalized, scale, axes) : inner * scale;
  }
  if (mask[1]) results[1] = channel_sum(g * normalized);
  if (mask[2]) results[2] = channel_sum(g);
  return results;
}

void add_backward(OperationTable& rows) {
  rows.add({.schema =
                "aten::native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, "
                "Tensor? running_mean, Tensor? running_var, Tensor? save_mean, Tensor? "
                "save_invstd, bool train, float eps, bool[3] output_mask) -> (Tensor, Tensor, "
                "Tensor)",
            .kind = OpKind::normalisation,
            .decompose =
                [](LazyTensor g, LazyTensor x, Optional weight, Optional running_mean,
                   Optional running_var, Optional mean, Optional rstd, bool training, double eps,
                   std::vector<bool> mask) {
                  const Optional scale =
                      running_var ? Optional(rsqrt(widened(*running_var) + eps)) : std::nullopt;
                  const Optional& center = training ? mean : running_mean;
                  return norm_gradients(batch_norm_back(widened(g), widened(x), weight, center,
                                                        training ? rstd : scale, training, mask),
                                        x.dtype(), moments_dtype(x, {weight, center}));
                },
            .samples = "f32[4,3,2] f32[4,3,2] f32[3] None None f32[3] f32[3]=0.5..2 True 0.1 "
                       "[True,True,True] | f32[4,3] f32[4,3] f32[3] f32[3] f32[3]=0.5..2 None None "
                       "False 0.1 [True,True,True]",
            .bad = "f32[4,3] f32[4,3] None None None None None True 0.1 [True,False,False]: "
                   "save_mean",
            .nondifferentiable = "running_mean running_var"});
}

// As torch: batch norm of an image whose channels are those of all samples.
LazyTensors instance_norm(const LazyTensor& x, const Optional& weight, const Optional& bias,
                          const Optional& running_mean, const Optional& running_var, bool use_input,
                          double momentum, double eps) {
  if (x.rank() < 3) throw UserError("expected 3 axes at least, received sizes " + str(x.sizes()));
  const int64_t samples = x.size(0), channels = x.size(1);
  Ints sizes = x.sizes();
  sizes[0] = 1;
  sizes[1] = samples * channels;
  const auto repeated = [&](const Optional& t) {
    return t ? Optional(apply_one("aten::repeat", {*t, Ints{samples}})) : t;
  };
  const BatchNorm b =
      batch_norm(reshape(x, sizes), repeated(weight), repeated(bias), repeated(running_mean),
                 repeated(running_var), use_input, momentum, eps);
  LazyTensors results{reshape(b.y, x.sizes())};
  for (const LazyTensor& written : {b.running_mean, b.running_var})
    if (written.defined()) results.push_back(mean(reshape(written, {samples, channels}), {0}));
  return results;
}

void add_instance_norm(OperationTable& rows) {
  rows.add({.schema = "aten::instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? "
                      "running_mean, Tensor? running_var, bool use_input_stats, float momentum, "
                      "float eps, bool cudnn_enabled) -> Tensor",
            .kind = OpKind::normalisation,
            .decompose =
                [](LazyTensor x, Optional weight, Optional bias, Optional mean, Optional var,
                   bool use_input, double momentum, double eps) {
                  return instance_norm(x, weight, bias, mean, var, use_input, momentum, eps);
                },
            .samples =
                "f32[2,3,4] f32[3] f32[3] None None True 0.1 1e-05 False | f32[2,3,2,2] None None "
                "None None True 0.1 1e-05 False | f32[2,3,4] f32[3] f32[3] f32[3] f32[3]=0.5..2 "
                "False 0.1 1e-05 False | f32[2,3,4] None None f32[3] f32[3]=0.5..2 True 0.1 1e-05 "
                "False",
            .bad = "f32[2,3] None None None None True 0.1 1e-05 False: 3 axes",
            .nondifferentiable = "running_mean running_var"});
}

}  // namespace

void add_batch_norm_rows(OperationTable& rows) {
  add_batch_norm(rows);
  add_native_batch_norm(rows);
  add_backward(rows);
  add_instance_norm(rows);
}

}  // namespace composit
