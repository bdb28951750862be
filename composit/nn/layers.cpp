#include "composit/nn/layers.h"

#include <cmath>

namespace composit::nn {

// torch's first values of a linear layer: both from the same interval.
Affine linear_layer(Initializer& init, const std::string& name, int64_t in, int64_t out) {
  const double bound = 1 / std::sqrt(static_cast<double>(in));
  return {init.uniform(name + ".weight", {out, in}, -bound, bound),
          init.uniform(name + ".bias", {out}, -bound, bound)};
}
Affine norm_layer(Initializer& init, const std::string& name, int64_t size) {
  return {init.ones(name + ".weight", {size}), init.zeros(name + ".bias", {size})};
}

LazyTensor linear(const LazyTensor& x, const Affine& layer) {
  return linear(x, layer.weight, layer.bias);
}
LazyTensor layer_norm(const LazyTensor& x, const Affine& layer, double eps) {
  return layer_norm(x, {x.size(-1)}, {.weight = layer.weight, .bias = layer.bias, .eps = eps});
}

// ---- transformers -------------------------------------------------------------------------------

MultiHeadAttention multi_head_attention_layer(Initializer& init, const std::string& name,
                                              int64_t size) {
  const auto projection = [&](const char* part) {
    return Affine{init.xavier_uniform(name + part + ".weight", {size, size}),
                  init.zeros(name + part + ".bias", {size})};
  };
  return {projection(".q_proj"), projection(".k_proj"), projection(".v_proj"),
          projection(".out_proj")};
}

// [batch, tokens, size] to [batch, heads, tokens, head_size].
static LazyTensor split_heads(const LazyTensor& x, int64_t head_size) {
  if (x.rank() != 3)
    throw UserError("[multi_head_attention] expected sizes [batch, tokens, size], received " +
                    str(x.sizes()));
  if (head_size < 1 || x.size(2) % head_size != 0)
    throw UserError("[multi_head_attention] expected a head_size that divides " +
                    std::to_string(x.size(2)) + ", received " + std::to_string(head_size));
  return transpose(reshape(x, {x.size(0), x.size(1), x.size(2) / head_size, head_size}), 1, 2);
}
static LazyTensor merge_heads(const LazyTensor& x) {
  return reshape(transpose(x, 1, 2), {x.size(0), x.size(2), x.size(1) * x.size(3)});
}

LazyTensor multi_head_attention(const LazyTensor& query, const LazyTensor& key,
                                const LazyTensor& value, const MultiHeadAttention& layer,
                                const MultiHeadAttentionOptions& o) {
  const LazyTensor heads =
      scaled_dot_product_attention(split_heads(linear(query, layer.query), o.head_size),
                                   split_heads(linear(key, layer.key), o.head_size),
                                   split_heads(linear(value, layer.value), o.head_size),
                                   {.attn_mask = o.attn_mask, .is_causal = o.is_causal});
  return linear(merge_heads(heads), layer.output);
}

LazyTensor feedforward(const LazyTensor& x, const Feedforward& layer,
                       const Activation& activation) {
  return linear(activation(linear(x, layer.inner)), layer.outer);
}

EncoderLayer encoder_layer(Initializer& init, const std::string& name, int64_t size,
                           int64_t inner_size) {
  return {.attention = multi_head_attention_layer(init, name + ".self_attn", size),
          .feedforward = {linear_layer(init, name + ".linear1", size, inner_size),
                          linear_layer(init, name + ".linear2", inner_size, size)},
          .attention_norm = norm_layer(init, name + ".norm1", size),
          .feedforward_norm = norm_layer(init, name + ".norm2", size)};
}

LazyTensor transformer_encoder_layer(const LazyTensor& x, const EncoderLayer& layer,
                                     const EncoderLayerOptions& o) {
  const auto attended = [&](const LazyTensor& y) {
    return multi_head_attention(
        y, y, y, layer.attention,
        {.head_size = o.head_size, .attn_mask = o.attn_mask, .is_causal = o.is_causal});
  };
  const auto fed = [&](const LazyTensor& y) {
    return feedforward(y, layer.feedforward, o.activation);
  };
  const auto norm1 = [&](const LazyTensor& y) {
    return layer_norm(y, layer.attention_norm, o.eps);
  };
  const auto norm2 = [&](const LazyTensor& y) {
    return layer_norm(y, layer.feedforward_norm, o.eps);
  };
  if (o.norm_first) {
    const LazyTensor h = x + attended(norm1(x));
    return h + fed(norm2(h));
  }
  const LazyTensor h = norm1(x + attended(x));
  return norm2(h + fed(h));
}

// ---- residual networks --------------------------------------------------------------------------

LazyTensor frozen_batch_norm(const LazyTensor& x, const FrozenBatchNorm& layer, double eps) {
  return batch_norm(x, {.running_mean = layer.running_mean,
                        .running_var = layer.running_var,
                        .weight = layer.affine.weight,
                        .bias = layer.affine.bias,
                        .eps = eps})
      .y;
}

ConvNorm conv_norm(Initializer& init, const std::string& conv, const std::string& norm,
                   const Ints& sizes) {
  const LazyTensor weight = init.kaiming_normal(conv + ".weight", sizes);
  return {weight,
          {norm_layer(init, norm, sizes[0]), full({sizes[0]}, 0, weight.dtype()),
           full({sizes[0]}, 1, weight.dtype())}};
}

ResnetBlock resnet_block(Initializer& init, const std::string& name, int64_t in, int64_t out,
                         int64_t stride) {
  ResnetBlock block{{conv_norm(init, name + ".conv1", name + ".bn1", {out, in, 3, 3}),
                     conv_norm(init, name + ".conv2", name + ".bn2", {out, out, 3, 3})}};
  if (stride != 1 || in != out)
    block.downsample =
        conv_norm(init, name + ".downsample.0", name + ".downsample.1", {out, in, 1, 1});
  return block;
}

// Padded so that at stride 1 the sizes stay.
static LazyTensor conv_norm(const LazyTensor& x, const ConvNorm& layer, int64_t stride) {
  const int64_t padding = layer.weight.size(-1) / 2;
  return frozen_batch_norm(conv2d(x, layer.weight, {.stride = {stride}, .padding = {padding}}),
                           layer.norm);
}

// The stride belongs to the first convolution that is not 1x1.
static size_t strided_one(const ResnetBlock& block) {
  for (size_t i = 0; i < block.convolutions.size(); ++i)
    if (block.convolutions[i].weight.size(-1) > 1) return i;
  return 0;
}

LazyTensor resnet_block(const LazyTensor& x, const ResnetBlock& block, int64_t stride) {
  const size_t strided = strided_one(block);
  LazyTensor h = x;
  for (size_t i = 0; i < block.convolutions.size(); ++i)
    h = conv_norm(i == 0 ? h : relu(h), block.convolutions[i], i == strided ? stride : 1);
  return relu(h + (block.downsample ? conv_norm(x, *block.downsample, stride) : x));
}

LazyTensor resnet_module(const LazyTensor& x, const std::vector<ResnetBlock>& blocks,
                         const Ints& strides) {
  if (blocks.size() != strides.size())
    throw UserError("[resnet_module] expected a stride for each of " +
                    std::to_string(blocks.size()) + " blocks, received " +
                    std::to_string(strides.size()));
  LazyTensor h = x;
  for (size_t i = 0; i < blocks.size(); ++i) h = resnet_block(h, blocks[i], strides[i]);
  return h;
}

}  // namespace composit::nn
