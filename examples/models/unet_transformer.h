#pragma once

// The transformer inside the UNet of Stable Diffusion: the pixels of a feature map attend to each
// other and to the text, with the parameter names of diffusers' `Transformer2DModel`.
//
//   models::Transformer2DOptions options{.channels = 320, .context_channels = 768, .heads = 8};
//   models::Transformer2DModel transformer(options);
//   torch::Tensor y = transformer->forward(x, text);  // (N, 320, H, W) -> (N, 320, H, W)

#include <torch/torch.h>

#include <cstdint>

#include "examples/models/diffusion_blocks.h"

namespace models {

struct Transformer2DOptions {
  int64_t channels;
  int64_t context_channels;
  int64_t heads;
  int64_t norm_groups = 32;
};

/// A linear layer, half of whose output gates the other half through GELU (Shazeer, 2020).
struct GegluImpl : torch::nn::Module {
  GegluImpl(int64_t in_features, int64_t out_features);
  torch::Tensor forward(const torch::Tensor& x);

  torch::nn::Linear proj;
};
TORCH_MODULE(Geglu);

/// (N, T, C) -> (N, T, C) through 4 C hidden channels.
struct FeedForwardImpl : torch::nn::Module {
  explicit FeedForwardImpl(int64_t channels);
  torch::Tensor forward(const torch::Tensor& x);

  torch::nn::Sequential net;
};
TORCH_MODULE(FeedForward);

/// Self-attention, attention to the text, feed-forward: each of its normalised input, added to it.
struct BasicTransformerBlockImpl : torch::nn::Module {
  explicit BasicTransformerBlockImpl(const Transformer2DOptions& options);

  /// `x` (N, HW, channels), `text` (N, T, context_channels) -> (N, HW, channels).
  torch::Tensor forward(torch::Tensor x, const torch::Tensor& text);

  torch::nn::LayerNorm norm1;
  Attention attn1;
  torch::nn::LayerNorm norm2;
  Attention attn2;
  torch::nn::LayerNorm norm3;
  FeedForward ff;
};
TORCH_MODULE(BasicTransformerBlock);

struct Transformer2DModelImpl : torch::nn::Module {
  explicit Transformer2DModelImpl(const Transformer2DOptions& options);

  /// `x` (N, channels, H, W), `text` (N, T, context_channels) -> (N, channels, H, W).
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& text);

  torch::nn::GroupNorm norm;
  torch::nn::Conv2d proj_in;
  torch::nn::ModuleList transformer_blocks;  // one in Stable Diffusion 1.5
  torch::nn::Conv2d proj_out;
};
TORCH_MODULE(Transformer2DModel);

}  // namespace models
