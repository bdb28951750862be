#pragma once

// The variational autoencoder of Stable Diffusion, with the architecture and the parameter names of
// diffusers' `AutoencoderKL`: images to latents of an eighth of their resolution, and back.
//
//   models::AutoencoderKL vae;
//   torch::Tensor latents = vae->encode(images).mode();  // (N, 3, 512, 512) -> (N, 4, 64, 64)
//   torch::Tensor again = vae->decode(latents);          // (N, 4, 64, 64) -> (N, 3, 512, 512)

#include <torch/torch.h>

#include <cstdint>
#include <vector>

#include "examples/models/diffusion_blocks.h"

namespace models {

struct VaeConfig {
  int64_t image_channels = 3;
  int64_t latent_channels = 4;
  std::vector<int64_t> block_out_channels = {128, 256, 512, 512};
  int64_t layers_per_block = 2;
  int64_t norm_groups = 32;
  double scaling_factor = 0.18215;  // brings latents to unit variance; applied by the pipeline
};

/// The Gaussian over latents that the encoder predicts for an image.
struct LatentDistribution {
  torch::Tensor mean;                // (N, latent_channels, H/8, W/8)
  torch::Tensor standard_deviation;  // the same

  torch::Tensor mode() const { return mean; }
  torch::Tensor sample() const { return mean + standard_deviation * torch::randn_like(mean); }
};

/// Residual blocks, then half the resolution, except in the last block.
struct DownEncoderBlock2DImpl : torch::nn::Module {
  DownEncoderBlock2DImpl(int64_t in_channels, int64_t out_channels, bool downsample,
                         const VaeConfig& config);
  torch::Tensor forward(torch::Tensor x);

  torch::nn::ModuleList resnets;
  torch::nn::ModuleList downsamplers;  // none or one
};
TORCH_MODULE(DownEncoderBlock2D);

/// Residual blocks, then twice the resolution, except in the last block.
struct UpDecoderBlock2DImpl : torch::nn::Module {
  UpDecoderBlock2DImpl(int64_t in_channels, int64_t out_channels, bool upsample,
                       const VaeConfig& config);
  torch::Tensor forward(torch::Tensor x);

  torch::nn::ModuleList resnets;
  torch::nn::ModuleList upsamplers;  // none or one
};
TORCH_MODULE(UpDecoderBlock2D);

/// Residual block, attention over all pixels, residual block.
struct VaeMidBlock2DImpl : torch::nn::Module {
  explicit VaeMidBlock2DImpl(const VaeConfig& config);
  torch::Tensor forward(const torch::Tensor& x);

  torch::nn::ModuleList attentions;
  torch::nn::ModuleList resnets;
};
TORCH_MODULE(VaeMidBlock2D);

struct VaeEncoderImpl : torch::nn::Module {
  explicit VaeEncoderImpl(const VaeConfig& config);

  /// (N, image_channels, H, W) -> (N, 2 latent_channels, H/8, W/8): means, then log variances.
  torch::Tensor forward(const torch::Tensor& image);

  torch::nn::Conv2d conv_in;
  torch::nn::ModuleList down_blocks;
  VaeMidBlock2D mid_block;
  torch::nn::GroupNorm conv_norm_out;
  torch::nn::Conv2d conv_out;
};
TORCH_MODULE(VaeEncoder);

struct VaeDecoderImpl : torch::nn::Module {
  explicit VaeDecoderImpl(const VaeConfig& config);

  /// (N, latent_channels, H/8, W/8) -> (N, image_channels, H, W).
  torch::Tensor forward(const torch::Tensor& latents);

  torch::nn::Conv2d conv_in;
  VaeMidBlock2D mid_block;
  torch::nn::ModuleList up_blocks;
  torch::nn::GroupNorm conv_norm_out;
  torch::nn::Conv2d conv_out;
};
TORCH_MODULE(VaeDecoder);

struct AutoencoderKLImpl : torch::nn::Module {
  explicit AutoencoderKLImpl(const VaeConfig& config = {});

  /// Images (N, 3, H, W) in [-1, 1]; H and W are multiples of 8.
  LatentDistribution encode(const torch::Tensor& images);

  /// Latents (N, 4, H/8, W/8) to images (N, 3, H, W), about in [-1, 1].
  torch::Tensor decode(const torch::Tensor& latents);

  /// Encodes and decodes: images (N, 3, H, W) to their reconstructions.
  torch::Tensor forward(const torch::Tensor& images);

  VaeConfig config;
  VaeEncoder encoder;
  VaeDecoder decoder;
  torch::nn::Conv2d quant_conv;
  torch::nn::Conv2d post_quant_conv;
};
TORCH_MODULE(AutoencoderKL);

}  // namespace models
