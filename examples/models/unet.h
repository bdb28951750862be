#pragma once

// The denoising UNet of Stable Diffusion 1.5 with the architecture and the parameter names of
// diffusers' `UNet2DConditionModel`. The defaults are the real sizes, 860 million parameters.
//
//   models::UNet2DConditionModel unet;
//   torch::Tensor noise = unet->forward(latents, timestep, text);  // of the shape of `latents`

#include <torch/torch.h>

#include <cstdint>
#include <vector>

#include "examples/models/diffusion_blocks.h"
#include "examples/models/unet_transformer.h"

namespace models {

struct UnetConfig {
  int64_t in_channels = 4;
  int64_t out_channels = 4;
  std::vector<int64_t> block_out_channels = {320, 640, 1280, 1280};  // the last does not attend
  int64_t layers_per_block = 2;
  int64_t cross_attention_dim = 768;  // channels of the text embeddings
  int64_t attention_heads = 8;        // at every level ("attention_head_dim" in diffusers' config)
  int64_t norm_groups = 32;
  double norm_eps = 1e-5;

  int64_t time_embedding_dim() const { return 4 * block_out_channels.front(); }
};

/// What a block sees besides its feature map.
struct UnetCondition {
  torch::Tensor temb;  // (N, time_embedding_dim)
  torch::Tensor text;  // (N, T, cross_attention_dim)
};

/// Two linear layers on the sinusoids of the timestep.
struct TimestepEmbeddingImpl : torch::nn::Module {
  TimestepEmbeddingImpl(int64_t in_channels, int64_t embedding_dim);
  torch::Tensor forward(const torch::Tensor& sinusoids);

  torch::nn::Linear linear_1;
  torch::nn::Linear linear_2;
};
TORCH_MODULE(TimestepEmbedding);

/// Residual blocks, each followed by a transformer where `attend`, then half the resolution, except
/// at the last level: diffusers' `CrossAttnDownBlock2D` and `DownBlock2D`.
struct UnetDownBlockImpl : torch::nn::Module {
  struct Options {
    int64_t in_channels;
    int64_t out_channels;
    bool attend;
    bool downsample;
  };

  UnetDownBlockImpl(const Options& options, const UnetConfig& config);

  /// Appends every intermediate feature map to `skips`, for the way up.
  torch::Tensor forward(torch::Tensor x, const UnetCondition& condition,
                        std::vector<torch::Tensor>& skips);

  torch::nn::ModuleList attentions;  // none, or one per residual block
  torch::nn::ModuleList resnets;
  torch::nn::ModuleList downsamplers;  // none or one
};
TORCH_MODULE(UnetDownBlock);

/// Residual block, transformer, residual block: diffusers' `UNetMidBlock2DCrossAttn`.
struct UnetMidBlockImpl : torch::nn::Module {
  explicit UnetMidBlockImpl(const UnetConfig& config);
  torch::Tensor forward(const torch::Tensor& x, const UnetCondition& condition);

  torch::nn::ModuleList attentions;
  torch::nn::ModuleList resnets;
};
TORCH_MODULE(UnetMidBlock);

/// Residual blocks that each take one feature map from the way down, each followed by a transformer
/// where `attend`, then twice the resolution, except at the last level: diffusers'
/// `CrossAttnUpBlock2D` and `UpBlock2D`.
struct UnetUpBlockImpl : torch::nn::Module {
  struct Options {
    int64_t in_channels;    // of the feature map from below
    int64_t out_channels;   // of this level
    int64_t skip_channels;  // of the last skip connection, which comes from the level above
    bool attend;
    bool upsample;
  };

  UnetUpBlockImpl(const Options& options, const UnetConfig& config);

  /// Takes its feature maps from the back of `skips`.
  torch::Tensor forward(torch::Tensor x, const UnetCondition& condition,
                        std::vector<torch::Tensor>& skips);

  torch::nn::ModuleList attentions;  // none, or one per residual block
  torch::nn::ModuleList resnets;
  torch::nn::ModuleList upsamplers;  // none or one
};
TORCH_MODULE(UnetUpBlock);

struct UNet2DConditionModelImpl : torch::nn::Module {
  explicit UNet2DConditionModelImpl(const UnetConfig& config = {});

  /// The noise (N, out_channels, H, W) in `sample` (N, in_channels, H, W).
  /// `timestep` of int64, () or (N). `text` (N, T, cross_attention_dim).
  torch::Tensor forward(const torch::Tensor& sample, const torch::Tensor& timestep,
                        const torch::Tensor& text);

  UnetConfig config;
  torch::nn::Conv2d conv_in;
  TimestepEmbedding time_embedding;
  torch::nn::ModuleList down_blocks;
  torch::nn::ModuleList up_blocks;
  UnetMidBlock mid_block;
  torch::nn::GroupNorm conv_norm_out;
  torch::nn::Conv2d conv_out;
};
TORCH_MODULE(UNet2DConditionModel);

}  // namespace models
