// Softmax and the norms.
#include <numeric>

#include "composit/op/promotion.h"
#include "composit/ops/functions.h"

namespace composit {

static void expect_float(const Tensor& x) {
  if (category(x.dtype()) < DTypeCategory::floating)
    throw UserError("expected a floating point dtype, received " + std::string(name(x.dtype())));
}

static void add_softmax(OperationTable& rows) {
  rows.add({.schema = "aten::_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
            .decompose =
                [](Tensor x, int64_t dim, bool half_to_float) {
                  expect_float(x);
                  if (half_to_float) x = to(x, DType::float32);
                  const Tensor e = exp(x - amax(x, {dim}, true));
                  return Tensors{e / sum(e, {dim}, true)};
                },
            .vjp =
                [](Vjp v, Tensor x, int64_t dim) {
                  return Gradients{apply_one("aten::_softmax_backward_data",
                                             {v.cotangents[0], v.results[0], dim, x.dtype()})};
                },
            .samples = "f32[2,5] 1 False | f32[2,3,4] 0 False | f32[2,3]=-200..200 1 False",
            .bad = "i64[3] 0 False: floating point"});
  rows.add({.schema = "aten::_softmax_backward_data(Tensor grad_output, Tensor output, int dim, "
                      "ScalarType input_dtype) -> Tensor",
            .decompose =
                [](Tensor g, Tensor y, int64_t dim, DType dtype) {
                  const Tensor gy = g * y;
                  return Tensors{to(gy - y * sum(gy, {dim}, true), dtype)};
                },
            .samples = "f32[2,5] f32[2,5] 1 float32"});
  rows.add({.schema = "aten::_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
            .decompose =
                [](Tensor x, int64_t dim, bool half_to_float) {
                  expect_float(x);
                  if (half_to_float) x = to(x, DType::float32);
                  const Tensor shifted = x - amax(x, {dim}, true);
                  return Tensors{shifted - log(sum(exp(shifted), {dim}, true))};
                },
            .vjp =
                [](Vjp v, Tensor x, int64_t dim) {
                  return Gradients{apply_one("aten::_log_softmax_backward_data",
                                             {v.cotangents[0], v.results[0], dim, x.dtype()})};
                },
            .samples = "f32[2,5] 1 False | f32[2,3]=-200..200 1 False"});
  rows.add({.schema =
                "aten::_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, "
                "ScalarType input_dtype) -> Tensor",
            .decompose =
                [](Tensor g, Tensor y, int64_t dim, DType dtype) {
                  return Tensors{to(g - exp(y) * sum(g, {dim}, true), dtype)};
                },
            .samples = "f32[2,5] f32[2,5] 1 float32"});
  rows.add({.schema = "aten::softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
            .decompose =
                [](Tensor x, int64_t dim, std::optional<DType> dtype) {
                  return Tensors{softmax(to(x, dtype.value_or(x.dtype())), dim)};
                },
            .samples = "f32[2,5] 1 | i64[3]<4 0 float32"});
  rows.add(
      {.schema = "aten::log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
       .decompose =
           [](Tensor x, int64_t dim, std::optional<DType> dtype) {
             return Tensors{
                 apply_one("aten::_log_softmax", {to(x, dtype.value_or(x.dtype())), dim, false})};
           },
       .samples = "f32[2,5] 1 | i64[3]<4 0 float32"});
}

// ---- normalising over axes ----------------------------------------------------------------------

struct Moments {
  Tensor centered, mean, rstd;
};

// Mean and 1 / sqrt(variance + eps) over `axes`, which are kept with size 1.
static Moments moments(const Tensor& x, const Ints& axes, double eps) {
  const Tensor mean = composit::mean(x, axes, true);
  const Tensor centered = x - mean;
  return {centered, mean, rsqrt(composit::mean(square(centered), axes, true) + eps)};
}

// The gradient of `normalized = centered * rstd` where mean and rstd come from x over `axes`.
static Tensor normalized_back(const Tensor& g, const Tensor& normalized, const Tensor& rstd,
                              const Ints& axes) {
  return rstd * (g - mean(g, axes, true) - normalized * mean(g * normalized, axes, true));
}

static Tensor affine(Tensor y, const std::optional<Tensor>& weight,
                     const std::optional<Tensor>& bias) {
  if (weight) y = y * *weight;
  return bias ? y + *bias : y;
}

static Ints last_axes(int64_t count) {
  Ints axes(static_cast<size_t>(count));
  std::iota(axes.begin(), axes.end(), -count);
  return axes;
}

static void expect_normalized(const Tensor& x, const Ints& shape) {
  const Ints sizes = x.sizes();
  if (shape.empty() || shape.size() > sizes.size() ||
      !std::equal(shape.begin(), shape.end(), sizes.end() - static_cast<int64_t>(shape.size())))
    throw UserError("expected an input that ends with sizes " + str(shape) + ", received " +
                    str(sizes));
}

static void add_layer_norm(OperationTable& rows) {
  rows.add(
      {.schema = "aten::native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, "
                 "Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)",
       .decompose =
           [](Tensor x, Ints shape, std::optional<Tensor> weight, std::optional<Tensor> bias,
              double eps) {
             expect_normalized(x, shape);
             const Moments m = moments(x, last_axes(static_cast<int64_t>(shape.size())), eps);
             return Tensors{affine(m.centered * m.rstd, weight, bias), m.mean, m.rstd};
           },
       .vjp =
           [](Vjp v, Tensor x, Ints shape, std::optional<Tensor> weight,
              std::optional<Tensor> bias) {
             if (v.cotangents[1].defined() || v.cotangents[2].defined()) return Gradients{};
             return apply(
                 "aten::native_layer_norm_backward",
                 {v.cotangents[0], x, shape, v.results[1], v.results[2], weight, bias, v.wanted});
           },
       .samples = "f32[2,3,4] [4] f32[4] f32[4] 1e-05 | f32[2,3,4] [3,4] None None 0.1",
       .bad = "f32[2,3] [2] None None 0.1: ends with sizes"});
  rows.add(
      {.schema = "aten::native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] "
                 "normalized_shape, Tensor mean, Tensor rstd, Tensor? weight, Tensor? bias, "
                 "bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
       .decompose =
           [](Tensor g, Tensor x, Ints shape, Tensor mean, Tensor rstd,
              std::optional<Tensor> weight, std::optional<Tensor> bias, std::vector<bool> mask) {
             const Tensor normalized = (x - mean) * rstd;
             const Ints axes = last_axes(static_cast<int64_t>(shape.size()));
             Tensors results(3);
             if (mask[0])
               results[0] = normalized_back(weight ? g * *weight : g, normalized, rstd, axes);
             if (mask[1] && weight) results[1] = sum_to_size(g * normalized, weight->sizes());
             if (mask[2] && bias) results[2] = sum_to_size(g, bias->sizes());
             return results;
           },
       .samples = "f32[2,3,4] f32[2,3,4] [4] f32[2,3,1] f32[2,3,1] f32[4] f32[4] "
                  "[True,True,True]"});
  rows.add(
      {.schema = "aten::layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, "
                 "Tensor? bias=None, float eps=1e-05, bool cudnn_enable=True) -> Tensor",
       .decompose =
           [](Tensor x, Ints shape, std::optional<Tensor> weight, std::optional<Tensor> bias,
              double eps) {
             return Tensors{apply("aten::native_layer_norm", {x, shape, weight, bias, eps})[0]};
           },
       .samples = "f32[2,3,4] [4] f32[4] f32[4] | f32[2,3] [3]"});
}

static void add_group_norm(OperationTable& rows) {
  rows.add({.schema = "aten::group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? "
                      "bias=None, float eps=1e-05, bool cudnn_enabled=True) -> Tensor",
            .decompose =
                [](Tensor x, int64_t groups, std::optional<Tensor> weight,
                   std::optional<Tensor> bias, double eps) {
                  if (x.rank() < 2 || groups < 1 || x.size(1) % groups != 0)
                    throw UserError("expected channels that divide into " + std::to_string(groups) +
                                    " groups, received sizes " + str(x.sizes()));
                  Ints channel(static_cast<size_t>(x.rank() - 1), 1);
                  channel[0] = x.size(1);
                  const auto per_channel = [&](std::optional<Tensor> t) {
                    return t ? std::optional(reshape(*t, channel)) : t;
                  };
                  const Moments m = moments(reshape(x, {x.size(0), groups, -1}), {2}, eps);
                  return Tensors{affine(reshape(m.centered * m.rstd, x.sizes()),
                                        per_channel(weight), per_channel(bias))};
                },
            .samples = "f32[2,4,3] 2 f32[4] f32[4] | f32[2,6,2,2] 3",
            .bad = "f32[2,4,3] 3: divide into"});
}

// ---- batch norm ---------------------------------------------------------------------------------

struct BatchAxes {
  Ints reduced;  // all but the channels
  Ints channel;  // sizes of a value per channel, to broadcast
};

static BatchAxes batch_axes(const Tensor& x) {
  if (x.rank() < 2) throw UserError("expected 2 axes at least, received sizes " + str(x.sizes()));
  BatchAxes axes{{}, Ints(static_cast<size_t>(x.rank() - 1), 1)};
  for (int64_t axis = 0; axis < x.rank(); ++axis)
    if (axis != 1) axes.reduced.push_back(axis);
  axes.channel[0] = x.size(1);
  return axes;
}

// y and, in training, mean and 1/sqrt(variance + eps) per channel and the new running values: what
// batch_norm writes without its schema's saying so.
struct BatchNorm {
  Tensor y, mean, rstd, running_mean, running_var;
};

static BatchNorm batch_norm(const Tensor& x, const std::optional<Tensor>& weight,
                            const std::optional<Tensor>& bias,
                            const std::optional<Tensor>& running_mean,
                            const std::optional<Tensor>& running_var, bool training,
                            double momentum, double eps) {
  const BatchAxes axes = batch_axes(x);
  const auto per_channel = [&](const std::optional<Tensor>& t) {
    return t ? std::optional(reshape(*t, axes.channel)) : t;
  };
  if (!training) {
    if (!running_mean || !running_var)
      throw UserError("expected running_mean and running_var outside of training");
    const Tensor rstd = rsqrt(*running_var + eps);
    return {affine((x - *per_channel(running_mean)) * *per_channel(rstd), per_channel(weight),
                   per_channel(bias)),
            {},
            {},
            {},
            {}};
  }
  const Moments m = moments(x, axes.reduced, eps);
  BatchNorm result{affine(m.centered * m.rstd, per_channel(weight), per_channel(bias)),
                   reshape(m.mean, {x.size(1)}),
                   reshape(m.rstd, {x.size(1)}),
                   {},
                   {}};
  const int64_t count = x.numel() / std::max<int64_t>(x.size(1), 1);
  const auto blend = [&](const Tensor& old, const Tensor& now) {
    return old * (1 - momentum) + now * momentum;
  };
  if (running_mean) result.running_mean = blend(*running_mean, result.mean);
  if (running_var) {  // of the sample: n - 1
    const Tensor variance = reshape(sum(square(m.centered), axes.reduced, true), {x.size(1)});
    result.running_var = blend(*running_var, variance / static_cast<double>(count - 1));
  }
  return result;
}

static void add_batch_norm(OperationTable& rows) {
  rows.add(
      {.schema =
           "aten::batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, "
           "Tensor? running_var, bool training, float momentum, float eps, bool "
           "cudnn_enabled) -> Tensor",
       .decompose =
           [](Tensor x, std::optional<Tensor> weight, std::optional<Tensor> bias,
              std::optional<Tensor> mean, std::optional<Tensor> var, bool training, double momentum,
              double eps) {
             const BatchNorm b = batch_norm(x, weight, bias, mean, var, training, momentum, eps);
             Tensors results{b.y};
             for (const Tensor& written : {b.running_mean, b.running_var})
               if (written.defined()) results.push_back(written);
             return results;
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
      {.schema =
           "aten::_native_batch_norm_legit_functional(Tensor input, Tensor? weight, Tensor? "
           "bias, Tensor running_mean, Tensor running_var, bool training, float momentum, float "
           "eps) -> (Tensor, Tensor, Tensor, Tensor running_mean_out, Tensor running_var_out)",
       .decompose =
           [](Tensor x, std::optional<Tensor> weight, std::optional<Tensor> bias, Tensor mean,
              Tensor var, bool training, double momentum, double eps) {
             const BatchNorm b = batch_norm(x, weight, bias, mean, var, training, momentum, eps);
             if (training) return Tensors{b.y, b.mean, b.rstd, b.running_mean, b.running_var};
             const Tensor none = zeros({0}, x.dtype());
             return Tensors{b.y, none, none, mean, var};
           },
       .samples = "f32[4,3,2] f32[3] f32[3] f32[3] f32[3]=0.5..2 True 0.1 1e-05",
       .nondifferentiable = "running_mean running_var"});
}

void add_normalization_rows(OperationTable& rows) {
  add_softmax(rows);
  add_layer_norm(rows);
  add_group_norm(rows);
  add_batch_norm(rows);
}

}  // namespace composit
