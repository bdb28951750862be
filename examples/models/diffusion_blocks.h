#pragma once

// Building blocks that the UNet and the VAE of Stable Diffusion share, with diffusers' parameter
// names. Feature maps are (N, C, H, W), tokens (N, T, C), the embedding of the time `temb` (N, E).
//
//   models::ResnetBlock2D block(models::ResnetBlock2DOptions{320, 640, /*temb_channels=*/1280});
//   torch::Tensor y = block->forward(x, temb);  // (N, 320, H, W) -> (N, 640, H, W)

#include <torch/torch.h>

#include <cstdint>

namespace models {

/// GroupNorm with diffusers' argument order: how many groups, over how many channels.
torch::nn::GroupNorm make_group_norm(int64_t groups, int64_t channels, double eps);

/// A 3x3 convolution that keeps the resolution.
torch::nn::Conv2d conv3x3(int64_t in_channels, int64_t out_channels);

/// A 1x1 convolution.
torch::nn::Conv2d conv1x1(int64_t in_channels, int64_t out_channels);

struct ResnetBlock2DOptions {
  int64_t in_channels;
  int64_t out_channels;
  int64_t temb_channels = 0;  // 0: the block takes no time embedding
  int64_t groups = 32;
  double eps = 1e-6;
};

/// Two normalised 3x3 convolutions and a skip connection; the time embedding shifts the channels.
struct ResnetBlock2DImpl : torch::nn::Module {
  explicit ResnetBlock2DImpl(const ResnetBlock2DOptions& options);

  /// (N, in_channels, H, W) -> (N, out_channels, H, W).
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& temb = {});

  torch::nn::GroupNorm norm1;
  torch::nn::Conv2d conv1;
  torch::nn::Linear time_emb_proj{nullptr};  // null without time embedding
  torch::nn::GroupNorm norm2;
  torch::nn::Conv2d conv2;
  torch::nn::Conv2d conv_shortcut{nullptr};  // null where the channels agree
};
TORCH_MODULE(ResnetBlock2D);

struct AttentionOptions {
  int64_t channels;
  int64_t context_channels;
  int64_t heads;
  bool qkv_bias = false;
};

/// Attention of tokens to a context, which for self-attention is the tokens themselves.
struct AttentionImpl : torch::nn::Module {
  explicit AttentionImpl(const AttentionOptions& options);

  /// (N, T, channels) and (N, S, context_channels) -> (N, T, channels).
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& context);

  int64_t heads;
  torch::nn::Linear to_q;
  torch::nn::Linear to_k;
  torch::nn::Linear to_v;
  torch::nn::ModuleList to_out;  // one Linear; a list because diffusers has a dropout behind it
};
TORCH_MODULE(Attention);

/// Normalised self-attention of the pixels of a feature map, with one head and a skip connection.
struct SpatialAttentionImpl : AttentionImpl {
  SpatialAttentionImpl(int64_t channels, int64_t groups, double eps);

  /// (N, C, H, W) -> (N, C, H, W).
  torch::Tensor forward(const torch::Tensor& x);

  torch::nn::GroupNorm group_norm;
};
TORCH_MODULE(SpatialAttention);

/// Halves the resolution by a strided 3x3 convolution.
struct Downsample2DImpl : torch::nn::Module {
  /// `kSymmetric` pads one pixel on every side (UNet), `kBottomRight` one row below and one column
  /// to the right (VAE).
  enum class Padding { kSymmetric, kBottomRight };

  Downsample2DImpl(int64_t channels, Padding padding);
  torch::Tensor forward(const torch::Tensor& x);

  Padding padding;
  torch::nn::Conv2d conv;
};
TORCH_MODULE(Downsample2D);

/// Enlarges by repeating pixels, then convolves.
struct Upsample2DImpl : torch::nn::Module {
  explicit Upsample2DImpl(int64_t channels);

  /// (N, C, H, W) -> (N, C, 2H, 2W), or (N, C, size[0], size[1]) when a size is given: odd sizes do
  /// not survive halving and doubling.
  torch::Tensor forward(const torch::Tensor& x, torch::IntArrayRef size = {});

  torch::nn::Conv2d conv;
};
TORCH_MODULE(Upsample2D);

}  // namespace models
