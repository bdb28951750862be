#pragma once

// BERT encoder (Devlin et al., 2018) with the architecture and the parameter names of Hugging
// Face's `BertModel`. The default configuration is bert-base-uncased; every size can be reduced.
//
//   models::BertModel model;
//   models::load_safetensors(*model, "bert-base-uncased.safetensors");
//   model->eval();
//   models::BertOutput out = model->forward(input_ids, attention_mask);
//   out.pooler_output;  // (N, 768)

#include <torch/torch.h>

#include <cstdint>

namespace models {

struct BertConfig {
  int64_t vocab_size = 30522;
  int64_t hidden_size = 768;
  int64_t num_hidden_layers = 12;
  int64_t num_attention_heads = 12;
  int64_t intermediate_size = 3072;
  int64_t max_position_embeddings = 512;
  int64_t type_vocab_size = 2;
  int64_t pad_token_id = 0;
  double hidden_dropout = 0.1;
  double attention_dropout = 0.1;
  double layer_norm_eps = 1e-12;
};

struct BertOutput {
  torch::Tensor last_hidden_state;  // (N, T, hidden_size)
  torch::Tensor pooler_output;      // (N, hidden_size), from the first token
};

/// Sum of word, position and token type embeddings, normalised. Undefined types are all 0.
struct BertEmbeddingsImpl : torch::nn::Module {
  explicit BertEmbeddingsImpl(const BertConfig& config);
  torch::Tensor forward(const torch::Tensor& input_ids, const torch::Tensor& types);

  torch::nn::Embedding word_embeddings;
  torch::nn::Embedding position_embeddings;
  torch::nn::Embedding token_type_embeddings;
  torch::nn::LayerNorm layer_norm;
  torch::nn::Dropout dropout;
  torch::Tensor position_ids;    // (1, max_position_embeddings), 0, 1, 2, …
  torch::Tensor token_type_ids;  // (1, max_position_embeddings), zeros
};
TORCH_MODULE(BertEmbeddings);

struct BertSelfAttentionImpl : torch::nn::Module {
  explicit BertSelfAttentionImpl(const BertConfig& config);
  torch::Tensor forward(const torch::Tensor& hidden, const torch::Tensor& mask);

  int64_t heads;
  double dropout;
  torch::nn::Linear query;
  torch::nn::Linear key;
  torch::nn::Linear value;
};
TORCH_MODULE(BertSelfAttention);

/// What ends both halves of a layer: project, drop, add the residual, normalise.
struct BertResidualImpl : torch::nn::Module {
  BertResidualImpl(int64_t in_features, const BertConfig& config);
  torch::Tensor forward(const torch::Tensor& hidden, const torch::Tensor& residual);

  torch::nn::Linear dense;
  torch::nn::LayerNorm layer_norm;
  torch::nn::Dropout dropout;
};
TORCH_MODULE(BertResidual);

struct BertAttentionImpl : torch::nn::Module {
  explicit BertAttentionImpl(const BertConfig& config);
  torch::Tensor forward(const torch::Tensor& hidden, const torch::Tensor& mask);

  BertSelfAttention self;
  BertResidual output;
};
TORCH_MODULE(BertAttention);

struct BertIntermediateImpl : torch::nn::Module {
  explicit BertIntermediateImpl(const BertConfig& config);
  torch::Tensor forward(const torch::Tensor& hidden);

  torch::nn::Linear dense;
};
TORCH_MODULE(BertIntermediate);

struct BertLayerImpl : torch::nn::Module {
  explicit BertLayerImpl(const BertConfig& config);
  torch::Tensor forward(const torch::Tensor& hidden, const torch::Tensor& mask);

  BertAttention attention;
  BertIntermediate intermediate;
  BertResidual output;
};
TORCH_MODULE(BertLayer);

struct BertEncoderImpl : torch::nn::Module {
  explicit BertEncoderImpl(const BertConfig& config);
  torch::Tensor forward(torch::Tensor hidden, const torch::Tensor& mask);

  torch::nn::ModuleList layer;
};
TORCH_MODULE(BertEncoder);

struct BertPoolerImpl : torch::nn::Module {
  explicit BertPoolerImpl(const BertConfig& config);
  torch::Tensor forward(const torch::Tensor& hidden);

  torch::nn::Linear dense;
};
TORCH_MODULE(BertPooler);

struct BertModelImpl : torch::nn::Module {
  explicit BertModelImpl(const BertConfig& config = {});

  /// `input_ids` (N, T) of int64; T at most max_position_embeddings.
  /// `attention_mask` (N, T): 1 for tokens, 0 for padding; undefined means no padding. Its values
  /// decide whether attention has a mask at all, as in the original.
  /// `token_type_ids` (N, T) of int64; undefined means all 0.
  BertOutput forward(const torch::Tensor& input_ids, const torch::Tensor& attention_mask = {},
                     const torch::Tensor& token_type_ids = {});

  BertEmbeddings embeddings;
  BertEncoder encoder;
  BertPooler pooler;
};
TORCH_MODULE(BertModel);

}  // namespace models
