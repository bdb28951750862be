#include "examples/models/vae.h"

#include <algorithm>

namespace models {
namespace {

constexpr double kNormEps = 1e-6;

ResnetBlock2D resnet(int64_t in_channels, int64_t out_channels, const VaeConfig& config) {
  return ResnetBlock2D(ResnetBlock2DOptions{in_channels, out_channels, /*temb_channels=*/0,
                                            config.norm_groups, kNormEps});
}

torch::nn::ModuleList resnets_of_block(int64_t in_channels, int64_t out_channels, int64_t count,
                                       const VaeConfig& config) {
  torch::nn::ModuleList blocks;
  for (int64_t i = 0; i < count; ++i) {
    blocks->push_back(resnet(i == 0 ? in_channels : out_channels, out_channels, config));
  }
  return blocks;
}

torch::nn::ModuleList make_down_blocks(const VaeConfig& config) {
  const std::vector<int64_t>& widths = config.block_out_channels;
  torch::nn::ModuleList blocks;
  for (size_t level = 0; level < widths.size(); ++level) {
    const int64_t in_channels = widths[level == 0 ? 0 : level - 1];
    const bool downsample = level + 1 < widths.size();
    blocks->push_back(DownEncoderBlock2D(in_channels, widths[level], downsample, config));
  }
  return blocks;
}

torch::nn::ModuleList make_up_blocks(const VaeConfig& config) {
  const std::vector<int64_t>& widths = config.block_out_channels;
  torch::nn::ModuleList blocks;
  for (size_t level = widths.size(); level-- > 0;) {
    const int64_t in_channels = widths[std::min(level + 1, widths.size() - 1)];
    const bool upsample = level > 0;
    blocks->push_back(UpDecoderBlock2D(in_channels, widths[level], upsample, config));
  }
  return blocks;
}

torch::Tensor apply_resnets(torch::nn::ModuleList& resnets, torch::Tensor x) {
  for (const auto& block : *resnets) x = block->as<ResnetBlock2D>()->forward(x);
  return x;
}

}  // namespace

DownEncoderBlock2DImpl::DownEncoderBlock2DImpl(int64_t in_channels, int64_t out_channels,
                                               bool downsample, const VaeConfig& config)
    : resnets(register_module(
          "resnets", resnets_of_block(in_channels, out_channels, config.layers_per_block, config))),
      downsamplers(register_module("downsamplers", torch::nn::ModuleList())) {
  if (downsample) {
    downsamplers->push_back(Downsample2D(out_channels, Downsample2DImpl::Padding::kBottomRight));
  }
}

torch::Tensor DownEncoderBlock2DImpl::forward(torch::Tensor x) {
  x = apply_resnets(resnets, x);
  for (const auto& down : *downsamplers) x = down->as<Downsample2D>()->forward(x);
  return x;
}

UpDecoderBlock2DImpl::UpDecoderBlock2DImpl(int64_t in_channels, int64_t out_channels, bool upsample,
                                           const VaeConfig& config)
    : resnets(register_module("resnets", resnets_of_block(in_channels, out_channels,
                                                          config.layers_per_block + 1, config))),
      upsamplers(register_module("upsamplers", torch::nn::ModuleList())) {
  if (upsample) upsamplers->push_back(Upsample2D(out_channels));
}

torch::Tensor UpDecoderBlock2DImpl::forward(torch::Tensor x) {
  x = apply_resnets(resnets, x);
  for (const auto& up : *upsamplers) x = up->as<Upsample2D>()->forward(x);
  return x;
}

VaeMidBlock2DImpl::VaeMidBlock2DImpl(const VaeConfig& config)
    : attentions(register_module("attentions", torch::nn::ModuleList())),
      resnets(register_module("resnets", torch::nn::ModuleList())) {
  const int64_t channels = config.block_out_channels.back();
  attentions->push_back(SpatialAttention(channels, config.norm_groups, kNormEps));
  resnets->push_back(resnet(channels, channels, config));
  resnets->push_back(resnet(channels, channels, config));
}

torch::Tensor VaeMidBlock2DImpl::forward(const torch::Tensor& x) {
  torch::Tensor hidden = resnets[0]->as<ResnetBlock2D>()->forward(x);
  hidden = attentions[0]->as<SpatialAttention>()->forward(hidden);
  return resnets[1]->as<ResnetBlock2D>()->forward(hidden);
}

VaeEncoderImpl::VaeEncoderImpl(const VaeConfig& config)
    : conv_in(register_module("conv_in",
                              conv3x3(config.image_channels, config.block_out_channels.front()))),
      down_blocks(register_module("down_blocks", make_down_blocks(config))),
      mid_block(register_module("mid_block", VaeMidBlock2D(config))),
      conv_norm_out(register_module(
          "conv_norm_out",
          make_group_norm(config.norm_groups, config.block_out_channels.back(), kNormEps))),
      conv_out(register_module(
          "conv_out", conv3x3(config.block_out_channels.back(), 2 * config.latent_channels))) {}

torch::Tensor VaeEncoderImpl::forward(const torch::Tensor& image) {
  torch::Tensor x = conv_in(image);
  for (const auto& block : *down_blocks) x = block->as<DownEncoderBlock2D>()->forward(x);
  return conv_out(torch::silu(conv_norm_out(mid_block(x))));
}

VaeDecoderImpl::VaeDecoderImpl(const VaeConfig& config)
    : conv_in(register_module("conv_in",
                              conv3x3(config.latent_channels, config.block_out_channels.back()))),
      mid_block(register_module("mid_block", VaeMidBlock2D(config))),
      up_blocks(register_module("up_blocks", make_up_blocks(config))),
      conv_norm_out(register_module(
          "conv_norm_out",
          make_group_norm(config.norm_groups, config.block_out_channels.front(), kNormEps))),
      conv_out(register_module(
          "conv_out", conv3x3(config.block_out_channels.front(), config.image_channels))) {}

torch::Tensor VaeDecoderImpl::forward(const torch::Tensor& latents) {
  torch::Tensor x = mid_block(conv_in(latents));
  for (const auto& block : *up_blocks) x = block->as<UpDecoderBlock2D>()->forward(x);
  return conv_out(torch::silu(conv_norm_out(x)));
}

AutoencoderKLImpl::AutoencoderKLImpl(const VaeConfig& config)
    : config(config),
      encoder(register_module("encoder", VaeEncoder(config))),
      decoder(register_module("decoder", VaeDecoder(config))),
      quant_conv(register_module("quant_conv",
                                 conv1x1(2 * config.latent_channels, 2 * config.latent_channels))),
      post_quant_conv(register_module("post_quant_conv",
                                      conv1x1(config.latent_channels, config.latent_channels))) {}

LatentDistribution AutoencoderKLImpl::encode(const torch::Tensor& images) {
  const auto moments = quant_conv(encoder(images)).chunk(2, 1);
  return {moments[0], torch::exp(0.5 * moments[1].clamp(-30.0, 20.0))};
}

torch::Tensor AutoencoderKLImpl::decode(const torch::Tensor& latents) {
  return decoder(post_quant_conv(latents));
}

torch::Tensor AutoencoderKLImpl::forward(const torch::Tensor& images) {
  return decode(encode(images).mode());
}

}  // namespace models
