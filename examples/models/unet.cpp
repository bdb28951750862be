#include "examples/models/unet.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace models {
namespace {

using torch::nn::ModuleList;

ResnetBlock2D resnet(int64_t in_channels, int64_t out_channels, const UnetConfig& config) {
  return ResnetBlock2D(ResnetBlock2DOptions{in_channels, out_channels, config.time_embedding_dim(),
                                            config.norm_groups, config.norm_eps});
}

Transformer2DModel transformer(int64_t channels, const UnetConfig& config) {
  return Transformer2DModel(Transformer2DOptions{channels, config.cross_attention_dim,
                                                 config.attention_heads, config.norm_groups});
}

/// cos and sin of the timesteps at channels / 2 frequencies from 1 down to 1/10000. In float32
/// whatever the type of the model, as in diffusers. (N) -> (N, channels).
torch::Tensor timestep_sinusoids(const torch::Tensor& timesteps, int64_t channels) {
  const int64_t half = channels / 2;
  const torch::Tensor exponents =
      -std::log(10000.0) * torch::arange(half, timesteps.options().dtype(torch::kFloat32)) / half;
  const torch::Tensor angles =
      timesteps.unsqueeze(1).to(torch::kFloat32) * torch::exp(exponents).unsqueeze(0);
  return torch::cat({torch::cos(angles), torch::sin(angles)}, -1);
}

ModuleList make_down_blocks(const UnetConfig& config) {
  const std::vector<int64_t>& widths = config.block_out_channels;
  ModuleList blocks;
  for (size_t level = 0; level < widths.size(); ++level) {
    const bool lowest = level + 1 == widths.size();
    UnetDownBlockImpl::Options options;
    options.in_channels = widths[level == 0 ? 0 : level - 1];
    options.out_channels = widths[level];
    options.attend = !lowest;
    options.downsample = !lowest;
    blocks->push_back(UnetDownBlock(options, config));
  }
  return blocks;
}

ModuleList make_up_blocks(const UnetConfig& config) {
  const std::vector<int64_t>& widths = config.block_out_channels;
  ModuleList blocks;
  for (size_t level = widths.size(); level-- > 0;) {
    const bool lowest = level + 1 == widths.size();
    UnetUpBlockImpl::Options options;
    options.in_channels = widths[std::min(level + 1, widths.size() - 1)];
    options.out_channels = widths[level];
    options.skip_channels = widths[level == 0 ? 0 : level - 1];
    options.attend = !lowest;
    options.upsample = level > 0;
    blocks->push_back(UnetUpBlock(options, config));
  }
  return blocks;
}

/// Residual block `i` of a block and, where the block has them, the transformer behind it.
torch::Tensor apply_layer(ModuleList& resnets, ModuleList& attentions, size_t i,
                          const torch::Tensor& x, const UnetCondition& condition) {
  torch::Tensor hidden = resnets[i]->as<ResnetBlock2D>()->forward(x, condition.temb);
  if (attentions->is_empty()) return hidden;
  return attentions[i]->as<Transformer2DModel>()->forward(hidden, condition.text);
}

torch::Tensor take_last(std::vector<torch::Tensor>& tensors) {
  torch::Tensor last = std::move(tensors.back());
  tensors.pop_back();
  return last;
}

}  // namespace

TimestepEmbeddingImpl::TimestepEmbeddingImpl(int64_t in_channels, int64_t embedding_dim)
    : linear_1(register_module("linear_1", torch::nn::Linear(in_channels, embedding_dim))),
      linear_2(register_module("linear_2", torch::nn::Linear(embedding_dim, embedding_dim))) {}

torch::Tensor TimestepEmbeddingImpl::forward(const torch::Tensor& sinusoids) {
  return linear_2(torch::silu(linear_1(sinusoids)));
}

UnetDownBlockImpl::UnetDownBlockImpl(const Options& options, const UnetConfig& config)
    : attentions(register_module("attentions", ModuleList())),
      resnets(register_module("resnets", ModuleList())),
      downsamplers(register_module("downsamplers", ModuleList())) {
  for (int64_t i = 0; i < config.layers_per_block; ++i) {
    const int64_t in_channels = i == 0 ? options.in_channels : options.out_channels;
    resnets->push_back(resnet(in_channels, options.out_channels, config));
    if (options.attend) attentions->push_back(transformer(options.out_channels, config));
  }
  if (options.downsample) {
    downsamplers->push_back(
        Downsample2D(options.out_channels, Downsample2DImpl::Padding::kSymmetric));
  }
}

torch::Tensor UnetDownBlockImpl::forward(torch::Tensor x, const UnetCondition& condition,
                                         std::vector<torch::Tensor>& skips) {
  for (size_t i = 0; i < resnets->size(); ++i) {
    x = apply_layer(resnets, attentions, i, x, condition);
    skips.push_back(x);
  }
  for (const auto& down : *downsamplers) {
    x = down->as<Downsample2D>()->forward(x);
    skips.push_back(x);
  }
  return x;
}

UnetMidBlockImpl::UnetMidBlockImpl(const UnetConfig& config)
    : attentions(register_module("attentions", ModuleList())),
      resnets(register_module("resnets", ModuleList())) {
  const int64_t channels = config.block_out_channels.back();
  resnets->push_back(resnet(channels, channels, config));
  attentions->push_back(transformer(channels, config));
  resnets->push_back(resnet(channels, channels, config));
}

torch::Tensor UnetMidBlockImpl::forward(const torch::Tensor& x, const UnetCondition& condition) {
  const torch::Tensor hidden = apply_layer(resnets, attentions, 0, x, condition);
  return resnets[1]->as<ResnetBlock2D>()->forward(hidden, condition.temb);
}

UnetUpBlockImpl::UnetUpBlockImpl(const Options& options, const UnetConfig& config)
    : attentions(register_module("attentions", ModuleList())),
      resnets(register_module("resnets", ModuleList())),
      upsamplers(register_module("upsamplers", ModuleList())) {
  for (int64_t i = 0; i <= config.layers_per_block; ++i) {
    const int64_t from_below = i == 0 ? options.in_channels : options.out_channels;
    const bool last = i == config.layers_per_block;
    const int64_t from_skip = last ? options.skip_channels : options.out_channels;
    resnets->push_back(resnet(from_below + from_skip, options.out_channels, config));
    if (options.attend) attentions->push_back(transformer(options.out_channels, config));
  }
  if (options.upsample) upsamplers->push_back(Upsample2D(options.out_channels));
}

torch::Tensor UnetUpBlockImpl::forward(torch::Tensor x, const UnetCondition& condition,
                                       std::vector<torch::Tensor>& skips) {
  for (size_t i = 0; i < resnets->size(); ++i) {
    x = apply_layer(resnets, attentions, i, torch::cat({x, take_last(skips)}, 1), condition);
  }
  for (const auto& up : *upsamplers) {
    x = up->as<Upsample2D>()->forward(x, skips.back().sizes().slice(2));
  }
  return x;
}

UNet2DConditionModelImpl::UNet2DConditionModelImpl(const UnetConfig& config)
    : config(config),
      conv_in(register_module("conv_in",
                              conv3x3(config.in_channels, config.block_out_channels.front()))),
      time_embedding(register_module(
          "time_embedding",
          TimestepEmbedding(config.block_out_channels.front(), config.time_embedding_dim()))),
      down_blocks(register_module("down_blocks", make_down_blocks(config))),
      up_blocks(register_module("up_blocks", make_up_blocks(config))),
      mid_block(register_module("mid_block", UnetMidBlock(config))),
      conv_norm_out(register_module(
          "conv_norm_out",
          make_group_norm(config.norm_groups, config.block_out_channels.front(), config.norm_eps))),
      conv_out(register_module("conv_out",
                               conv3x3(config.block_out_channels.front(), config.out_channels))) {}

torch::Tensor UNet2DConditionModelImpl::forward(const torch::Tensor& sample,
                                                const torch::Tensor& timestep,
                                                const torch::Tensor& text) {
  const torch::Tensor sinusoids =
      timestep_sinusoids(timestep.expand({sample.size(0)}), config.block_out_channels.front());
  const UnetCondition condition{time_embedding(sinusoids.to(sample.dtype())), text};

  torch::Tensor x = conv_in(sample);
  std::vector<torch::Tensor> skips = {x};
  for (const auto& block : *down_blocks) {
    x = block->as<UnetDownBlock>()->forward(x, condition, skips);
  }
  x = mid_block(x, condition);
  for (const auto& block : *up_blocks) {
    x = block->as<UnetUpBlock>()->forward(x, condition, skips);
  }
  return conv_out(torch::silu(conv_norm_out(x)));
}

}  // namespace models
