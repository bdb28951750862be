#include "flashlight.hpp"
#include "flashlight_guards.hpp"

namespace bert_base {

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
void layer_norm(const LayerNormWeights& weights, const float (&x)[128][768],
                float (&__restrict add)[128][768]) {
  for (int i = 0; i < 128; ++i) {
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
void attention(const AttentionWeights& weights, const float (&x)[128][768],
               const float (&x_2)[128][128],
               float (&__restrict attention_output_layer_norm)[128][768], std::byte* arena) {
  auto& query = fl::at<float[128][768]>(arena, 0);
  fl::product<float>(
      128, 768, 768, [&](int i, int k) -> auto& { return x[i][k]; },
      [&](int k, int j) -> auto& { return weights.query_weight[j][k]; },
      [&](int i, int j, float sum) { query[i][j] = sum + weights.query_bias[j]; });
  auto& key = fl::at<float[128][768]>(arena, 393216);
  fl::product<float>(
      128, 768, 768, [&](int i, int k) -> auto& { return x[i][k]; },
      [&](int k, int j) -> auto& { return weights.key_weight[j][k]; },
      [&](int i, int j, float sum) { key[i][j] = sum + weights.key_bias[j]; });
  auto& value = fl::at<float[128][768]>(arena, 786432);
  fl::product<float>(
      128, 768, 768, [&](int i, int k) -> auto& { return x[i][k]; },
      [&](int k, int j) -> auto& { return weights.value_weight[j][k]; },
      [&](int i, int j, float sum) { value[i][j] = sum + weights.value_bias[j]; });
  auto& add = fl::at<float[128][128]>(arena, 1572864);
  auto& exp = fl::at<float[128][128]>(arena, 1638400);
  auto& permute = fl::at<float[128][12][64]>(arena, 1179648);
  for (int i = 0; i < 12; ++i) {
    fl::product<float>(
        128, 128, 64, [&](int j, int k) -> auto& { return query[j][i * 64 + k]; },
        [&](int k, int m) -> auto& { return key[m][i * 64 + k]; },
        [&](int j, int m, float sum) { add[j][m] = sum * 0.125f + x_2[j][m]; });
    float where_2[128];
    for (int j = 0; j < 128; ++j) {
      const float largest = fl::largest<float>(128, [&](int k) { return add[j][k]; });
      const float where = largest == (-INFINITY) ? 0.0f : largest;
      for (int k = 0; k < 128; ++k) exp[j][k] = fl::exp(add[j][k] - where);
      const float sum = fl::sum<float>(128, [&](int k) { return exp[j][k]; });
      where_2[j] = sum == 0.0f ? 1.0f : sum;
    }
    fl::product<float>(
        128, 64, 128, [&](int j, int k) { return exp[j][k] / where_2[j]; },
        [&](int k, int m) -> auto& { return value[k][i * 64 + m]; },
        [&](int j, int m, float sum) { permute[j][i][m] = sum; });
  }
  auto& add_2 = fl::at<float[128][768]>(arena, 0);
  fl::product<float>(
      128, 768, 768, [&](int i, int k) { return permute[i][k / 64][k % 64]; },
      [&](int k, int j) -> auto& { return weights.dense_weight[j][k]; },
      [&](int i, int j, float sum) { add_2[i][j] = sum + weights.dense_bias[j] + x[i][j]; });
  layer_norm(weights.layer_norm, add_2, attention_output_layer_norm);
}

// encoder.layer.0 and 11 like it
void encoder_layer(const EncoderLayerWeights& weights, const float (&x)[128][768],
                   const float (&x_2)[128][128], float (&__restrict output_layer_norm)[128][768],
                   std::byte* arena) {
  auto& attention_output_layer_norm = fl::at<float[128][768]>(arena, 1572864);
  attention(weights.attention, x, x_2, attention_output_layer_norm, arena + 2359296);
  auto& intermediate = fl::at<float[128][3072]>(arena, 0);
  fl::product<float>(
      128, 3072, 768, [&](int i, int k) -> auto& { return attention_output_layer_norm[i][k]; },
      [&](int k, int j) -> auto& { return weights.intermediate_dense_weight[j][k]; },
      [&](int i, int j, float sum) {
        const float sum_2 = sum + weights.intermediate_dense_bias[j];
        intermediate[i][j] = 0.5f * sum_2 * (1.0f + fl::erf(sum_2 * 0.70710677f));
      });
  auto& add = fl::at<float[128][768]>(arena, 1966080);
  fl::product<float>(
      128, 768, 3072, [&](int i, int k) -> auto& { return intermediate[i][k]; },
      [&](int k, int j) -> auto& { return weights.output_dense_weight[j][k]; },
      [&](int i, int j, float sum) {
        add[i][j] = sum + weights.output_dense_bias[j] + attention_output_layer_norm[i][j];
      });
  layer_norm(weights.layer_norm, add, output_layer_norm);
}

void bert_base(const Weights& weights, const int64_t (&input_0_0)[1][128],
               const int64_t (&input_0_1)[1][128], float (&__restrict layer_11)[1][128][768],
               float (&__restrict pooler)[1][768], std::byte* arena) {
  auto& add = fl::at<float[128][768]>(arena, 0);
  for (int i = 0; i < 128; ++i)
    for (int j = 0; j < 768; ++j) {
      const float sum = weights.word_embeddings_weight[fl::checked(input_0_0[0][i], 30522)][j] +
                        weights.token_type_embeddings_weight[fl::checked(weights.embeddings_token_type_ids[0][i], 2)][j];
      add[i][j] = sum +
                  weights.position_embeddings_weight[fl::checked(weights.embeddings_position_ids[0][i], 512)][j];
    }
  auto& layer_norm_2 = fl::at<float[128][768]>(arena, 786432);
  layer_norm(weights.layer_norm, add, layer_norm_2);
  bool all_sum = true;
  for (int i = 0; i < 128; ++i) all_sum = all_sum && input_0_1[0][i] == 1;
  const bool all = all_sum;
  fl::expect(all, false, "aten::item (embeddings)");
  auto& embeddings = fl::at<float[128][128]>(arena, 1179648);
  for (int i = 0; i < 128; ++i)
    for (int j = 0; j < 128; ++j) {
      const float difference = 1.0f - static_cast<float>(input_0_1[0][j]);
      embeddings[i][j] = difference != 0.0f ? -3.4028235e+38f : difference;
    }
  auto& encoder_layer_results = fl::at<float[2][128][768]>(arena, 0);
  encoder_layer(weights.encoder_layer[0], layer_norm_2, embeddings, encoder_layer_results[0],
                arena + 1245184);
  for (int i = 1; i < 11; ++i)
    encoder_layer(weights.encoder_layer[i], encoder_layer_results[(i - 1) % 2], embeddings,
                  encoder_layer_results[i % 2], arena + 1245184);
  encoder_layer(weights.encoder_layer[11], encoder_layer_results[0], embeddings,
                fl::as<float[128][768]>(layer_11), arena + 1245184);
  for (int i = 0; i < 768; ++i) {
    const float sum =
        fl::sum<float>(768, [&](int j) { return layer_11[0][0][j] * weights.dense_weight[i][j]; });
    pooler[0][i] = fl::tanh(weights.dense_bias[i] + sum);
  }
}

}  // namespace bert_base

extern "C" const char* bert_base_entry([[maybe_unused]] const void* const* arguments,
                                       [[maybe_unused]] const void* const* weights,
                                       [[maybe_unused]] void* const* results,
                                       [[maybe_unused]] void* arena,
                                       [[maybe_unused]] void* generator) {
  bert_base::Weights bound;
  std::memcpy(&bound, weights, sizeof bound);
  try {
    bert_base::bert_base(bound,
                         *static_cast<std::add_pointer_t<const int64_t[1][128]>>(arguments[0]),
                         *static_cast<std::add_pointer_t<const int64_t[1][128]>>(arguments[1]),
                         *static_cast<std::add_pointer_t<float[1][128][768]>>(results[0]),
                         *static_cast<std::add_pointer_t<float[1][768]>>(results[1]),
                         static_cast<std::byte*>(arena));
  } catch (const std::exception& error) {
    return fl::keep_message(error.what());
  }
  return nullptr;
}
