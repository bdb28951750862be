#pragma once

// Llama (Touvron et al., 2023) with the architecture and the parameter names of Hugging Face's
// `LlamaForCausalLM`; by options that of `Qwen2ForCausalLM` and of `MistralForCausalLM`, too. The
// default configuration is TinyLlama 1.1B; every size can be reduced.
//
//   models::LlamaForCausalLM model(models::qwen2_5_05b());
//   models::load_safetensors(*model, "model.safetensors");
//   torch::Tensor logits = model->forward(tokens);       // (N, T, vocabulary)
//
// To decode token by token, keys and values are kept in a cache, which is allocated once:
//
//   models::LlamaDecoder decoder(model, /*batch=*/1, /*capacity=*/2048);
//   torch::Tensor next = decoder->forward(prompt, positions, slots);   // (1, vocabulary)
//   next = decoder->forward(token, position, slots);                   // and writes the cache

#include <torch/torch.h>

#include <cstdint>
#include <optional>

namespace models {

struct LlamaConfig {
  int64_t vocab_size = 32000;
  int64_t hidden_size = 2048;
  int64_t intermediate_size = 5632;
  int64_t num_hidden_layers = 22;
  int64_t num_attention_heads = 32;
  int64_t num_key_value_heads = 4;  // divides num_attention_heads: so many queries share a key
  double rope_theta = 10000;
  double rms_norm_eps = 1e-5;
  bool attention_bias = false;                 // of queries, keys and values, as Qwen2 has them
  bool tie_word_embeddings = false;            // logits are products with the embeddings
  std::optional<int64_t> sliding_window = {};  // a token sees so many, itself included
};

/// Qwen2.5 0.5B.
LlamaConfig qwen2_5_05b();

/// Divides rows by their root mean square, in float32 where they are of 16 bits.
struct LlamaRMSNormImpl : torch::nn::Module {
  explicit LlamaRMSNormImpl(const LlamaConfig& config);
  torch::Tensor forward(const torch::Tensor& hidden);

  double eps;
  torch::Tensor weight;
};
TORCH_MODULE(LlamaRMSNorm);

/// What all layers have in common in one call: where its tokens are, and what they see.
struct LlamaPlaces {
  torch::Tensor cosines, sines;  // (N, 1, T, head width), of the rotations
  torch::Tensor positions;       // (N, T)
  torch::Tensor mask;            // (N, 1, T, L): true where a token sees a position
};

/// Keys and values of one layer, (N, key heads, capacity, head width).
struct LlamaKeysAndValues {
  torch::Tensor keys, values;
};

/// Heads of queries in groups that share a key and a value; rotary positions.
struct LlamaAttentionImpl : torch::nn::Module {
  explicit LlamaAttentionImpl(const LlamaConfig& config);
  /// `hidden` (N, T, C). With a cache, keys and values are written there at the tokens' positions,
  /// and those of its first L positions are attended to.
  torch::Tensor forward(const torch::Tensor& hidden, const LlamaPlaces& places,
                        const LlamaKeysAndValues* cache);

  int64_t head_width;
  torch::nn::Linear q_proj;
  torch::nn::Linear k_proj;
  torch::nn::Linear v_proj;
  torch::nn::Linear o_proj;
};
TORCH_MODULE(LlamaAttention);

/// down(silu(gate(x)) * up(x)).
struct LlamaMLPImpl : torch::nn::Module {
  explicit LlamaMLPImpl(const LlamaConfig& config);
  torch::Tensor forward(const torch::Tensor& hidden);

  torch::nn::Linear gate_proj;
  torch::nn::Linear up_proj;
  torch::nn::Linear down_proj;
};
TORCH_MODULE(LlamaMLP);

struct LlamaDecoderLayerImpl : torch::nn::Module {
  explicit LlamaDecoderLayerImpl(const LlamaConfig& config);
  torch::Tensor forward(const torch::Tensor& hidden, const LlamaPlaces& places,
                        const LlamaKeysAndValues* cache);

  LlamaAttention self_attn;
  LlamaMLP mlp;
  LlamaRMSNorm input_layernorm;
  LlamaRMSNorm post_attention_layernorm;
};
TORCH_MODULE(LlamaDecoderLayer);

/// Keys and values of all layers, as buffers: allocated once, written in place.
struct LlamaCacheImpl : torch::nn::Module {
  /// Zeros for `batch` sequences of at most `capacity` tokens.
  LlamaCacheImpl(const LlamaConfig& config, int64_t batch, int64_t capacity,
                 torch::ScalarType dtype = torch::kFloat32);

  int64_t capacity;
  std::vector<LlamaKeysAndValues> layers;
};
TORCH_MODULE(LlamaCache);

struct LlamaModelImpl : torch::nn::Module {
  explicit LlamaModelImpl(const LlamaConfig& config);
  /// The normalised last hidden states, (N, T, C).
  torch::Tensor forward(const torch::Tensor& tokens, const LlamaPlaces& places, LlamaCache cache);

  torch::nn::Embedding embed_tokens;
  torch::nn::ModuleList layers;
  LlamaRMSNorm norm;
};
TORCH_MODULE(LlamaModel);

struct LlamaForCausalLMImpl : torch::nn::Module {
  explicit LlamaForCausalLMImpl(const LlamaConfig& config = {});

  /// `tokens` (N, T) of int64, from position 0 on -> logits (N, T, vocabulary). No cache.
  torch::Tensor forward(const torch::Tensor& tokens);

  /// `tokens` and their `positions` (N, T) of int64; `slots` (L), which are 0, 1, …, L - 1: the
  /// positions of the cache that are read. -> hidden states (N, T, C). Writes keys and values of
  /// the tokens to the cache at their positions. A token sees the positions up to its own. Throws
  /// c10::Error where a position is not below L, or L exceeds the cache, before anything is
  /// written.
  torch::Tensor hidden_states(const torch::Tensor& tokens, const torch::Tensor& positions,
                              const torch::Tensor& slots, LlamaCache cache);
  /// (…, C) -> (…, vocabulary).
  torch::Tensor logits(const torch::Tensor& hidden);

  LlamaConfig config;
  LlamaModel model;
  torch::nn::Linear lm_head{nullptr};  // none where embeddings are tied

 private:
  LlamaPlaces places(const torch::Tensor& positions, const torch::Tensor& slots) const;
  torch::Tensor frequencies_;  // (head width / 2) of float32
};
TORCH_MODULE(LlamaForCausalLM);

/// A model and its cache: the step of decoding as one module.
struct LlamaDecoderImpl : torch::nn::Module {
  /// `all_logits`: of all tokens, as to verify a draft or for prompts of different lengths, (N, T,
  /// vocabulary); else of the last one, (N, vocabulary). The cache has the model's dtype.
  LlamaDecoderImpl(LlamaForCausalLM model, int64_t batch, int64_t capacity,
                   bool all_logits = false);
  /// Another step over the same model and cache.
  LlamaDecoderImpl(LlamaForCausalLM model, LlamaCache cache, bool all_logits);

  /// See LlamaForCausalLMImpl::hidden_states.
  torch::Tensor forward(const torch::Tensor& tokens, const torch::Tensor& positions,
                        const torch::Tensor& slots);

  LlamaForCausalLM causal;
  LlamaCache cache;
  bool all_logits;
};
TORCH_MODULE(LlamaDecoder);

}  // namespace models
