// Layers: plain compositions of functional.h, and structs for their parameters.
//
//   nn::Initializer init(1);
//   const nn::EncoderLayer layer = nn::encoder_layer(init, "encoder.0", 64, 256);
//   LazyTensor y = nn::transformer_encoder_layer(x, layer, {.head_size = 16});
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

// The parameters of a linear layer, a convolution or a norm.
struct Affine {
  LazyTensor weight, bias;  // [out, in] and [out]; of norms, one per channel
};
// Parameters "NAME.weight" [out, in] and "NAME.bias" [out], with torch's initial values.
Affine linear_layer(Initializer& init, const std::string& name, int64_t in, int64_t out);
// Ones and zeros.
Affine norm_layer(Initializer& init, const std::string& name, int64_t size);
// x [..., in]; gives [..., out].
LazyTensor linear(const LazyTensor& x, const Affine& layer);
// Over the last axis.
LazyTensor layer_norm(const LazyTensor& x, const Affine& layer, double eps = 1e-5);

// ---- transformers -------------------------------------------------------------------------------

// The four linear maps around attention.
struct MultiHeadAttention {
  Affine query, key, value, output;  // weights of sizes [size, size]
};
// Parameters "NAME.q_proj.weight", …, k_proj, v_proj and out_proj: Xavier-uniform; biases are
// zeros.
MultiHeadAttention multi_head_attention_layer(Initializer& init, const std::string& name,
                                              int64_t size);

struct MultiHeadAttentionOptions {
  int64_t head_size;          // must divide the size of the projections
  LazyTensor attn_mask = {};  // broadcast to [batch, heads, queries, keys]; see AttentionOptions
  bool is_causal = false;     // a query sees no later key
};
// query [batch, queries, size], key and value [batch, keys, size]; result [batch, queries, size].
LazyTensor multi_head_attention(const LazyTensor& query, const LazyTensor& key,
                                const LazyTensor& value, const MultiHeadAttention& layer,
                                const MultiHeadAttentionOptions& options);

using Activation = std::function<LazyTensor(const LazyTensor&)>;  // applied to each element

// Two linear maps with an activation between them.
struct Feedforward {
  Affine inner, outer;  // to the inner size, and back
};
// x [..., size]; gives the same sizes.
LazyTensor feedforward(const LazyTensor& x, const Feedforward& layer,
                       const Activation& activation = relu);

// Attention and feedforward, each followed by a norm.
struct EncoderLayer {
  MultiHeadAttention attention;             // of the layer
  Feedforward feedforward;                  // of the layer
  Affine attention_norm, feedforward_norm;  // their layer norms
};
// Parameters "NAME.self_attn.q_proj.weight", …: linear layers and norms as above.
EncoderLayer encoder_layer(Initializer& init, const std::string& name, int64_t size,
                           int64_t inner_size);

struct EncoderLayerOptions {
  int64_t head_size;             // size of a head; it divides the size of x
  LazyTensor attn_mask = {};     // as in AttentionOptions
  bool is_causal = false;        // a query sees no later key
  Activation activation = relu;  // used in the feedforward
  bool norm_first = false;       // norms before attention and feedforward, not after the sums
  double eps = 1e-5;             // added to variances in the norms
};
// x [batch, tokens, size], as torch.nn.TransformerEncoderLayer without dropout.
LazyTensor transformer_encoder_layer(const LazyTensor& x, const EncoderLayer& layer,
                                     const EncoderLayerOptions& options);

// ---- residual networks --------------------------------------------------------------------------

// A batch norm as it is used after training.
struct FrozenBatchNorm {
  Affine affine;                         // one weight and bias per channel
  LazyTensor running_mean, running_var;  // one per channel
};
// x [batch, channels, ...]; gives the same sizes.
LazyTensor frozen_batch_norm(const LazyTensor& x, const FrozenBatchNorm& layer, double eps = 1e-5);

// A convolution without bias, followed by a norm.
struct ConvNorm {
  LazyTensor weight;     // weight of the convolution
  FrozenBatchNorm norm;  // norm of the convolution's results
};
// A weight of these sizes under the name `conv`, Kaiming-normal, and a norm under `norm` as of mean
// 0 and variance 1.
ConvNorm conv_norm(Initializer& init, const std::string& conv, const std::string& norm,
                   const Ints& sizes);

// Convolutions with a norm each, relu between them, and a sum with the input. The first that is
// larger than 1x1 has the stride.
struct ResnetBlock {
  std::vector<ConvNorm> convolutions;       // in order
  std::optional<ConvNorm> downsample = {};  // applied to the input if sizes differ
};
// 3x3 and 3x3, from `in` to `out` channels.
ResnetBlock resnet_block(Initializer& init, const std::string& name, int64_t in, int64_t out,
                         int64_t stride);
// x [batch, channels, h, w].
LazyTensor resnet_block(const LazyTensor& x, const ResnetBlock& block, int64_t stride);
// Blocks one after the other; `strides` has one number per block.
LazyTensor resnet_module(const LazyTensor& x, const std::vector<ResnetBlock>& blocks,
                         const Ints& strides);

}  // namespace composit::nn
