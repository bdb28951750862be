#include "examples/models/bert.h"

#include <limits>

#include "examples/models/attention.h"

namespace models {
namespace {

using torch::nn::Dropout;
using torch::nn::Embedding;
using torch::nn::EmbeddingOptions;
using torch::nn::LayerNorm;
using torch::nn::LayerNormOptions;
using torch::nn::Linear;

LayerNorm make_layer_norm(const BertConfig& config) {
  return LayerNorm(LayerNormOptions({config.hidden_size}).eps(config.layer_norm_eps));
}

/// (N, T) of ones and zeros -> (N, 1, T, T), what is added to the scores of queries and keys: every
/// query sees every token, and no padding. Undefined where there is none.
torch::Tensor mask_of_scores(const torch::Tensor& attention_mask, torch::Dtype dtype) {
  if ((attention_mask == 1).all().is_nonzero()) return {};
  const int64_t batch = attention_mask.size(0), tokens = attention_mask.size(1);
  const torch::Tensor seen =
      attention_mask.unsqueeze(1).unsqueeze(2).expand({batch, 1, tokens, tokens}).to(dtype);
  const torch::Tensor padding = torch::rsub(seen, 1.0);
  const double lowest = dtype == torch::kFloat64 ? std::numeric_limits<double>::lowest()
                                                 : std::numeric_limits<float>::lowest();
  return padding.masked_fill(padding.to(torch::kBool), lowest);
}

}  // namespace

BertEmbeddingsImpl::BertEmbeddingsImpl(const BertConfig& config)
    : word_embeddings(register_module(
          "word_embeddings", Embedding(EmbeddingOptions(config.vocab_size, config.hidden_size)
                                           .padding_idx(config.pad_token_id)))),
      position_embeddings(register_module(
          "position_embeddings", Embedding(config.max_position_embeddings, config.hidden_size))),
      token_type_embeddings(register_module("token_type_embeddings",
                                            Embedding(config.type_vocab_size, config.hidden_size))),
      layer_norm(register_module("LayerNorm", make_layer_norm(config))),
      dropout(register_module("dropout", Dropout(config.hidden_dropout))),
      position_ids(register_buffer("position_ids",
                                   torch::arange(config.max_position_embeddings).unsqueeze(0))),
      token_type_ids(register_buffer(
          "token_type_ids", torch::zeros({1, config.max_position_embeddings}, torch::kInt64))) {}

torch::Tensor BertEmbeddingsImpl::forward(const torch::Tensor& input_ids,
                                          const torch::Tensor& types) {
  const int64_t tokens = input_ids.size(1);
  const torch::Tensor types_or_zeros =
      types.defined() ? types : token_type_ids.slice(1, 0, tokens).expand(input_ids.sizes());
  const torch::Tensor positions = position_ids.slice(1, 0, tokens);
  const torch::Tensor words = word_embeddings(input_ids);
  torch::Tensor sum = words + token_type_embeddings(types_or_zeros);
  sum += position_embeddings(positions);  // (N, T, C) += (1, T, C)
  return dropout(layer_norm(sum));
}

BertSelfAttentionImpl::BertSelfAttentionImpl(const BertConfig& config)
    : heads(config.num_attention_heads),
      dropout(config.attention_dropout),
      query(register_module("query", Linear(config.hidden_size, config.hidden_size))),
      key(register_module("key", Linear(config.hidden_size, config.hidden_size))),
      value(register_module("value", Linear(config.hidden_size, config.hidden_size))) {}

torch::Tensor BertSelfAttentionImpl::forward(const torch::Tensor& hidden,
                                             const torch::Tensor& mask) {
  const torch::Tensor queries = query(hidden), keys = key(hidden), values = value(hidden);
  return multi_head_attention(queries, keys, values, heads, mask, is_training() ? dropout : 0.0);
}

BertResidualImpl::BertResidualImpl(int64_t in_features, const BertConfig& config)
    : dense(register_module("dense", Linear(in_features, config.hidden_size))),
      layer_norm(register_module("LayerNorm", make_layer_norm(config))),
      dropout(register_module("dropout", Dropout(config.hidden_dropout))) {}

torch::Tensor BertResidualImpl::forward(const torch::Tensor& hidden,
                                        const torch::Tensor& residual) {
  return layer_norm(dropout(dense(hidden)) + residual);
}

BertAttentionImpl::BertAttentionImpl(const BertConfig& config)
    : self(register_module("self", BertSelfAttention(config))),
      output(register_module("output", BertResidual(config.hidden_size, config))) {}

torch::Tensor BertAttentionImpl::forward(const torch::Tensor& hidden, const torch::Tensor& mask) {
  return output(self(hidden, mask), hidden);
}

BertIntermediateImpl::BertIntermediateImpl(const BertConfig& config)
    : dense(register_module("dense", Linear(config.hidden_size, config.intermediate_size))) {}

torch::Tensor BertIntermediateImpl::forward(const torch::Tensor& hidden) {
  return torch::gelu(dense(hidden));
}

BertLayerImpl::BertLayerImpl(const BertConfig& config)
    : attention(register_module("attention", BertAttention(config))),
      intermediate(register_module("intermediate", BertIntermediate(config))),
      output(register_module("output", BertResidual(config.intermediate_size, config))) {}

torch::Tensor BertLayerImpl::forward(const torch::Tensor& hidden, const torch::Tensor& mask) {
  const torch::Tensor attended = attention(hidden, mask);
  return output(intermediate(attended), attended);
}

BertEncoderImpl::BertEncoderImpl(const BertConfig& config)
    : layer(register_module("layer", torch::nn::ModuleList())) {
  for (int64_t i = 0; i < config.num_hidden_layers; ++i) layer->push_back(BertLayer(config));
}

torch::Tensor BertEncoderImpl::forward(torch::Tensor hidden, const torch::Tensor& mask) {
  for (const auto& module : *layer) hidden = module->as<BertLayer>()->forward(hidden, mask);
  return hidden;
}

BertPoolerImpl::BertPoolerImpl(const BertConfig& config)
    : dense(register_module("dense", Linear(config.hidden_size, config.hidden_size))) {}

torch::Tensor BertPoolerImpl::forward(const torch::Tensor& hidden) {
  return torch::tanh(dense(hidden.select(1, 0)));
}

BertModelImpl::BertModelImpl(const BertConfig& config)
    : embeddings(register_module("embeddings", BertEmbeddings(config))),
      encoder(register_module("encoder", BertEncoder(config))),
      pooler(register_module("pooler", BertPooler(config))) {}

BertOutput BertModelImpl::forward(const torch::Tensor& input_ids,
                                  const torch::Tensor& attention_mask,
                                  const torch::Tensor& token_type_ids) {
  const torch::Tensor embedded = embeddings(input_ids, token_type_ids);
  const torch::Tensor mask = attention_mask.defined()
                                 ? mask_of_scores(attention_mask, embedded.scalar_type())
                                 : torch::Tensor();
  const torch::Tensor hidden = encoder(embedded, mask);
  return {hidden, pooler(hidden)};
}

}  // namespace models
