#include "flashlight.hpp"
#include "flashlight_guards.hpp"
#include "flashlight_arena.hpp"

namespace bert_base_sizes {

struct LayerNormWeights {
  const float* weight;
  const float* bias;
};

struct AttentionWeights {
  const float (*query_weight)[768];
  const float* query_bias;
  const float (*key_weight)[768];
  const float* key_bias;
  const float (*value_weight)[768];
  const float* value_bias;
  const float (*dense_weight)[768];
  const float* dense_bias;
  LayerNormWeights layer_norm;
};

struct EncoderLayerWeights {
  const float (*intermediate_dense_weight)[768];
  const float* intermediate_dense_bias;
  const float (*output_dense_weight)[3072];
  const float* output_dense_bias;
  AttentionWeights attention;
  LayerNormWeights layer_norm;
};

struct Weights {
  const float (*word_embeddings_weight)[768];
  const float (*position_embeddings_weight)[768];
  const float (*token_type_embeddings_weight)[768];
  const float (*dense_weight)[768];
  const float* dense_bias;
  const int64_t (*embeddings_position_ids)[512];
  const int64_t (*embeddings_token_type_ids)[512];
  LayerNormWeights layer_norm;
  EncoderLayerWeights encoder_layer[12];
};

// encoder.layer.0.attention.output.LayerNorm and 2 like it
void layer_norm(const LayerNormWeights& weights, const float (*x)[768],
                float (*__restrict add)[768], int tokens) {
  for (int i = 0; i < tokens; ++i) {
    const float mean = fl::sum<float>(768, [&](int j) { return x[i][j]; }) / 768.0f;
    const float sum = fl::sum<float>(768, [&](int j) {
      const float difference = x[i][j] - mean;
      return difference * difference;
    });
    const float rsqrt = fl::rsqrt(sum / 768.0f + 1e-12f);
    for (int j = 0; j < 768; ++j)
      add[i][j] = (x[i][j] - mean) * rsqrt * weights.weight[j] + weights.bias[j];
  }
}

// encoder.layer.0.attention.self.query
void attention(const AttentionWeights& weights, const float (*x)[768],
               float (*__restrict attention_output_layer_norm)[768], int tokens,
               fl::Stack& memory) {
  fl::Frame frame(memory);
  float (*const query)[768] = frame.take<float[768]>(tokens);
  fl::product<float>(
      tokens, 768, 768, [&](int i, int k) -> auto& { return x[i][k]; },
      [&](int k, int j) -> auto& { return weights.query_weight[j][k]; },
      [&](int i, int j, float sum_2) { query[i][j] = sum_2 + weights.query_bias[j]; });
  float (*const key)[768] = frame.take<float[768]>(tokens);
  fl::product<float>(
      tokens, 768, 768, [&](int i, int k) -> auto& { return x[i][k]; },
      [&](int k, int j) -> auto& { return weights.key_weight[j][k]; },
      [&](int i, int j, float sum_2) { key[i][j] = sum_2 + weights.key_bias[j]; });
  float (*const value)[768] = frame.take<float[768]>(tokens);
  fl::product<float>(
      tokens, 768, 768, [&](int i, int k) -> auto& { return x[i][k]; },
      [&](int k, int j) -> auto& { return weights.value_weight[j][k]; },
      [&](int i, int j, float sum_2) { value[i][j] = sum_2 + weights.value_bias[j]; });
  const fl::View<float, 2> mul = frame.view<float>(tokens, tokens);
  const fl::View<float, 2> exp = frame.view<float>(tokens, tokens);
  float* const sum = frame.take<float>(tokens);
  float (*const permute)[12][64] = frame.take<float[12][64]>(tokens);
  for (int i = 0; i < 12; ++i) {
    fl::product<float>(
        tokens, tokens, 64, [&](int j, int k) -> auto& { return query[j][i * 64 + k]; },
        [&](int k, int m) -> auto& { return key[m][i * 64 + k]; },
        [&](int j, int m, float sum_2) { mul[j][m] = sum_2 * 0.125f; });
    for (int j = 0; j < tokens; ++j) {
      const float amax = fl::largest<float>(tokens, [&](int k) { return mul[j][k]; });
      for (int k = 0; k < tokens; ++k) exp[j][k] = fl::exp(mul[j][k] - amax);
      sum[j] = fl::sum<float>(tokens, [&](int k) { return exp[j][k]; });
    }
    fl::product<float>(
        tokens, 64, tokens, [&](int j, int k) { return exp[j][k] / sum[j]; },
        [&](int k, int m) -> auto& { return value[k][i * 64 + m]; },
        [&](int j, int m, float sum_2) { permute[j][i][m] = sum_2; });
  }
  float (*const add)[768] = query;
  fl::product<float>(
      tokens, 768, 768, [&](int i, int k) { return permute[i][k / 64][k % 64]; },
      [&](int k, int j) -> auto& { return weights.dense_weight[j][k]; },
      [&](int i, int j, float sum_2) { add[i][j] = sum_2 + weights.dense_bias[j] + x[i][j]; });
  layer_norm(weights.layer_norm, add, attention_output_layer_norm, tokens);
}

// encoder.layer.0 and 11 like it
void encoder_layer(const EncoderLayerWeights& weights, const float (*x)[768],
                   float (*__restrict output_layer_norm)[768], int tokens, fl::Stack& memory) {
  fl::Frame frame(memory);
  float (*const attention_output_layer_norm)[768] = frame.take<float[768]>(tokens);
  attention(weights.attention, x, attention_output_layer_norm, tokens, memory);
  float (*const intermediate)[3072] = frame.take<float[3072]>(tokens);
  fl::product<float>(
      tokens, 3072, 768, [&](int i, int k) -> auto& { return attention_output_layer_norm[i][k]; },
      [&](int k, int j) -> auto& { return weights.intermediate_dense_weight[j][k]; },
      [&](int i, int j, float sum) {
        const float sum_2 = sum + weights.intermediate_dense_bias[j];
        intermediate[i][j] = 0.5f * sum_2 * (1.0f + fl::erf(sum_2 * 0.70710677f));
      });
  float (*const add)[768] = frame.take<float[768]>(tokens);
  fl::product<float>(
      tokens, 768, 3072, [&](int i, int k) -> auto& { return intermediate[i][k]; },
      [&](int k, int j) -> auto& { return weights.output_dense_weight[j][k]; },
      [&](int i, int j, float sum) {
        add[i][j] = sum + weights.output_dense_bias[j] + attention_output_layer_norm[i][j];
      });
  layer_norm(weights.layer_norm, add, output_layer_norm, tokens);
}

void bert_base_sizes(const Weights& weights, fl::View<const int64_t, 2> input_0_0,
                     fl::View<const int64_t, 2> input_0_1, fl::View<float, 3> layer_11,
                     float (&__restrict pooler)[1][768], int tokens, fl::Stack& memory) {
  fl::Frame frame(memory);
  float (*const add)[768] = frame.take<float[768]>(tokens);
  for (int i = 0; i < tokens; ++i)
    for (int j = 0; j < 768; ++j) {
      const float sum = weights.word_embeddings_weight[fl::checked(input_0_0[0][i], 30522)][j] +
                        weights.token_type_embeddings_weight[fl::checked(weights.embeddings_token_type_ids[0][i], 2)][j];
      add[i][j] = sum +
                  weights.position_embeddings_weight[fl::checked(weights.embeddings_position_ids[0][i], 512)][j];
    }
  float (*const layer_norm_2)[768] = frame.take<float[768]>(tokens);
  layer_norm(weights.layer_norm, add, layer_norm_2, tokens);
  bool all_sum = true;
  for (int i = 0; i < tokens; ++i) all_sum = all_sum && input_0_1[0][i] == 1;
  const bool all = all_sum;
  fl::expect(all, true, "aten::item (embeddings)");
  float (*const encoder_layer_results[2])[768] =
      {frame.take<float[768]>(tokens), frame.take<float[768]>(tokens)};
  encoder_layer(weights.encoder_layer[0], layer_norm_2, encoder_layer_results[0], tokens, memory);
  for (int i = 1; i < 11; ++i)
    encoder_layer(weights.encoder_layer[i], encoder_layer_results[(i - 1) % 2],
                  encoder_layer_results[i % 2], tokens, memory);
  encoder_layer(weights.encoder_layer[11], encoder_layer_results[0],
                reinterpret_cast<float (*)[768]>(layer_11.data), tokens, memory);
  for (int i = 0; i < 768; ++i) {
    const float sum =
        fl::sum<float>(768, [&](int j) { return layer_11[0][0][j] * weights.dense_weight[i][j]; });
    pooler[0][i] = fl::tanh(weights.dense_bias[i] + sum);
  }
}

}  // namespace bert_base_sizes

extern "C" const char* bert_base_sizes_entry([[maybe_unused]] const void* const* arguments,
                                             [[maybe_unused]] const void* const* weights,
                                             [[maybe_unused]] void* const* results,
                                             [[maybe_unused]] const int64_t* sizes,
                                             [[maybe_unused]] void* generator) {
  bert_base_sizes::Weights bound;
  std::memcpy(&bound, weights, sizeof bound);
  [[maybe_unused]] const int tokens = static_cast<int>(sizes[0]);
  static thread_local fl::Stack memory;
  try {
    bert_base_sizes::bert_base_sizes(bound,
                                     fl::view(static_cast<const int64_t*>(arguments[0]), 1, tokens),
                                     fl::view(static_cast<const int64_t*>(arguments[1]), 1, tokens),
                                     fl::view(static_cast<float*>(results[0]), 1, tokens, 768),
                                     *static_cast<std::add_pointer_t<float[1][768]>>(results[1]),
                                     tokens, memory);
  } catch (const std::exception& error) {
    return fl::keep_message(error.what());
  }
  return nullptr;
}
