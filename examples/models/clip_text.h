#pragma once

// The text encoder of CLIP (Radford et al., 2021) with the architecture and the parameter names of
// Hugging Face's `CLIPTextModel`. The defaults are those of Stable Diffusion 1.5 (ViT-L/14).
//
//   models::ClipTextModel encoder;
//   models::ClipTextOutput out = encoder->forward(token_ids);  // (N, 77) -> (N, 77, 768)

#include <torch/torch.h>

#include <cstdint>

namespace models {

struct ClipTextConfig {
  int64_t vocab_size = 49408;
  int64_t hidden_size = 768;
  int64_t num_hidden_layers = 12;
  int64_t num_attention_heads = 12;
  int64_t intermediate_size = 3072;
  int64_t max_position_embeddings = 77;
  double layer_norm_eps = 1e-5;
};

struct ClipTextOutput {
  torch::Tensor last_hidden_state;  // (N, T, hidden_size)
  torch::Tensor pooler_output;      // (N, hidden_size), from the end-of-text token
};

struct ClipTextEmbeddingsImpl : torch::nn::Module {
  explicit ClipTextEmbeddingsImpl(const ClipTextConfig& config);
  torch::Tensor forward(const torch::Tensor& input_ids);

  torch::nn::Embedding token_embedding;
  torch::nn::Embedding position_embedding;
};
TORCH_MODULE(ClipTextEmbeddings);

struct ClipAttentionImpl : torch::nn::Module {
  explicit ClipAttentionImpl(const ClipTextConfig& config);
  torch::Tensor forward(const torch::Tensor& hidden, const torch::Tensor& mask);

  int64_t heads;
  torch::nn::Linear k_proj;
  torch::nn::Linear v_proj;
  torch::nn::Linear q_proj;
  torch::nn::Linear out_proj;
};
TORCH_MODULE(ClipAttention);

struct ClipMlpImpl : torch::nn::Module {
  explicit ClipMlpImpl(const ClipTextConfig& config);
  torch::Tensor forward(const torch::Tensor& hidden);

  torch::nn::Linear fc1;
  torch::nn::Linear fc2;
};
TORCH_MODULE(ClipMlp);

/// A pre-norm transformer layer.
struct ClipEncoderLayerImpl : torch::nn::Module {
  explicit ClipEncoderLayerImpl(const ClipTextConfig& config);
  torch::Tensor forward(const torch::Tensor& hidden, const torch::Tensor& mask);

  ClipAttention self_attn;
  torch::nn::LayerNorm layer_norm1;
  ClipMlp mlp;
  torch::nn::LayerNorm layer_norm2;
};
TORCH_MODULE(ClipEncoderLayer);

struct ClipEncoderImpl : torch::nn::Module {
  explicit ClipEncoderImpl(const ClipTextConfig& config);
  torch::Tensor forward(torch::Tensor hidden, const torch::Tensor& mask);

  torch::nn::ModuleList layers;
};
TORCH_MODULE(ClipEncoder);

struct ClipTextTransformerImpl : torch::nn::Module {
  explicit ClipTextTransformerImpl(const ClipTextConfig& config);
  ClipTextOutput forward(const torch::Tensor& input_ids);

  ClipTextEmbeddings embeddings;
  ClipEncoder encoder;
  torch::nn::LayerNorm final_layer_norm;
};
TORCH_MODULE(ClipTextTransformer);

struct ClipTextModelImpl : torch::nn::Module {
  explicit ClipTextModelImpl(const ClipTextConfig& config = {});

  /// `input_ids` (N, T) of int64, T at most max_position_embeddings. A token sees itself and what
  /// precedes it. The end-of-text token is the one with the largest id, as in CLIP's vocabulary.
  ClipTextOutput forward(const torch::Tensor& input_ids);

  ClipTextTransformer text_model;
};
TORCH_MODULE(ClipTextModel);

}  // namespace models
