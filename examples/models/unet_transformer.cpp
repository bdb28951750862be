#include "examples/models/unet_transformer.h"

namespace models {
namespace {

using torch::nn::LayerNorm;
using torch::nn::LayerNormOptions;

Attention make_attention(const Transformer2DOptions& options, int64_t context_channels) {
  return Attention(AttentionOptions{options.channels, context_channels, options.heads});
}

LayerNorm make_layer_norm(const Transformer2DOptions& options) {
  return LayerNorm(LayerNormOptions({options.channels}));
}

}  // namespace

GegluImpl::GegluImpl(int64_t in_features, int64_t out_features)
    : proj(register_module("proj", torch::nn::Linear(in_features, 2 * out_features))) {}

torch::Tensor GegluImpl::forward(const torch::Tensor& x) {
  const auto halves = proj(x).chunk(2, -1);
  return halves[0] * torch::gelu(halves[1]);
}

FeedForwardImpl::FeedForwardImpl(int64_t channels)
    : net(register_module(
          "net", torch::nn::Sequential(Geglu(channels, 4 * channels), torch::nn::Dropout(0.0),
                                       torch::nn::Linear(4 * channels, channels)))) {}

torch::Tensor FeedForwardImpl::forward(const torch::Tensor& x) { return net->forward(x); }

BasicTransformerBlockImpl::BasicTransformerBlockImpl(const Transformer2DOptions& options)
    : norm1(register_module("norm1", make_layer_norm(options))),
      attn1(register_module("attn1", make_attention(options, options.channels))),
      norm2(register_module("norm2", make_layer_norm(options))),
      attn2(register_module("attn2", make_attention(options, options.context_channels))),
      norm3(register_module("norm3", make_layer_norm(options))),
      ff(register_module("ff", FeedForward(options.channels))) {}

torch::Tensor BasicTransformerBlockImpl::forward(torch::Tensor x, const torch::Tensor& text) {
  const torch::Tensor normalized = norm1(x);
  x = attn1(normalized, normalized) + x;
  x = attn2(norm2(x), text) + x;
  return ff(norm3(x)) + x;
}

Transformer2DModelImpl::Transformer2DModelImpl(const Transformer2DOptions& options)
    : norm(register_module("norm", make_group_norm(options.norm_groups, options.channels, 1e-6))),
      proj_in(register_module("proj_in", conv1x1(options.channels, options.channels))),
      transformer_blocks(register_module("transformer_blocks", torch::nn::ModuleList())),
      proj_out(register_module("proj_out", conv1x1(options.channels, options.channels))) {
  transformer_blocks->push_back(BasicTransformerBlock(options));
}

torch::Tensor Transformer2DModelImpl::forward(const torch::Tensor& x, const torch::Tensor& text) {
  torch::Tensor tokens = proj_in(norm(x)).permute({0, 2, 3, 1}).flatten(1, 2);  // (N, HW, C)
  for (const auto& block : *transformer_blocks) {
    tokens = block->as<BasicTransformerBlock>()->forward(tokens, text);
  }
  const torch::Tensor pixels =
      tokens.view({x.size(0), x.size(2), x.size(3), x.size(1)}).permute({0, 3, 1, 2}).contiguous();
  return proj_out(pixels) + x;
}

}  // namespace models
