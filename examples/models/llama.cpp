#include "examples/models/llama.h"

#include <string>

namespace models {
namespace {

using torch::nn::Embedding;
using torch::nn::Linear;
using torch::nn::LinearOptions;

int64_t head_width_of(const LlamaConfig& config) {
  TORCH_CHECK(config.num_key_value_heads > 0 &&
                  config.num_attention_heads % config.num_key_value_heads == 0 &&
                  config.hidden_size % (2 * config.num_attention_heads) == 0,
              "expected heads of an even width, in groups of one size, received ",
              config.num_attention_heads, " heads, ", config.num_key_value_heads,
              " of keys, and a hidden size of ", config.hidden_size);
  return config.hidden_size / config.num_attention_heads;
}

Linear linear(int64_t from, int64_t to, bool bias = false) {
  return Linear(LinearOptions(from, to).bias(bias));
}

/// Turns each pair of element i and i + width / 2 by its angle.
torch::Tensor rotated(const torch::Tensor& x, const LlamaPlaces& places) {
  const std::vector<torch::Tensor> halves = x.chunk(2, -1);
  return x * places.cosines + torch::cat({-halves[1], halves[0]}, -1) * places.sines;
}

/// Writes the rows (N, heads, T, width) at positions (N, T) of a cache.
void write(const torch::Tensor& cache, const torch::Tensor& positions, const torch::Tensor& rows) {
  const auto options = positions.options();
  const torch::Tensor batch = torch::arange(rows.size(0), options).view({-1, 1, 1}),
                      heads = torch::arange(rows.size(1), options).view({1, -1, 1});
  cache.index_put_({batch, heads, positions.unsqueeze(1)}, rows);
}

}  // namespace

LlamaConfig qwen2_5_05b() {
  LlamaConfig config;
  config.vocab_size = 151936;
  config.hidden_size = 896;
  config.intermediate_size = 4864;
  config.num_hidden_layers = 24;
  config.num_attention_heads = 14;
  config.num_key_value_heads = 2;
  config.rope_theta = 1e6;
  config.rms_norm_eps = 1e-6;
  config.attention_bias = true;
  config.tie_word_embeddings = true;
  return config;
}

LlamaRMSNormImpl::LlamaRMSNormImpl(const LlamaConfig& config)
    : eps(config.rms_norm_eps),
      weight(register_parameter("weight", torch::ones({config.hidden_size}))) {}

torch::Tensor LlamaRMSNormImpl::forward(const torch::Tensor& hidden) {
  const torch::ScalarType dtype = hidden.scalar_type();
  const torch::Tensor wide = dtype == torch::kFloat64 ? hidden : hidden.to(torch::kFloat32);
  const torch::Tensor scale = torch::rsqrt(wide.square().mean(-1, /*keepdim=*/true) + eps);
  return weight * (wide * scale).to(dtype);
}

LlamaAttentionImpl::LlamaAttentionImpl(const LlamaConfig& config)
    : head_width(head_width_of(config)),
      q_proj(register_module(
          "q_proj", linear(config.hidden_size, config.hidden_size, config.attention_bias))),
      k_proj(register_module("k_proj",
                             linear(config.hidden_size, config.num_key_value_heads * head_width,
                                    config.attention_bias))),
      v_proj(register_module("v_proj",
                             linear(config.hidden_size, config.num_key_value_heads * head_width,
                                    config.attention_bias))),
      o_proj(register_module("o_proj", linear(config.hidden_size, config.hidden_size))) {}

torch::Tensor LlamaAttentionImpl::forward(const torch::Tensor& hidden, const LlamaPlaces& places,
                                          const LlamaKeysAndValues* cache) {
  const auto heads = [&](const torch::Tensor& x) {  // (N, heads, T, width)
    return x.view({x.size(0), x.size(1), -1, head_width}).transpose(1, 2);
  };
  const torch::Tensor queries = rotated(heads(q_proj(hidden)), places);
  torch::Tensor keys = rotated(heads(k_proj(hidden)), places), values = heads(v_proj(hidden));
  if (cache != nullptr) {
    write(cache->keys, places.positions, keys);
    write(cache->values, places.positions, values);
    keys = cache->keys.slice(2, 0, places.mask.size(3));
    values = cache->values.slice(2, 0, places.mask.size(3));
  }
  const torch::Tensor attended = torch::scaled_dot_product_attention(
      queries, keys, values, places.mask, /*dropout_p=*/0.0, /*is_causal=*/false,
      /*scale=*/std::nullopt, /*enable_gqa=*/queries.size(1) != keys.size(1));
  return o_proj(attended.transpose(1, 2).reshape(hidden.sizes()));
}

LlamaMLPImpl::LlamaMLPImpl(const LlamaConfig& config)
    : gate_proj(register_module("gate_proj", linear(config.hidden_size, config.intermediate_size))),
      up_proj(register_module("up_proj", linear(config.hidden_size, config.intermediate_size))),
      down_proj(
          register_module("down_proj", linear(config.intermediate_size, config.hidden_size))) {}

torch::Tensor LlamaMLPImpl::forward(const torch::Tensor& hidden) {
  return down_proj(torch::silu(gate_proj(hidden)) * up_proj(hidden));
}

LlamaDecoderLayerImpl::LlamaDecoderLayerImpl(const LlamaConfig& config)
    : self_attn(register_module("self_attn", LlamaAttention(config))),
      mlp(register_module("mlp", LlamaMLP(config))),
      input_layernorm(register_module("input_layernorm", LlamaRMSNorm(config))),
      post_attention_layernorm(register_module("post_attention_layernorm", LlamaRMSNorm(config))) {}

torch::Tensor LlamaDecoderLayerImpl::forward(const torch::Tensor& hidden, const LlamaPlaces& places,
                                             const LlamaKeysAndValues* cache) {
  const torch::Tensor attended = hidden + self_attn(input_layernorm(hidden), places, cache);
  return attended + mlp(post_attention_layernorm(attended));
}

LlamaCacheImpl::LlamaCacheImpl(const LlamaConfig& config, int64_t batch, int64_t positions,
                               torch::ScalarType dtype)
    : capacity(positions) {
  for (int64_t i = 0; i < config.num_hidden_layers; ++i) {
    const auto zeros = [&](const std::string& name) {
      return register_buffer(
          name + "_" + std::to_string(i),
          torch::zeros({batch, config.num_key_value_heads, capacity, head_width_of(config)},
                       dtype));
    };
    const torch::Tensor keys = zeros("keys");
    layers.push_back({keys, zeros("values")});
  }
}

LlamaModelImpl::LlamaModelImpl(const LlamaConfig& config)
    : embed_tokens(
          register_module("embed_tokens", Embedding(config.vocab_size, config.hidden_size))),
      layers(register_module("layers", torch::nn::ModuleList())),
      norm(register_module("norm", LlamaRMSNorm(config))) {
  for (int64_t i = 0; i < config.num_hidden_layers; ++i)
    layers->push_back(LlamaDecoderLayer(config));
}

torch::Tensor LlamaModelImpl::forward(const torch::Tensor& tokens, const LlamaPlaces& places,
                                      LlamaCache cache) {
  torch::Tensor hidden = embed_tokens(tokens);
  for (size_t i = 0; i < layers->size(); ++i)
    hidden = layers[i]->as<LlamaDecoderLayer>()->forward(
        hidden, places, cache.is_empty() ? nullptr : &cache->layers[i]);
  return norm(hidden);
}

LlamaForCausalLMImpl::LlamaForCausalLMImpl(const LlamaConfig& options)
    : config(options), model(register_module("model", LlamaModel(config))) {
  if (!config.tie_word_embeddings)
    lm_head = register_module("lm_head", linear(config.hidden_size, config.vocab_size));
  const int64_t width = head_width_of(config);
  const torch::Tensor powers = torch::arange(0, width, 2).to(torch::kFloat32) / width;
  frequencies_ = 1.0 / torch::pow(config.rope_theta, powers);  // each rounded, as the original does
}

LlamaPlaces LlamaForCausalLMImpl::places(const torch::Tensor& positions,
                                         const torch::Tensor& slots) const {
  // In float32 whatever the model is, as the original: the angles of large positions are rounded.
  torch::Tensor angles = positions.unsqueeze(-1).to(torch::kFloat32) * frequencies_;
  angles = torch::cat({angles, angles}, -1).unsqueeze(1);
  const torch::Tensor own = positions.view({positions.size(0), 1, -1, 1});
  torch::Tensor mask = slots <= own;
  if (config.sliding_window) mask = mask & (slots > own - *config.sliding_window);
  const torch::ScalarType dtype = model->norm->weight.scalar_type();
  return {angles.cos().to(dtype), angles.sin().to(dtype), positions, mask};
}

torch::Tensor LlamaForCausalLMImpl::forward(const torch::Tensor& tokens) {
  const torch::Tensor slots = torch::arange(tokens.size(1), tokens.options());
  const torch::Tensor positions = slots.unsqueeze(0);
  return logits(model(tokens, places(positions, slots), LlamaCache(nullptr)));
}

torch::Tensor LlamaForCausalLMImpl::hidden_states(const torch::Tensor& tokens,
                                                  const torch::Tensor& positions,
                                                  const torch::Tensor& slots, LlamaCache cache) {
  TORCH_CHECK(slots.size(0) <= cache->capacity, "expected at most ", cache->capacity,
              " positions, which the cache has, received ", slots.size(0));
  TORCH_CHECK(((positions >= 0) & (positions < slots.size(0))).all().item<bool>(),
              "expected positions from 0 to ", slots.size(0) - 1, ", received others");
  return model(tokens, places(positions, slots), cache);
}

torch::Tensor LlamaForCausalLMImpl::logits(const torch::Tensor& hidden) {
  return config.tie_word_embeddings ? torch::linear(hidden, model->embed_tokens->weight)
                                    : lm_head(hidden);
}

LlamaDecoderImpl::LlamaDecoderImpl(LlamaForCausalLM model, int64_t batch, int64_t capacity,
                                   bool all)
    : LlamaDecoderImpl(
          model,
          LlamaCache(model->config, batch, capacity, model->model->norm->weight.scalar_type()),
          all) {}

LlamaDecoderImpl::LlamaDecoderImpl(LlamaForCausalLM model, LlamaCache kept, bool all)
    : causal(register_module("causal", std::move(model))),
      cache(register_module("cache", std::move(kept))),
      all_logits(all) {}

torch::Tensor LlamaDecoderImpl::forward(const torch::Tensor& tokens, const torch::Tensor& positions,
                                        const torch::Tensor& slots) {
  const torch::Tensor hidden = causal->hidden_states(tokens, positions, slots, cache);
  return causal->logits(all_logits ? hidden : hidden.select(1, -1));
}

}  // namespace models
