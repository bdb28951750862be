// BERT-base as a graph without values, at any number of tokens.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "composit/nn/layers.h"
#include "composit/nn/nn.h"

namespace benchmarks {
namespace bert {

using composit::input;
using composit::InputKind;
using composit::LazyTensor;

constexpr int64_t kSize = 768, kInner = 3072, kWords = 30522, kPlaces = 512;

inline LazyTensor parameter(const std::string& name, const composit::Dims& sizes) {
  return input(name, composit::tensor_type(composit::DType::float32, sizes), InputKind::parameter);
}
inline composit::nn::Affine linear(const std::string& name, int64_t in, int64_t out) {
  return {parameter(name + ".weight", {out, in}), parameter(name + ".bias", {out})};
}
inline composit::nn::Affine norm(const std::string& name) {
  return {parameter(name + ".weight", {kSize}), parameter(name + ".bias", {kSize})};
}
inline composit::nn::EncoderLayer layer(const std::string& name) {
  return {{linear(name + ".query", kSize, kSize), linear(name + ".key", kSize, kSize),
           linear(name + ".value", kSize, kSize), linear(name + ".output", kSize, kSize)},
          {linear(name + ".inner", kSize, kInner), linear(name + ".outer", kInner, kSize)},
          norm(name + ".attention_norm"),
          norm(name + ".feedforward_norm")};
}

}  // namespace bert

struct BertOptions {
  int rounds = 20, layers = 12;
};
// Of "--rounds N" and "--layers N".
inline BertOptions bert_options(int argc, char** argv) {
  BertOptions options;
  for (int i = 1; i + 1 < argc; ++i) {
    const int number = std::max(1, std::atoi(argv[i + 1]));
    if (std::strcmp(argv[i], "--rounds") == 0) options.rounds = number;
    if (std::strcmp(argv[i], "--layers") == 0) options.layers = number;
  }
  return options;
}

// Without values: nothing is computed.
inline composit::Graph bert_base(int64_t tokens, int layers) {
  using namespace bert;  // NOLINT
  const LazyTensor ids = input("ids", composit::tensor_type(composit::DType::int64, {1, tokens})),
                   mask = input("mask",
                                composit::tensor_type(composit::DType::float32, {1, 1, 1, tokens}));
  LazyTensor x = composit::nn::embedding(ids, parameter("words", {kWords, kSize})) +
                 composit::slice(parameter("places", {kPlaces, kSize}), 0, 0, tokens);
  x = composit::nn::layer_norm(x, norm("norm"));
  for (int i = 0; i < layers; ++i)
    x = composit::nn::transformer_encoder_layer(
        x, layer("layer." + std::to_string(i)),
        {.head_size = 64, .attn_mask = mask, .activation = [](const LazyTensor& y) {
           return composit::nn::gelu(y);
         }});
  composit::Graph::Parts parts{.outputs = {x}};
  const composit::Graph all(parts);
  for (const composit::NodePtr& node : all.nodes())
    if (composit::is_input(*node)) parts.inputs.push_back({node, 0});
  return composit::Graph(std::move(parts));
}

}  // namespace benchmarks
