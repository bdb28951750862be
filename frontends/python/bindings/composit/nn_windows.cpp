// Convolutions and pools; recurrent networks.
#include "frontends/python/bindings/composit/nn.h"

namespace composit::python {
namespace {

using Conv = LazyTensor (*)(const LazyTensor&, const LazyTensor&, const nn::ConvOptions&);
using ConvTranspose = LazyTensor (*)(const LazyTensor&, const LazyTensor&,
                                     const nn::ConvTransposeOptions&);
using MaxPool = LazyTensor (*)(const LazyTensor&, const Ints&, const nn::MaxPoolOptions&);
using AvgPool = LazyTensor (*)(const LazyTensor&, const Ints&, const nn::AvgPoolOptions&);
using AdaptivePool = LazyTensor (*)(const LazyTensor&, const Ints&, bool);

void conv(const Functional& def, const char* name, Conv function) {
  def(
      name,
      [function](const NdArray& x, const NdArray& weight, const OptionalArray& bias,
                 const Shape& stride, const Shape& padding, const Shape& dilation, int64_t groups,
                 bool channels_last) {
        return NdArray(function(x, weight,
                                {.bias = tensor(bias),
                                 .stride = stride.value,
                                 .padding = padding.value,
                                 .dilation = dilation.value,
                                 .groups = groups,
                                 .channels_last = channels_last}));
      },
      "input"_a, "weight"_a, "bias"_a = py::none(), "stride"_a = py::int_(1),
      "padding"_a = py::int_(0), "dilation"_a = py::int_(1), "groups"_a = 1, py::kw_only(),
      "channels_last"_a = false);
}

void conv_transpose(const Functional& def, const char* name, ConvTranspose function) {
  def(
      name,
      [function](const NdArray& x, const NdArray& weight, const OptionalArray& bias,
                 const Shape& stride, const Shape& padding, const Shape& output_padding,
                 int64_t groups, const Shape& dilation, bool channels_last) {
        return NdArray(function(x, weight,
                                {.bias = tensor(bias),
                                 .stride = stride.value,
                                 .padding = padding.value,
                                 .output_padding = output_padding.value,
                                 .groups = groups,
                                 .dilation = dilation.value,
                                 .channels_last = channels_last}));
      },
      "input"_a, "weight"_a, "bias"_a = py::none(), "stride"_a = py::int_(1),
      "padding"_a = py::int_(0), "output_padding"_a = py::int_(0), "groups"_a = 1,
      "dilation"_a = py::int_(1), py::kw_only(), "channels_last"_a = false);
}

void max_pool(const Functional& def, const char* name, MaxPool function) {
  def(
      name,
      [function](const NdArray& x, const Shape& kernel, const std::optional<Shape>& stride,
                 const Shape& padding, const Shape& dilation, bool ceil_mode, bool channels_last) {
        return NdArray(function(x, kernel.value,
                                {.stride = stride ? stride->value : Ints{},
                                 .padding = padding.value,
                                 .dilation = dilation.value,
                                 .ceil_mode = ceil_mode,
                                 .channels_last = channels_last}));
      },
      "input"_a, "kernel_size"_a, "stride"_a = py::none(), "padding"_a = py::int_(0),
      "dilation"_a = py::int_(1), "ceil_mode"_a = false, py::kw_only(), "channels_last"_a = false);
}

void avg_pool(const Functional& def, const char* name, AvgPool function) {
  def(
      name,
      [function](const NdArray& x, const Shape& kernel, const std::optional<Shape>& stride,
                 const Shape& padding, bool ceil_mode, bool count_include_pad, bool channels_last) {
        return NdArray(function(x, kernel.value,
                                {.stride = stride ? stride->value : Ints{},
                                 .padding = padding.value,
                                 .ceil_mode = ceil_mode,
                                 .count_include_pad = count_include_pad,
                                 .channels_last = channels_last}));
      },
      "input"_a, "kernel_size"_a, "stride"_a = py::none(), "padding"_a = py::int_(0),
      "ceil_mode"_a = false, "count_include_pad"_a = true, py::kw_only(),
      "channels_last"_a = false);
}

void adaptive_pool(const Functional& def, const char* name, AdaptivePool function) {
  def(
      name,
      [function](const NdArray& x, const Shape& size, bool channels_last) {
        return NdArray(function(x, size.value, channels_last));
      },
      "input"_a, "output_size"_a, py::kw_only(), "channels_last"_a = false);
}

// One number for both axes.
Ints pair(const Shape& shape) {
  return shape.value.size() == 1 ? Ints{shape.value[0], shape.value[0]} : shape.value;
}

// (w_ih, w_hh) or (w_ih, w_hh, b_ih, b_hh) per layer and direction.
std::vector<nn::RecurrentWeights> recurrent_weights(const std::vector<NdArrays>& layers) {
  std::vector<nn::RecurrentWeights> weights;
  for (const NdArrays& parts : layers) {
    if (parts.size() != 2 && parts.size() != 4)
      throw UserError("[recurrent] expected 2 or 4 weights per layer and direction, received " +
                      std::to_string(parts.size()));
    weights.push_back({parts[0], parts[1]});
    if (parts.size() == 4) {
      weights.back().b_ih = parts[2];
      weights.back().b_hh = parts[3];
    }
  }
  return weights;
}

template <class Function>
void recurrent(const Functional& def, const char* name, Function function) {
  def(
      name,
      [function](const NdArray& x, const NdArray& h, const std::vector<NdArrays>& weights,
                 bool bidirectional, bool batch_first) {
        const auto result = function(x, h, recurrent_weights(weights),
                                     {.bidirectional = bidirectional, .batch_first = batch_first});
        return std::make_pair(NdArray(result.output), NdArray(result.h));
      },
      "input"_a, "h"_a, "weights"_a, py::kw_only(), "bidirectional"_a = false,
      "batch_first"_a = false,
      "\nweights: per layer and direction (w_ih, w_hh, b_ih, b_hh). Output and the last states.");
}

void add_recurrent(const Functional& def) {
  recurrent(def, "rnn_tanh", &nn::rnn_tanh);
  recurrent(def, "rnn_relu", &nn::rnn_relu);
  recurrent(def, "gru", &nn::gru);
  def(
      "lstm",
      [](const NdArray& x, const NdArray& h, const NdArray& c, const std::vector<NdArrays>& weights,
         bool bidirectional, bool batch_first) {
        const auto result = nn::lstm(x, h, c, recurrent_weights(weights),
                                     {.bidirectional = bidirectional, .batch_first = batch_first});
        return std::make_tuple(NdArray(result.output), NdArray(result.h), NdArray(result.c));
      },
      "input"_a, "h"_a, "c"_a, "weights"_a, py::kw_only(), "bidirectional"_a = false,
      "batch_first"_a = false,
      "\nweights: per layer and direction (w_ih, w_hh, b_ih, b_hh). Output and the last states.");
}

}  // namespace

void add_nn_windows(const Functional& def) {
  conv(def, "conv1d", &nn::conv1d);
  conv(def, "conv2d", &nn::conv2d);
  conv(def, "conv3d", &nn::conv3d);
  conv_transpose(def, "conv_transpose1d", &nn::conv_transpose1d);
  conv_transpose(def, "conv_transpose2d", &nn::conv_transpose2d);
  conv_transpose(def, "conv_transpose3d", &nn::conv_transpose3d);
  max_pool(def, "max_pool1d", &nn::max_pool1d);
  max_pool(def, "max_pool2d", &nn::max_pool2d);
  max_pool(def, "max_pool3d", &nn::max_pool3d);
  avg_pool(def, "avg_pool1d", &nn::avg_pool1d);
  avg_pool(def, "avg_pool2d", &nn::avg_pool2d);
  avg_pool(def, "avg_pool3d", &nn::avg_pool3d);
  adaptive_pool(def, "adaptive_avg_pool1d", &nn::adaptive_avg_pool1d);
  adaptive_pool(def, "adaptive_avg_pool2d", &nn::adaptive_avg_pool2d);
  adaptive_pool(def, "adaptive_avg_pool3d", &nn::adaptive_avg_pool3d);
  adaptive_pool(def, "adaptive_max_pool1d", &nn::adaptive_max_pool1d);
  adaptive_pool(def, "adaptive_max_pool2d", &nn::adaptive_max_pool2d);
  def(
      "unfold",
      [](const NdArray& x, const Shape& kernel, const Shape& dilation, const Shape& padding,
         const Shape& stride) {
        return NdArray(nn::unfold(
            x, pair(kernel),
            {.dilation = pair(dilation), .padding = pair(padding), .stride = pair(stride)}));
      },
      "input"_a, "kernel_size"_a, "dilation"_a = py::int_(1), "padding"_a = py::int_(0),
      "stride"_a = py::int_(1));
  def(
      "fold",
      [](const NdArray& x, const Shape& size, const Shape& kernel, const Shape& dilation,
         const Shape& padding, const Shape& stride) {
        return NdArray(nn::fold(
            x, pair(size), pair(kernel),
            {.dilation = pair(dilation), .padding = pair(padding), .stride = pair(stride)}));
      },
      "input"_a, "output_size"_a, "kernel_size"_a, "dilation"_a = py::int_(1),
      "padding"_a = py::int_(0), "stride"_a = py::int_(1));
  add_recurrent(def);
}

}  // namespace composit::python
