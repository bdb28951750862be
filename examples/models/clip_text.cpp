#include "examples/models/clip_text.h"

#include "examples/models/attention.h"

namespace models {
namespace {

using torch::nn::Embedding;
using torch::nn::LayerNorm;
using torch::nn::LayerNormOptions;
using torch::nn::Linear;

LayerNorm make_layer_norm(const ClipTextConfig& config) {
  return LayerNorm(LayerNormOptions({config.hidden_size}).eps(config.layer_norm_eps));
}

/// The sigmoid approximation of GELU that CLIP was trained with.
torch::Tensor quick_gelu(const torch::Tensor& x) { return x * torch::sigmoid(1.702 * x); }

/// (T, T), true on and below the diagonal: a token sees itself and what precedes it.
torch::Tensor causal_mask(int64_t length, torch::Device device) {
  return torch::ones({length, length}, torch::dtype(torch::kBool).device(device)).tril();
}

}  // namespace

ClipTextEmbeddingsImpl::ClipTextEmbeddingsImpl(const ClipTextConfig& config)
    : token_embedding(
          register_module("token_embedding", Embedding(config.vocab_size, config.hidden_size))),
      position_embedding(register_module(
          "position_embedding", Embedding(config.max_position_embeddings, config.hidden_size))) {}

torch::Tensor ClipTextEmbeddingsImpl::forward(const torch::Tensor& input_ids) {
  const torch::Tensor positions = torch::arange(input_ids.size(1), input_ids.options());
  return token_embedding(input_ids) + position_embedding(positions);  // (N, T, C) + (T, C)
}

ClipAttentionImpl::ClipAttentionImpl(const ClipTextConfig& config)
    : heads(config.num_attention_heads),
      k_proj(register_module("k_proj", Linear(config.hidden_size, config.hidden_size))),
      v_proj(register_module("v_proj", Linear(config.hidden_size, config.hidden_size))),
      q_proj(register_module("q_proj", Linear(config.hidden_size, config.hidden_size))),
      out_proj(register_module("out_proj", Linear(config.hidden_size, config.hidden_size))) {}

torch::Tensor ClipAttentionImpl::forward(const torch::Tensor& hidden, const torch::Tensor& mask) {
  return out_proj(
      multi_head_attention(q_proj(hidden), k_proj(hidden), v_proj(hidden), heads, mask));
}

ClipMlpImpl::ClipMlpImpl(const ClipTextConfig& config)
    : fc1(register_module("fc1", Linear(config.hidden_size, config.intermediate_size))),
      fc2(register_module("fc2", Linear(config.intermediate_size, config.hidden_size))) {}

torch::Tensor ClipMlpImpl::forward(const torch::Tensor& hidden) {
  return fc2(quick_gelu(fc1(hidden)));
}

ClipEncoderLayerImpl::ClipEncoderLayerImpl(const ClipTextConfig& config)
    : self_attn(register_module("self_attn", ClipAttention(config))),
      layer_norm1(register_module("layer_norm1", make_layer_norm(config))),
      mlp(register_module("mlp", ClipMlp(config))),
      layer_norm2(register_module("layer_norm2", make_layer_norm(config))) {}

torch::Tensor ClipEncoderLayerImpl::forward(const torch::Tensor& hidden,
                                            const torch::Tensor& mask) {
  const torch::Tensor attended = hidden + self_attn(layer_norm1(hidden), mask);
  return attended + mlp(layer_norm2(attended));
}

ClipEncoderImpl::ClipEncoderImpl(const ClipTextConfig& config)
    : layers(register_module("layers", torch::nn::ModuleList())) {
  for (int64_t i = 0; i < config.num_hidden_layers; ++i)
    layers->push_back(ClipEncoderLayer(config));
}

torch::Tensor ClipEncoderImpl::forward(torch::Tensor hidden, const torch::Tensor& mask) {
  for (const auto& layer : *layers) hidden = layer->as<ClipEncoderLayer>()->forward(hidden, mask);
  return hidden;
}

ClipTextTransformerImpl::ClipTextTransformerImpl(const ClipTextConfig& config)
    : embeddings(register_module("embeddings", ClipTextEmbeddings(config))),
      encoder(register_module("encoder", ClipEncoder(config))),
      final_layer_norm(register_module("final_layer_norm", make_layer_norm(config))) {}

ClipTextOutput ClipTextTransformerImpl::forward(const torch::Tensor& input_ids) {
  const torch::Tensor mask = causal_mask(input_ids.size(1), input_ids.device());
  const torch::Tensor hidden = final_layer_norm(encoder(embeddings(input_ids), mask));
  const torch::Tensor batch = torch::arange(input_ids.size(0), input_ids.options());
  return {hidden, hidden.index({batch, input_ids.argmax(-1)})};
}

ClipTextModelImpl::ClipTextModelImpl(const ClipTextConfig& config)
    : text_model(register_module("text_model", ClipTextTransformer(config))) {}

ClipTextOutput ClipTextModelImpl::forward(const torch::Tensor& input_ids) {
  return text_model(input_ids);
}

}  // namespace models
