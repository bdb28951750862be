#include "examples/models/diffusion_blocks.h"

#include <vector>

#include "examples/models/attention.h"

namespace models {
namespace {

namespace F = torch::nn::functional;
using torch::nn::Conv2d;
using torch::nn::Conv2dOptions;
using torch::nn::Linear;
using torch::nn::LinearOptions;

Conv2d strided_convolution(int64_t channels, Downsample2DImpl::Padding padding) {
  const int64_t symmetric = padding == Downsample2DImpl::Padding::kSymmetric ? 1 : 0;
  return Conv2d(Conv2dOptions(channels, channels, 3).stride(2).padding(symmetric));
}

}  // namespace

torch::nn::GroupNorm make_group_norm(int64_t groups, int64_t channels, double eps) {
  return torch::nn::GroupNorm(torch::nn::GroupNormOptions(groups, channels).eps(eps));
}

torch::nn::Conv2d conv3x3(int64_t in_channels, int64_t out_channels) {
  return Conv2d(Conv2dOptions(in_channels, out_channels, 3).padding(1));
}

torch::nn::Conv2d conv1x1(int64_t in_channels, int64_t out_channels) {
  return Conv2d(Conv2dOptions(in_channels, out_channels, 1));
}

ResnetBlock2DImpl::ResnetBlock2DImpl(const ResnetBlock2DOptions& options)
    : norm1(register_module("norm1",
                            make_group_norm(options.groups, options.in_channels, options.eps))),
      conv1(register_module("conv1", conv3x3(options.in_channels, options.out_channels))),
      norm2(register_module("norm2",
                            make_group_norm(options.groups, options.out_channels, options.eps))),
      conv2(register_module("conv2", conv3x3(options.out_channels, options.out_channels))) {
  if (options.temb_channels > 0) {
    time_emb_proj =
        register_module("time_emb_proj", Linear(options.temb_channels, options.out_channels));
  }
  if (options.in_channels != options.out_channels) {
    conv_shortcut =
        register_module("conv_shortcut", conv1x1(options.in_channels, options.out_channels));
  }
}

torch::Tensor ResnetBlock2DImpl::forward(const torch::Tensor& x, const torch::Tensor& temb) {
  torch::Tensor hidden = conv1(torch::silu(norm1(x)));
  if (time_emb_proj) {
    hidden = hidden + time_emb_proj(torch::silu(temb)).unsqueeze(-1).unsqueeze(-1);
  }
  hidden = conv2(torch::silu(norm2(hidden)));
  return (conv_shortcut ? conv_shortcut(x) : x) + hidden;
}

AttentionImpl::AttentionImpl(const AttentionOptions& options)
    : heads(options.heads),
      to_q(register_module(
          "to_q",
          Linear(LinearOptions(options.channels, options.channels).bias(options.qkv_bias)))),
      to_k(register_module("to_k", Linear(LinearOptions(options.context_channels, options.channels)
                                              .bias(options.qkv_bias)))),
      to_v(register_module("to_v", Linear(LinearOptions(options.context_channels, options.channels)
                                              .bias(options.qkv_bias)))),
      to_out(register_module("to_out", torch::nn::ModuleList())) {
  to_out->push_back(Linear(options.channels, options.channels));
}

torch::Tensor AttentionImpl::forward(const torch::Tensor& x, const torch::Tensor& context) {
  const torch::Tensor attended = multi_head_attention(to_q(x), to_k(context), to_v(context), heads);
  return to_out[0]->as<Linear>()->forward(attended);
}

SpatialAttentionImpl::SpatialAttentionImpl(int64_t channels, int64_t groups, double eps)
    : AttentionImpl({channels, channels, /*heads=*/1, /*qkv_bias=*/true}),
      group_norm(register_module("group_norm", make_group_norm(groups, channels, eps))) {}

torch::Tensor SpatialAttentionImpl::forward(const torch::Tensor& x) {
  const torch::Tensor tokens = group_norm(x.flatten(2)).transpose(1, 2);  // (N, HW, C)
  const torch::Tensor attended = AttentionImpl::forward(tokens, tokens);
  return attended.transpose(1, 2).reshape(x.sizes()) + x;
}

Downsample2DImpl::Downsample2DImpl(int64_t channels, Padding padding)
    : padding(padding), conv(register_module("conv", strided_convolution(channels, padding))) {}

torch::Tensor Downsample2DImpl::forward(const torch::Tensor& x) {
  if (padding == Padding::kSymmetric) return conv(x);
  return conv(F::pad(x, F::PadFuncOptions({0, 1, 0, 1})));
}

Upsample2DImpl::Upsample2DImpl(int64_t channels)
    : conv(register_module("conv", conv3x3(channels, channels))) {}

torch::Tensor Upsample2DImpl::forward(const torch::Tensor& x, torch::IntArrayRef size) {
  const std::vector<int64_t> doubled = {2 * x.size(2), 2 * x.size(3)};
  auto options = F::InterpolateFuncOptions().mode(torch::kNearest);
  if (size.empty() || size == doubled) {
    options.scale_factor(std::vector<double>{2.0, 2.0});
  } else {
    options.size(size.vec());
  }
  return conv(F::interpolate(x, options));
}

}  // namespace models
