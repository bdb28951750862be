// Layers: plain compositions of functional.h, and structs for their parameters.
//
//   nn::Initializer init(1);
//   const nn::EncoderLayer layer = nn::encoder_layer(init, "encoder.0", 64, 256);
//   Tensor y = nn::transformer_encoder_layer(x, layer, {.head_size = 16});
//
// A layer is a function of an input and a struct of tensors, which may be parameters, constants, or
// other values of a graph; the functions that take an Initializer make parameters named as torch's
// modules name them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "composit/nn/functional.h"
#include "composit/nn/initializer.h"

namespace composit::nn {

// Of a linear layer, a convolution or a norm.
struct Affine {
  Tensor weight, bias;
};
Affine linear_layer(Initializer& init, const std::string& name, int64_t in, int64_t out);
// Ones and zeros.
Affine norm_layer(Initializer& init, const std::string& name, int64_t size);
Tensor linear(const Tensor& x, const Affine& layer);
// Over the last axis.
Tensor layer_norm(const Tensor& x, const Affine& layer, double eps = 1e-5);

// ---- transformers -------------------------------------------------------------------------------

struct MultiHeadAttention {
  Affine query, key, value, output;
};
MultiHeadAttention multi_head_attention_layer(Initializer& init, const std::string& name,
                                              int64_t size);

struct MultiHeadAttentionOptions {
  int64_t head_size;      // must divide the size of the projections
  Tensor attn_mask = {};  // broadcast to [batch, heads, queries, keys]; see AttentionOptions
  bool is_causal = false;
};
// query [batch, queries, size], key and value [batch, keys, size]; result [batch, queries, size].
Tensor multi_head_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                            const MultiHeadAttention& layer,
                            const MultiHeadAttentionOptions& options);

using Activation = std::function<Tensor(const Tensor&)>;

struct Feedforward {
  Affine inner, outer;
};
Tensor feedforward(const Tensor& x, const Feedforward& layer, const Activation& activation = relu);

struct EncoderLayer {
  MultiHeadAttention attention;
  Feedforward feedforward;
  Affine attention_norm, feedforward_norm;
};
EncoderLayer encoder_layer(Initializer& init, const std::string& name, int64_t size,
                           int64_t inner_size);

struct EncoderLayerOptions {
  int64_t head_size;
  Tensor attn_mask = {};
  bool is_causal = false;
  Activation activation = relu;
  bool norm_first = false;  // norms in front of attention and feedforward, not behind the sums
  double eps = 1e-5;
};
// x [batch, tokens, size], as torch.nn.TransformerEncoderLayer without dropout.
Tensor transformer_encoder_layer(const Tensor& x, const EncoderLayer& layer,
                                 const EncoderLayerOptions& options);

// ---- residual networks --------------------------------------------------------------------------

// A batch norm as it is used after training.
struct FrozenBatchNorm {
  Affine affine;
  Tensor running_mean, running_var;
};
Tensor frozen_batch_norm(const Tensor& x, const FrozenBatchNorm& layer, double eps = 1e-5);

struct ConvNorm {
  Tensor weight;
  FrozenBatchNorm norm;
};
ConvNorm conv_norm(Initializer& init, const std::string& conv, const std::string& norm,
                   const Ints& sizes);

// Convolutions with a norm each, relu between them, and a sum with the input. The first that is
// larger than 1x1 has the stride.
struct ResnetBlock {
  std::vector<ConvNorm> convolutions;
  std::optional<ConvNorm> downsample = {};  // of the input, where sizes differ
};
// 3x3 and 3x3, from `in` to `out` channels.
ResnetBlock resnet_block(Initializer& init, const std::string& name, int64_t in, int64_t out,
                         int64_t stride);
Tensor resnet_block(const Tensor& x, const ResnetBlock& block, int64_t stride);
// Blocks one after the other; `strides` has one number per block.
Tensor resnet_module(const Tensor& x, const std::vector<ResnetBlock>& blocks, const Ints& strides);

}  // namespace composit::nn
