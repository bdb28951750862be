// Layers, and first values of parameters.
#include "frontends/python/bindings/composit/evaluate.h"
#include "frontends/python/bindings/composit/nn.h"

namespace composit::python {
namespace {

using Pair = std::pair<NdArray, OptionalArray>;  // weight and bias

nn::Affine affine(const Pair& layer) { return {layer.first, tensor(layer.second)}; }

nn::MultiHeadAttention attention(const std::vector<Pair>& layers) {
  if (layers.size() != 4)
    throw UserError(
        "[multi_head_attention] expected (weight, bias) of query, key, value and output, "
        "received " +
        std::to_string(layers.size()) + " pairs");
  return {affine(layers[0]), affine(layers[1]), affine(layers[2]), affine(layers[3])};
}

nn::Activation activation(const py::object& function) {
  if (function.is_none()) return nn::relu;
  return [function](const LazyTensor& x) -> LazyTensor {
    return function(NdArray(x)).cast<NdArray>();
  };
}

// (weight, (gamma, beta), running_mean, running_var)
using ConvNorm = std::tuple<NdArray, Pair, NdArray, NdArray>;
nn::ConvNorm conv_norm(const ConvNorm& parts) {
  const auto& [weight, scale, mean, variance] = parts;
  return {weight, {affine(scale), mean, variance}};
}

// Convolutions, and that of the input or None.
using Block = std::pair<std::vector<ConvNorm>, std::optional<ConvNorm>>;
nn::ResnetBlock resnet_block(const Block& parts) {
  nn::ResnetBlock block;
  for (const ConvNorm& convolution : parts.first)
    block.convolutions.push_back(conv_norm(convolution));
  if (parts.second) block.downsample = conv_norm(*parts.second);
  return block;
}

void add_transformers(const Functional& def) {
  def(
      "multi_head_attention",
      [](const NdArray& query, const NdArray& key, const NdArray& value,
         const std::vector<Pair>& layers, int64_t head_size, const OptionalArray& mask,
         bool is_causal) {
        return NdArray(nn::multi_head_attention(
            query, key, value, attention(layers),
            {.head_size = head_size, .attn_mask = tensor(mask), .is_causal = is_causal}));
      },
      "query"_a, "key"_a, "value"_a, "layers"_a, py::kw_only(), "head_size"_a,
      "attn_mask"_a = py::none(), "is_causal"_a = false,
      "\nlayers: (weight, bias) of query, key, value and output. query [batch, tokens, size].");
  def(
      "feedforward",
      [](const NdArray& x, const Pair& inner, const Pair& outer, const py::object& function) {
        return NdArray(nn::feedforward(x, {affine(inner), affine(outer)}, activation(function)));
      },
      "input"_a, "inner"_a, "outer"_a, "activation"_a = py::none(),
      "\n(weight, bias) of two linear layers, the activation (relu) between them.");
  def(
      "transformer_encoder_layer",
      [](const NdArray& x, const std::vector<Pair>& layers,
         const std::pair<Pair, Pair>& feedforward, const std::pair<Pair, Pair>& norms,
         int64_t head_size, const OptionalArray& mask, bool is_causal, const py::object& function,
         bool norm_first, double eps) {
        const nn::EncoderLayer layer{attention(layers),
                                     {affine(feedforward.first), affine(feedforward.second)},
                                     affine(norms.first),
                                     affine(norms.second)};
        return NdArray(nn::transformer_encoder_layer(x, layer,
                                                     {.head_size = head_size,
                                                      .attn_mask = tensor(mask),
                                                      .is_causal = is_causal,
                                                      .activation = activation(function),
                                                      .norm_first = norm_first,
                                                      .eps = eps}));
      },
      "input"_a, "attention"_a, "feedforward"_a, "norms"_a, py::kw_only(), "head_size"_a,
      "attn_mask"_a = py::none(), "is_causal"_a = false, "activation"_a = py::none(),
      "norm_first"_a = false, "eps"_a = 1e-5,
      "\nAs torch.nn.TransformerEncoderLayer; (weight, bias) of four, two and two layers.");
}

void add_resnets(const Functional& def) {
  def(
      "resnet_block",
      [](const NdArray& x, const Block& block, int64_t stride) {
        return NdArray(nn::resnet_block(x, resnet_block(block), stride));
      },
      "input"_a, "block"_a, "stride"_a = 1,
      "\nblock: (convolutions, that of the input or None), each convolution\n"
      "(weight, (gamma, beta), running_mean, running_var).");
  def(
      "resnet_module",
      [](const NdArray& x, const std::vector<Block>& blocks, const Ints& strides) {
        std::vector<nn::ResnetBlock> all;
        for (const Block& block : blocks) all.push_back(resnet_block(block));
        return NdArray(nn::resnet_module(x, all, strides));
      },
      "input"_a, "blocks"_a, "strides"_a, "\nBlocks of resnet_block, a stride per block.");
}

using nn::Initializer;
using Method = LazyTensor (Initializer::*)(const std::string&, const Ints&, double);

void add_initializer(py::module_& module) {
  py::class_<Initializer> type(
      module, "Initializer",
      "Makes parameters: inputs that hold their first value. The same seed\n"
      "and the same calls give the same values everywhere.");
  type.def(py::init<uint64_t, DType>(), "seed"_a, "dtype"_a = DType::float32);
  const auto filled = [](Method method) {
    return [method](Initializer& init, const std::string& name, const Shape& sizes, double value) {
      return NdArray((init.*method)(name, sizes.value, value));
    };
  };
  type.def("full", filled(&Initializer::full), "name"_a, "sizes"_a, "value"_a);
  type.def("kaiming_uniform", filled(&Initializer::kaiming_uniform), "name"_a, "sizes"_a,
           "gain"_a = nn::kReluGain);
  type.def("kaiming_normal", filled(&Initializer::kaiming_normal), "name"_a, "sizes"_a,
           "gain"_a = nn::kReluGain);
  type.def("xavier_uniform", filled(&Initializer::xavier_uniform), "name"_a, "sizes"_a,
           "gain"_a = 1.0);
  type.def("xavier_normal", filled(&Initializer::xavier_normal), "name"_a, "sizes"_a,
           "gain"_a = 1.0);
  const auto between =
      [](LazyTensor (Initializer::*method)(const std::string&, const Ints&, double, double)) {
        return [method](Initializer& init, const std::string& name, const Shape& sizes, double a,
                        double b) { return NdArray((init.*method)(name, sizes.value, a, b)); };
      };
  type.def("uniform", between(&Initializer::uniform), "name"_a, "sizes"_a, "low"_a, "high"_a);
  type.def("normal", between(&Initializer::normal), "name"_a, "sizes"_a, "mean"_a, "deviation"_a);
  type.def_property_readonly(
      "parameters", [](const Initializer& init) { return arrays_of(init.parameters()); },
      "Of all calls so far, in their order.");
}

}  // namespace

void add_nn_layers(const Functional& def, py::module_& module) {
  add_transformers(def);
  add_resnets(def);
  add_initializer(module);
}

}  // namespace composit::python
