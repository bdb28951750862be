// Activations, linear maps, attention, look-ups, resizing, norms, recurrent networks.
#include "frontends/python/bindings/composit/nn.h"

namespace composit::python {
namespace {

using Unary = LazyTensor (*)(const LazyTensor&);

void unary(const Functional& def, const char* name, Unary function) {
  def(
      name, [function](const NdArray& x) { return NdArray(function(x)); }, "input"_a);
}
// Functions of an element and a number.
using WithNumber = LazyTensor (*)(const LazyTensor&, double);
void with_number(const Functional& def, const char* name, WithNumber function,
                 const char* parameter, double value) {
  def(
      name, [function](const NdArray& x, double number) { return NdArray(function(x, number)); },
      "input"_a, py::arg(parameter) = value);
}
using WithInteger = LazyTensor (*)(const LazyTensor&, int64_t);
void with_integer(const Functional& def, const char* name, WithInteger function,
                  const char* parameter) {
  def(
      name, [function](const NdArray& x, int64_t value) { return NdArray(function(x, value)); },
      "input"_a, py::arg(parameter));
}

void add_maps(const Functional& def) {
  def(
      "linear",
      [](const NdArray& x, const NdArray& weight, const OptionalArray& bias) {
        return NdArray(nn::linear(x, weight, tensor(bias)));
      },
      "input"_a, "weight"_a, "bias"_a = py::none());
  def(
      "scaled_dot_product_attention",
      [](const NdArray& query, const NdArray& key, const NdArray& value, const OptionalArray& mask,
         bool is_causal, std::optional<double> scale, bool enable_gqa) {
        return NdArray(nn::scaled_dot_product_attention(query, key, value,
                                                        {.attn_mask = tensor(mask),
                                                         .is_causal = is_causal,
                                                         .scale = scale,
                                                         .enable_gqa = enable_gqa}));
      },
      "query"_a, "key"_a, "value"_a, "attn_mask"_a = py::none(), py::kw_only(),
      "is_causal"_a = false, "scale"_a = py::none(), "enable_gqa"_a = false);
  def(
      "embedding",
      [](const NdArray& input, const NdArray& weight, std::optional<int64_t> padding_idx) {
        return NdArray(nn::embedding(input, weight, {.padding_idx = padding_idx}));
      },
      "input"_a, "weight"_a, "padding_idx"_a = py::none());
  def(
      "one_hot",
      [](const NdArray& x, int64_t num_classes) { return NdArray(nn::one_hot(x, num_classes)); },
      "input"_a, "num_classes"_a);
  def(
      "dropout",
      [](const NdArray& x, double p, const OptionalArray& uniform) {
        return NdArray(nn::dropout(x, p, tensor(uniform)));
      },
      "input"_a, "p"_a = 0.5, "uniform"_a = py::none());
  def(
      "pad",
      [](const NdArray& x, const Shape& pad, const std::string& mode, std::optional<double> value) {
        return NdArray(nn::pad(x, pad.value, {.mode = mode, .value = value}));
      },
      "input"_a, "pad"_a, "mode"_a = "constant", "value"_a = py::none());
  def(
      "interpolate",
      [](const NdArray& x, const std::optional<Shape>& size, const py::object& scale_factor,
         const std::string& mode, std::optional<bool> align_corners) {
        nn::InterpolateOptions options{.mode = mode, .align_corners = align_corners};
        if (size) options.size = size->value;
        if (py::isinstance<py::sequence>(scale_factor))
          options.scale_factor = scale_factor.cast<std::vector<double>>();
        else if (!scale_factor.is_none())
          options.scale_factor = {scale_factor.cast<double>()};
        return NdArray(nn::interpolate(x, options));
      },
      "input"_a, "size"_a = py::none(), "scale_factor"_a = py::none(), "mode"_a = "nearest",
      "align_corners"_a = py::none());
  with_integer(def, "pixel_shuffle", &nn::pixel_shuffle, "upscale_factor");
  with_integer(def, "pixel_unshuffle", &nn::pixel_unshuffle, "downscale_factor");
  def(
      "pairwise_distance",
      [](const NdArray& a, const NdArray& b, double p, double eps, bool keepdim) {
        return NdArray(nn::pairwise_distance(a, b, {.p = p, .eps = eps, .keepdim = keepdim}));
      },
      "x1"_a, "x2"_a, "p"_a = 2.0, "eps"_a = 1e-6, "keepdim"_a = false);
  def(
      "cosine_similarity",
      [](const NdArray& a, const NdArray& b, int64_t dim, double eps) {
        return NdArray(nn::cosine_similarity(a, b, {.dim = dim, .eps = eps}));
      },
      "x1"_a, "x2"_a, "dim"_a = 1, "eps"_a = 1e-8);
}

}  // namespace

void add_nn_activations(const Functional& def) {
  const std::pair<const char*, Unary> unaries[] = {{"relu", &nn::relu},
                                                   {"sigmoid", &nn::sigmoid},
                                                   {"tanh", &nn::tanh},
                                                   {"silu", &nn::silu},
                                                   {"mish", &nn::mish},
                                                   {"selu", &nn::selu},
                                                   {"relu6", &nn::relu6},
                                                   {"hardsigmoid", &nn::hardsigmoid},
                                                   {"hardswish", &nn::hardswish},
                                                   {"tanhshrink", &nn::tanhshrink},
                                                   {"softsign", &nn::softsign},
                                                   {"logsigmoid", &nn::logsigmoid},
                                                   {"erf", &erf}};
  for (const auto& [name, function] : unaries) unary(def, name, function);
  with_number(def, "leaky_relu", &nn::leaky_relu, "negative_slope", 0.01);
  with_number(def, "elu", &nn::elu, "alpha", 1);
  with_number(def, "celu", &nn::celu, "alpha", 1);
  with_number(def, "hardshrink", &nn::hardshrink, "lambd", 0.5);
  with_number(def, "softshrink", &nn::softshrink, "lambd", 0.5);
  with_integer(def, "softmax", &nn::softmax, "dim");
  with_integer(def, "softmin", &nn::softmin, "dim");
  with_integer(def, "log_softmax", &nn::log_softmax, "dim");
  def(
      "glu", [](const NdArray& x, int64_t dim) { return NdArray(nn::glu(x, dim)); }, "input"_a,
      "dim"_a = -1);
  def(
      "gelu",
      [](const NdArray& x, const std::string& approximate) {
        return NdArray(nn::gelu(x, {.approximate = approximate}));
      },
      "input"_a, "approximate"_a = "none");
  def(
      "prelu",
      [](const NdArray& x, const NdArray& weight) { return NdArray(nn::prelu(x, weight)); },
      "input"_a, "weight"_a);
  def(
      "hardtanh",
      [](const NdArray& x, double low, double high) { return NdArray(nn::hardtanh(x, low, high)); },
      "input"_a, "min_val"_a = -1.0, "max_val"_a = 1.0);
  def(
      "softplus",
      [](const NdArray& x, double beta, double threshold) {
        return NdArray(nn::softplus(x, beta, threshold));
      },
      "input"_a, "beta"_a = 1.0, "threshold"_a = 20.0);
  def(
      "threshold",
      [](const NdArray& x, double threshold, double value) {
        return NdArray(nn::threshold(x, threshold, value));
      },
      "input"_a, "threshold"_a, "value"_a);
  add_maps(def);
}

void add_nn_normalization(const Functional& def) {
  const auto no_weight = "weight"_a = py::none(), no_bias = "bias"_a = py::none();
  def(
      "layer_norm",
      [](const NdArray& x, const Shape& shape, const OptionalArray& weight,
         const OptionalArray& bias, double eps) {
        return NdArray(nn::layer_norm(
            x, shape.value, {.weight = tensor(weight), .bias = tensor(bias), .eps = eps}));
      },
      "input"_a, "normalized_shape"_a, no_weight, no_bias, "eps"_a = 1e-5);
  def(
      "rms_norm",
      [](const NdArray& x, const Shape& shape, const OptionalArray& weight,
         std::optional<double> eps) {
        return NdArray(nn::rms_norm(x, shape.value, {.weight = tensor(weight), .eps = eps}));
      },
      "input"_a, "normalized_shape"_a, no_weight, "eps"_a = py::none());
  def(
      "group_norm",
      [](const NdArray& x, int64_t groups, const OptionalArray& weight, const OptionalArray& bias,
         double eps, bool channels_last) {
        return NdArray(nn::group_norm(x, groups,
                                      {.weight = tensor(weight),
                                       .bias = tensor(bias),
                                       .eps = eps,
                                       .channels_last = channels_last}));
      },
      "input"_a, "num_groups"_a, no_weight, no_bias, "eps"_a = 1e-5, py::kw_only(),
      "channels_last"_a = false);
  def(
      "batch_norm",
      [](const NdArray& x, const OptionalArray& running_mean, const OptionalArray& running_var,
         const OptionalArray& weight, const OptionalArray& bias, bool training, double momentum,
         double eps, bool channels_last) -> py::object {
        const auto result = nn::batch_norm(x, {.running_mean = tensor(running_mean),
                                               .running_var = tensor(running_var),
                                               .weight = tensor(weight),
                                               .bias = tensor(bias),
                                               .training = training,
                                               .momentum = momentum,
                                               .eps = eps,
                                               .channels_last = channels_last});
        if (!training || !running_mean) return py::cast(NdArray(result.y));
        return py::make_tuple(NdArray(result.y), NdArray(result.running_mean),
                              NdArray(result.running_var));
      },
      "input"_a, "running_mean"_a, "running_var"_a, no_weight, no_bias, "training"_a = false,
      "momentum"_a = 0.1, "eps"_a = 1e-5, py::kw_only(), "channels_last"_a = false,
      "\nIn training with running statistics: the result, and their new values; nothing is "
      "written.");
  def(
      "instance_norm",
      [](const NdArray& x, const OptionalArray& weight, const OptionalArray& bias, double eps,
         bool channels_last) {
        return NdArray(nn::instance_norm(x, {.weight = tensor(weight),
                                             .bias = tensor(bias),
                                             .eps = eps,
                                             .channels_last = channels_last}));
      },
      "input"_a, py::kw_only(), no_weight, no_bias, "eps"_a = 1e-5, "channels_last"_a = false);
  def(
      "normalize",
      [](const NdArray& x, double p, int64_t dim, double eps) {
        return NdArray(nn::normalize(x, {.p = p, .dim = dim, .eps = eps}));
      },
      "input"_a, "p"_a = 2.0, "dim"_a = 1, "eps"_a = 1e-12);
}

}  // namespace composit::python
