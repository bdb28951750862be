#include "bert_base.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include "flashlight_cuda.cuh"
#include "flashlight_cuda_aten.cuh"

namespace {

__global__ void mean_kernel(const float* __restrict__ x, float* __restrict__ mean) {
  for (int64_t point = fl::thread() / 32; point < 128; point += fl::threads() / 32) {
    const int i = static_cast<int>(point);
    const int lane = threadIdx.x % 32;
    float part = 0.0f;
    for (int term = lane; term < 768; term += 32) {
      const int j = term;
      part = part + x[i * 768 + j];
    }
    const float whole = fl::of_warp(part, fl::add_of<float>);
    if (lane == 0) mean[i] = whole / 768.0f;
  }
}

__global__ void rsqrt_kernel(const float* __restrict__ x, const float* __restrict__ mean,
                             float* __restrict__ rsqrt) {
  for (int64_t point = fl::thread() / 32; point < 128; point += fl::threads() / 32) {
    const int i = static_cast<int>(point);
    const int lane = threadIdx.x % 32;
    float part = 0.0f;
    for (int term = lane; term < 768; term += 32) {
      const int j = term;
      const float difference = x[i * 768 + j] - mean[i];
      part = part + difference * difference;
    }
    const float whole = fl::of_warp(part, fl::add_of<float>);
    if (lane == 0) rsqrt[i] = fl::rsqrt(whole / 768.0f + 1e-12f);
  }
}

__global__ void add_2_kernel(const float* __restrict__ x, const float* __restrict__ mean,
                             const float* __restrict__ rsqrt, const float* __restrict__ weight,
                             const float* __restrict__ bias, float* __restrict__ add_2) {
  for (int64_t point = fl::thread(); point < 98304; point += fl::threads()) {
    const int i = static_cast<int>(point / 768);
    const int j = static_cast<int>(point % 768);
    add_2[i * 768 + j] = (x[i * 768 + j] - mean[i]) * rsqrt[i] * weight[j] + bias[j];
  }
}

// aten::permute (attention.self)
__global__ void permute_4_kernel(const float* __restrict__ matmul,
                                 const float* __restrict__ attention_self_query_bias,
                                 float* __restrict__ permute_4) {
  for (int64_t point = fl::thread(); point < 98304; point += fl::threads()) {
    const int i = static_cast<int>(point / 8192);
    const int j = static_cast<int>(point / 64 % 128);
    const int k = static_cast<int>(point % 64);
    permute_4[(i * 128 + j) * 64 + k] =
        matmul[j * 768 + (i * 64 + k)] + attention_self_query_bias[i * 64 + k];
  }
}

// aten::permute (attention.self)
__global__ void permute_5_kernel(const float* __restrict__ matmul_2,
                                 const float* __restrict__ attention_self_key_bias,
                                 float* __restrict__ permute_5) {
  for (int64_t point = fl::thread(); point < 98304; point += fl::threads()) {
    const int i = static_cast<int>(point / 8192);
    const int j = static_cast<int>(point / 64 % 128);
    const int k = static_cast<int>(point % 64);
    permute_5[(i * 128 + j) * 64 + k] =
        matmul_2[j * 768 + (i * 64 + k)] + attention_self_key_bias[i * 64 + k];
  }
}

// aten::permute (attention.self)
__global__ void permute_6_kernel(const float* __restrict__ matmul_3,
                                 const float* __restrict__ attention_self_value_bias,
                                 float* __restrict__ permute_6) {
  for (int64_t point = fl::thread(); point < 98304; point += fl::threads()) {
    const int i = static_cast<int>(point / 8192);
    const int j = static_cast<int>(point / 64 % 128);
    const int k = static_cast<int>(point % 64);
    permute_6[(i * 128 + j) * 64 + k] =
        matmul_3[j * 768 + (i * 64 + k)] + attention_self_value_bias[i * 64 + k];
  }
}

// aten::reshape (attention.self)
__global__ void self_kernel(const float* __restrict__ scaled_dot_product_attention,
                            float* __restrict__ self) {
  for (int64_t point = fl::thread(); point < 98304; point += fl::threads()) {
    const int i = static_cast<int>(point / 768);
    const int j = static_cast<int>(point % 768);
    self[i * 768 + j] = scaled_dot_product_attention[((j / 64) * 128 + i) * 64 + (j % 64)];
  }
}

// aten::add.Tensor (attention.output)
__global__ void add_kernel(const float* __restrict__ matmul_4,
                           const float* __restrict__ attention_output_dense_bias,
                           const float* __restrict__ x, float* __restrict__ add) {
  for (int64_t point = fl::thread(); point < 98304; point += fl::threads()) {
    const int i = static_cast<int>(point / 768);
    const int j = static_cast<int>(point % 768);
    add[i * 768 + j] = matmul_4[i * 768 + j] + attention_output_dense_bias[j] + x[i * 768 + j];
  }
}

// aten::gelu (intermediate)
__global__ void intermediate_kernel(const float* __restrict__ matmul_5,
                                    const float* __restrict__ intermediate_dense_bias,
                                    float* __restrict__ intermediate) {
  for (int64_t point = fl::thread(); point < 393216; point += fl::threads()) {
    const int i = static_cast<int>(point / 3072);
    const int j = static_cast<int>(point % 3072);
    const float sum = matmul_5[i * 3072 + j] + intermediate_dense_bias[j];
    intermediate[i * 3072 + j] = 0.5f * sum * (1.0f + fl::erf(sum * 0.70710677f));
  }
}

// aten::add.Tensor (output)
__global__ void add_2_kernel_2(const float* __restrict__ matmul_6,
                               const float* __restrict__ output_dense_bias,
                               const float* __restrict__ attention_output_layer_norm,
                               float* __restrict__ add_2) {
  for (int64_t point = fl::thread(); point < 98304; point += fl::threads()) {
    const int i = static_cast<int>(point / 768);
    const int j = static_cast<int>(point % 768);
    const float sum = matmul_6[i * 768 + j] + output_dense_bias[j];
    add_2[i * 768 + j] = sum + attention_output_layer_norm[i * 768 + j];
  }
}

__global__ void add_2_kernel_3(const int64_t* __restrict__ input_0_0,
                               const float* __restrict__ embeddings_word_embeddings_weight,
                               const int64_t* __restrict__ embeddings_token_type_ids,
                               const float* __restrict__ embeddings_token_type_embeddings_weight,
                               const int64_t* __restrict__ embeddings_position_ids,
                               const float* __restrict__ embeddings_position_embeddings_weight,
                               float* __restrict__ add_2) {
  for (int64_t point = fl::thread(); point < 98304; point += fl::threads()) {
    const int i = static_cast<int>(point / 768);
    const int j = static_cast<int>(point % 768);
    const float sum =
        embeddings_word_embeddings_weight[(fl::checked(input_0_0[i], 30522)) * 768 + j] +
        embeddings_token_type_embeddings_weight[(fl::checked(embeddings_token_type_ids[i], 2)) * 768 + j];
    add_2[i * 768 + j] = sum +
                         embeddings_position_embeddings_weight[(fl::checked(embeddings_position_ids[i], 512)) * 768 + j];
  }
}

// aten::all (embeddings)
__global__ void all_kernel(const int64_t* __restrict__ input_0_1, bool* __restrict__ all) {
  for (int64_t point = fl::thread(); point < 1; point += fl::threads()) {
    bool all_sum = true;
    for (int i = 0; i < 128; ++i) all_sum = all_sum && input_0_1[i] == 1;
    all[0] = all_sum;
  }
}

// aten::masked_fill.Scalar (embeddings)
__global__ void embeddings_kernel(const int64_t* __restrict__ input_0_1,
                                  float* __restrict__ embeddings) {
  for (int64_t point = fl::thread(); point < 16384; point += fl::threads()) {
    const int i = static_cast<int>(point / 128);
    const int j = static_cast<int>(point % 128);
    const float difference = 1.0f - static_cast<float>(input_0_1[j]);
    float value;
    value = difference != 0.0f ? -3.4028235e+38f : difference;
    embeddings[i * 128 + j] = value;
  }
}

// aten::tanh (pooler)
__global__ void pooler_kernel(const float* __restrict__ dense, float* __restrict__ pooler) {
  for (int64_t point = fl::thread(); point < 768; point += fl::threads()) {
    const int i = static_cast<int>(point);
    pooler[i] = fl::tanh(dense[i]);
  }
}

void layer_norm(const float* x, const float* weight, const float* bias, float* add_2, char* arena,
                const fl::Session& session) {
  auto* const mean = fl::at<float>(arena, 0);
  auto* const rsqrt = fl::at<float>(arena, 512);
  session.check(fl::launch(mean_kernel, fl::warps(128), session.stream(), x, mean));
  session.check(fl::launch(rsqrt_kernel, fl::warps(128), session.stream(), x, mean, rsqrt));
  session.check(
      fl::launch(add_2_kernel, fl::points(98304), session.stream(), x, mean, rsqrt, weight, bias,
                 add_2));
}

void encoder_layer(const float* attention_self_query_weight, const float* x,
                   const float* attention_self_query_bias, const float* attention_self_key_weight,
                   const float* attention_self_key_bias, const float* attention_self_value_weight,
                   const float* attention_self_value_bias, const float* x_2,
                   const float* attention_output_dense_weight,
                   const float* attention_output_dense_bias,
                   const float* attention_output_layer_norm_weight,
                   const float* attention_output_layer_norm_bias,
                   const float* intermediate_dense_weight, const float* intermediate_dense_bias,
                   const float* output_dense_weight, const float* output_dense_bias,
                   const float* output_layer_norm_weight, const float* output_layer_norm_bias,
                   float* output_layer_norm, char* arena, const fl::Session& session) {
  auto* const permute_4 = fl::at<float>(arena, 0);
  auto* const permute_5 = fl::at<float>(arena, 393216);
  auto* const permute_6 = fl::at<float>(arena, 786432);
  auto* const self = fl::at<float>(arena, 0);
  auto* const add = fl::at<float>(arena, 0);
  auto* const attention_output_layer_norm = fl::at<float>(arena, 1572864);
  auto* const intermediate = fl::at<float>(arena, 0);
  auto* const add_2 = fl::at<float>(arena, 0);
  at::Tensor matmul_memory = at::matmul(
      fl::tensor(x, {1, 128, 768}), fl::view(attention_self_query_weight, {768, 768}, {1, 768}));
  auto* const matmul = fl::elements<float>(matmul_memory, 98304);
  at::Tensor matmul_2_memory = at::matmul(
      fl::tensor(x, {1, 128, 768}), fl::view(attention_self_key_weight, {768, 768}, {1, 768}));
  auto* const matmul_2 = fl::elements<float>(matmul_2_memory, 98304);
  at::Tensor matmul_3_memory = at::matmul(
      fl::tensor(x, {1, 128, 768}), fl::view(attention_self_value_weight, {768, 768}, {1, 768}));
  auto* const matmul_3 = fl::elements<float>(matmul_3_memory, 98304);
  session.check(
      fl::launch(permute_4_kernel, fl::points(98304), session.stream(), matmul,
                 attention_self_query_bias, permute_4));
  matmul_memory.reset();
  session.check(
      fl::launch(permute_5_kernel, fl::points(98304), session.stream(), matmul_2,
                 attention_self_key_bias, permute_5));
  matmul_2_memory.reset();
  session.check(
      fl::launch(permute_6_kernel, fl::points(98304), session.stream(), matmul_3,
                 attention_self_value_bias, permute_6));
  matmul_3_memory.reset();
  at::Tensor scaled_dot_product_attention_memory = at::scaled_dot_product_attention(
      fl::tensor(permute_4, {1, 12, 128, 64}), fl::tensor(permute_5, {1, 12, 128, 64}), fl::tensor(permute_6, {1, 12, 128, 64}), fl::tensor(x_2, {1, 1, 128, 128}), 0.0, false, std::nullopt, false);
  auto* const scaled_dot_product_attention =
      fl::elements<float>(scaled_dot_product_attention_memory, 98304);
  session.check(
      fl::launch(self_kernel, fl::points(98304), session.stream(), scaled_dot_product_attention,
                 self));
  scaled_dot_product_attention_memory.reset();
  at::Tensor matmul_4_memory = at::matmul(
      fl::tensor(self, {1, 128, 768}), fl::view(attention_output_dense_weight, {768, 768}, {1, 768}));
  auto* const matmul_4 = fl::elements<float>(matmul_4_memory, 98304);
  session.check(
      fl::launch(add_kernel, fl::points(98304), session.stream(), matmul_4,
                 attention_output_dense_bias, x, add));
  matmul_4_memory.reset();
  layer_norm(add, attention_output_layer_norm_weight, attention_output_layer_norm_bias,
             attention_output_layer_norm, fl::at<char>(arena, 1966080), session);
  at::Tensor matmul_5_memory = at::matmul(
      fl::tensor(attention_output_layer_norm, {1, 128, 768}), fl::view(intermediate_dense_weight, {768, 3072}, {1, 768}));
  auto* const matmul_5 = fl::elements<float>(matmul_5_memory, 393216);
  session.check(
      fl::launch(intermediate_kernel, fl::points(393216), session.stream(), matmul_5,
                 intermediate_dense_bias, intermediate));
  matmul_5_memory.reset();
  at::Tensor matmul_6_memory = at::matmul(
      fl::tensor(intermediate, {1, 128, 3072}), fl::view(output_dense_weight, {3072, 768}, {1, 3072}));
  auto* const matmul_6 = fl::elements<float>(matmul_6_memory, 98304);
  session.check(
      fl::launch(add_2_kernel_2, fl::points(98304), session.stream(), matmul_6, output_dense_bias,
                 attention_output_layer_norm, add_2));
  matmul_6_memory.reset();
  layer_norm(add_2, output_layer_norm_weight, output_layer_norm_bias, output_layer_norm,
             fl::at<char>(arena, 1966080), session);
}

}  // namespace

std::vector<at::Tensor> bert_base(const std::vector<at::Tensor>& inputs) {
  fl::Session session("bert_base", inputs, 203);
  const auto* const input_0_0 = session.input<int64_t>(0, "input_0.0", {1, 128});
  const auto* const input_0_1 = session.input<int64_t>(1, "input_0.1", {1, 128});
  const auto* const embeddings_word_embeddings_weight =
      session.input<float>(2, "embeddings.word_embeddings.weight", {30522, 768});
  const auto* const embeddings_position_embeddings_weight =
      session.input<float>(3, "embeddings.position_embeddings.weight", {512, 768});
  const auto* const embeddings_token_type_embeddings_weight =
      session.input<float>(4, "embeddings.token_type_embeddings.weight", {2, 768});
  const auto* const embeddings_layer_norm_weight =
      session.input<float>(5, "embeddings.LayerNorm.weight", {768});
  const auto* const embeddings_layer_norm_bias =
      session.input<float>(6, "embeddings.LayerNorm.bias", {768});
  const auto* const encoder_layer_0_attention_self_query_weight =
      session.input<float>(7, "encoder.layer.0.attention.self.query.weight", {768, 768});
  const auto* const encoder_layer_0_attention_self_query_bias =
      session.input<float>(8, "encoder.layer.0.attention.self.query.bias", {768});
  const auto* const encoder_layer_0_attention_self_key_weight =
      session.input<float>(9, "encoder.layer.0.attention.self.key.weight", {768, 768});
  const auto* const encoder_layer_0_attention_self_key_bias =
      session.input<float>(10, "encoder.layer.0.attention.self.key.bias", {768});
  const auto* const encoder_layer_0_attention_self_value_weight =
      session.input<float>(11, "encoder.layer.0.attention.self.value.weight", {768, 768});
  const auto* const encoder_layer_0_attention_self_value_bias =
      session.input<float>(12, "encoder.layer.0.attention.self.value.bias", {768});
  const auto* const encoder_layer_0_attention_output_dense_weight =
      session.input<float>(13, "encoder.layer.0.attention.output.dense.weight", {768, 768});
  const auto* const encoder_layer_0_attention_output_dense_bias =
      session.input<float>(14, "encoder.layer.0.attention.output.dense.bias", {768});
  const auto* const encoder_layer_0_attention_output_layer_norm_weight =
      session.input<float>(15, "encoder.layer.0.attention.output.LayerNorm.weight", {768});
  const auto* const encoder_layer_0_attention_output_layer_norm_bias =
      session.input<float>(16, "encoder.layer.0.attention.output.LayerNorm.bias", {768});
  const auto* const encoder_layer_0_intermediate_dense_weight =
      session.input<float>(17, "encoder.layer.0.intermediate.dense.weight", {3072, 768});
  const auto* const encoder_layer_0_intermediate_dense_bias =
      session.input<float>(18, "encoder.layer.0.intermediate.dense.bias", {3072});
  const auto* const encoder_layer_0_output_dense_weight =
      session.input<float>(19, "encoder.layer.0.output.dense.weight", {768, 3072});
  const auto* const encoder_layer_0_output_dense_bias =
      session.input<float>(20, "encoder.layer.0.output.dense.bias", {768});
  const auto* const encoder_layer_0_output_layer_norm_weight =
      session.input<float>(21, "encoder.layer.0.output.LayerNorm.weight", {768});
  const auto* const encoder_layer_0_output_layer_norm_bias =
      session.input<float>(22, "encoder.layer.0.output.LayerNorm.bias", {768});
  const auto* const encoder_layer_1_attention_self_query_weight =
      session.input<float>(23, "encoder.layer.1.attention.self.query.weight", {768, 768});
  const auto* const encoder_layer_1_attention_self_query_bias =
      session.input<float>(24, "encoder.layer.1.attention.self.query.bias", {768});
  const auto* const encoder_layer_1_attention_self_key_weight =
      session.input<float>(25, "encoder.layer.1.attention.self.key.weight", {768, 768});
  const auto* const encoder_layer_1_attention_self_key_bias =
      session.input<float>(26, "encoder.layer.1.attention.self.key.bias", {768});
  const auto* const encoder_layer_1_attention_self_value_weight =
      session.input<float>(27, "encoder.layer.1.attention.self.value.weight", {768, 768});
  const auto* const encoder_layer_1_attention_self_value_bias =
      session.input<float>(28, "encoder.layer.1.attention.self.value.bias", {768});
  const auto* const encoder_layer_1_attention_output_dense_weight =
      session.input<float>(29, "encoder.layer.1.attention.output.dense.weight", {768, 768});
  const auto* const encoder_layer_1_attention_output_dense_bias =
      session.input<float>(30, "encoder.layer.1.attention.output.dense.bias", {768});
  const auto* const encoder_layer_1_attention_output_layer_norm_weight =
      session.input<float>(31, "encoder.layer.1.attention.output.LayerNorm.weight", {768});
  const auto* const encoder_layer_1_attention_output_layer_norm_bias =
      session.input<float>(32, "encoder.layer.1.attention.output.LayerNorm.bias", {768});
  const auto* const encoder_layer_1_intermediate_dense_weight =
      session.input<float>(33, "encoder.layer.1.intermediate.dense.weight", {3072, 768});
  const auto* const encoder_layer_1_intermediate_dense_bias =
      session.input<float>(34, "encoder.layer.1.intermediate.dense.bias", {3072});
  const auto* const encoder_layer_1_output_dense_weight =
      session.input<float>(35, "encoder.layer.1.output.dense.weight", {768, 3072});
  const auto* const encoder_layer_1_output_dense_bias =
      session.input<float>(36, "encoder.layer.1.output.dense.bias", {768});
  const auto* const encoder_layer_1_output_layer_norm_weight =
      session.input<float>(37, "encoder.layer.1.output.LayerNorm.weight", {768});
  const auto* const encoder_layer_1_output_layer_norm_bias =
      session.input<float>(38, "encoder.layer.1.output.LayerNorm.bias", {768});
  const auto* const encoder_layer_2_attention_self_query_weight =
      session.input<float>(39, "encoder.layer.2.attention.self.query.weight", {768, 768});
  const auto* const encoder_layer_2_attention_self_query_bias =
      session.input<float>(40, "encoder.layer.2.attention.self.query.bias", {768});
  const auto* const encoder_layer_2_attention_self_key_weight =
      session.input<float>(41, "encoder.layer.2.attention.self.key.weight", {768, 768});
  const auto* const encoder_layer_2_attention_self_key_bias =
      session.input<float>(42, "encoder.layer.2.attention.self.key.bias", {768});
  const auto* const encoder_layer_2_attention_self_value_weight =
      session.input<float>(43, "encoder.layer.2.attention.self.value.weight", {768, 768});
  const auto* const encoder_layer_2_attention_self_value_bias =
      session.input<float>(44, "encoder.layer.2.attention.self.value.bias", {768});
  const auto* const encoder_layer_2_attention_output_dense_weight =
      session.input<float>(45, "encoder.layer.2.attention.output.dense.weight", {768, 768});
  const auto* const encoder_layer_2_attention_output_dense_bias =
      session.input<float>(46, "encoder.layer.2.attention.output.dense.bias", {768});
  const auto* const encoder_layer_2_attention_output_layer_norm_weight =
      session.input<float>(47, "encoder.layer.2.attention.output.LayerNorm.weight", {768});
  const auto* const encoder_layer_2_attention_output_layer_norm_bias =
      session.input<float>(48, "encoder.layer.2.attention.output.LayerNorm.bias", {768});
  const auto* const encoder_layer_2_intermediate_dense_weight =
      session.input<float>(49, "encoder.layer.2.intermediate.dense.weight", {3072, 768});
  const auto* const encoder_layer_2_intermediate_dense_bias =
      session.input<float>(50, "encoder.layer.2.intermediate.dense.bias", {3072});
  const auto* const encoder_layer_2_output_dense_weight =
      session.input<float>(51, "encoder.layer.2.output.dense.weight", {768, 3072});
  const auto* const encoder_layer_2_output_dense_bias =
      session.input<float>(52, "encoder.layer.2.output.dense.bias", {768});
  const auto* const encoder_layer_2_output_layer_norm_weight =
      session.input<float>(53, "encoder.layer.2.output.LayerNorm.weight", {768});
  const auto* const encoder_layer_2_output_layer_norm_bias =
      session.input<float>(54, "encoder.layer.2.output.LayerNorm.bias", {768});
  const auto* const encoder_layer_3_attention_self_query_weight =
      session.input<float>(55, "encoder.layer.3.attention.self.query.weight", {768, 768});
  const auto* const encoder_layer_3_attention_self_query_bias =
      session.input<float>(56, "encoder.layer.3.attention.self.query.bias", {768});
  const auto* const encoder_layer_3_attention_self_key_weight =
      session.input<float>(57, "encoder.layer.3.attention.self.key.weight", {768, 768});
  const auto* const encoder_layer_3_attention_self_key_bias =
      session.input<float>(58, "encoder.layer.3.attention.self.key.bias", {768});
  const auto* const encoder_layer_3_attention_self_value_weight =
      session.input<float>(59, "encoder.layer.3.attention.self.value.weight", {768, 768});
  const auto* const encoder_layer_3_attention_self_value_bias =
      session.input<float>(60, "encoder.layer.3.attention.self.value.bias", {768});
  const auto* const encoder_layer_3_attention_output_dense_weight =
      session.input<float>(61, "encoder.layer.3.attention.output.dense.weight", {768, 768});
  const auto* const encoder_layer_3_attention_output_dense_bias =
      session.input<float>(62, "encoder.layer.3.attention.output.dense.bias", {768});
  const auto* const encoder_layer_3_attention_output_layer_norm_weight =
      session.input<float>(63, "encoder.layer.3.attention.output.LayerNorm.weight", {768});
  const auto* const encoder_layer_3_attention_output_layer_norm_bias =
      session.input<float>(64, "encoder.layer.3.attention.output.LayerNorm.bias", {768});
  const auto* const encoder_layer_3_intermediate_dense_weight =
      session.input<float>(65, "encoder.layer.3.intermediate.dense.weight", {3072, 768});
  const auto* const encoder_layer_3_intermediate_dense_bias =
      session.input<float>(66, "encoder.layer.3.intermediate.dense.bias", {3072});
  const auto* const encoder_layer_3_output_dense_weight =
      session.input<float>(67, "encoder.layer.3.output.dense.weight", {768, 3072});
  const auto* const encoder_layer_3_output_dense_bias =
      session.input<float>(68, "encoder.layer.3.output.dense.bias", {768});
  const auto* const encoder_layer_3_output_layer_norm_weight =
      session.input<float>(69, "encoder.layer.3.output.LayerNorm.weight", {768});
  const auto* const encoder_layer_3_output_layer_norm_bias =
      session.input<float>(70, "encoder.layer.3.output.LayerNorm.bias", {768});
  const auto* const encoder_layer_4_attention_self_query_weight =
      session.input<float>(71, "encoder.layer.4.attention.self.query.weight", {768, 768});
  const auto* const encoder_layer_4_attention_self_query_bias =
      session.input<float>(72, "encoder.layer.4.attention.self.query.bias", {768});
  const auto* const encoder_layer_4_attention_self_key_weight =
      session.input<float>(73, "encoder.layer.4.attention.self.key.weight", {768, 768});
  const auto* const encoder_layer_4_attention_self_key_bias =
      session.input<float>(74, "encoder.layer.4.attention.self.key.bias", {768});
  const auto* const encoder_layer_4_attention_self_value_weight =
      session.input<float>(75, "encoder.layer.4.attention.self.value.weight", {768, 768});
  const auto* const encoder_layer_4_attention_self_value_bias =
      session.input<float>(76, "encoder.layer.4.attention.self.value.bias", {768});
  const auto* const encoder_layer_4_attention_output_dense_weight =
      session.input<float>(77, "encoder.layer.4.attention.output.dense.weight", {768, 768});
  const auto* const encoder_layer_4_attention_output_dense_bias =
      session.input<float>(78, "encoder.layer.4.attention.output.dense.bias", {768});
  const auto* const encoder_layer_4_attention_output_layer_norm_weight =
      session.input<float>(79, "encoder.layer.4.attention.output.LayerNorm.weight", {768});
  const auto* const encoder_layer_4_attention_output_layer_norm_bias =
      session.input<float>(80, "encoder.layer.4.attention.output.LayerNorm.bias", {768});
  const auto* const encoder_layer_4_intermediate_dense_weight =
      session.input<float>(81, "encoder.layer.4.intermediate.dense.weight", {3072, 768});
  const auto* const encoder_layer_4_intermediate_dense_bias =
      session.input<float>(82, "encoder.layer.4.intermediate.dense.bias", {3072});
  const auto* const encoder_layer_4_output_dense_weight =
      session.input<float>(83, "encoder.layer.4.output.dense.weight", {768, 3072});
  const auto* const encoder_layer_4_output_dense_bias =
      session.input<float>(84, "encoder.layer.4.output.dense.bias", {768});
  const auto* const encoder_layer_4_output_layer_norm_weight =
      session.input<float>(85, "encoder.layer.4.output.LayerNorm.weight", {768});
  const auto* const encoder_layer_4_output_layer_norm_bias =
      session.input<float>(86, "encoder.layer.4.output.LayerNorm.bias", {768});
  const auto* const encoder_layer_5_attention_self_query_weight =
      session.input<float>(87, "encoder.layer.5.attention.self.query.weight", {768, 768});
  const auto* const encoder_layer_5_attention_self_query_bias =
      session.input<float>(88, "encoder.layer.5.attention.self.query.bias", {768});
  const auto* const encoder_layer_5_attention_self_key_weight =
      session.input<float>(89, "encoder.layer.5.attention.self.key.weight", {768, 768});
  const auto* const encoder_layer_5_attention_self_key_bias =
      session.input<float>(90, "encoder.layer.5.attention.self.key.bias", {768});
  const auto* const encoder_layer_5_attention_self_value_weight =
      session.input<float>(91, "encoder.layer.5.attention.self.value.weight", {768, 768});
  const auto* const encoder_layer_5_attention_self_value_bias =
      session.input<float>(92, "encoder.layer.5.attention.self.value.bias", {768});
  const auto* const encoder_layer_5_attention_output_dense_weight =
      session.input<float>(93, "encoder.layer.5.attention.output.dense.weight", {768, 768});
  const auto* const encoder_layer_5_attention_output_dense_bias =
      session.input<float>(94, "encoder.layer.5.attention.output.dense.bias", {768});
  const auto* const encoder_layer_5_attention_output_layer_norm_weight =
      session.input<float>(95, "encoder.layer.5.attention.output.LayerNorm.weight", {768});
  const auto* const encoder_layer_5_attention_output_layer_norm_bias =
      session.input<float>(96, "encoder.layer.5.attention.output.LayerNorm.bias", {768});
  const auto* const encoder_layer_5_intermediate_dense_weight =
      session.input<float>(97, "encoder.layer.5.intermediate.dense.weight", {3072, 768});
  const auto* const encoder_layer_5_intermediate_dense_bias =
      session.input<float>(98, "encoder.layer.5.intermediate.dense.bias", {3072});
  const auto* const encoder_layer_5_output_dense_weight =
      session.input<float>(99, "encoder.layer.5.output.dense.weight", {768, 3072});
  const auto* const encoder_layer_5_output_dense_bias =
      session.input<float>(100, "encoder.layer.5.output.dense.bias", {768});
  const auto* const encoder_layer_5_output_layer_norm_weight =
      session.input<float>(101, "encoder.layer.5.output.LayerNorm.weight", {768});
  const auto* const encoder_layer_5_output_layer_norm_bias =
      session.input<float>(102, "encoder.layer.5.output.LayerNorm.bias", {768});
  const auto* const encoder_layer_6_attention_self_query_weight =
      session.input<float>(103, "encoder.layer.6.attention.self.query.weight", {768, 768});
  const auto* const encoder_layer_6_attention_self_query_bias =
      session.input<float>(104, "encoder.layer.6.attention.self.query.bias", {768});
  const auto* const encoder_layer_6_attention_self_key_weight =
      session.input<float>(105, "encoder.layer.6.attention.self.key.weight", {768, 768});
  const auto* const encoder_layer_6_attention_self_key_bias =
      session.input<float>(106, "encoder.layer.6.attention.self.key.bias", {768});
  const auto* const encoder_layer_6_attention_self_value_weight =
      session.input<float>(107, "encoder.layer.6.attention.self.value.weight", {768, 768});
  const auto* const encoder_layer_6_attention_self_value_bias =
      session.input<float>(108, "encoder.layer.6.attention.self.value.bias", {768});
  const auto* const encoder_layer_6_attention_output_dense_weight =
      session.input<float>(109, "encoder.layer.6.attention.output.dense.weight", {768, 768});
  const auto* const encoder_layer_6_attention_output_dense_bias =
      session.input<float>(110, "encoder.layer.6.attention.output.dense.bias", {768});
  const auto* const encoder_layer_6_attention_output_layer_norm_weight =
      session.input<float>(111, "encoder.layer.6.attention.output.LayerNorm.weight", {768});
  const auto* const encoder_layer_6_attention_output_layer_norm_bias =
      session.input<float>(112, "encoder.layer.6.attention.output.LayerNorm.bias", {768});
  const auto* const encoder_layer_6_intermediate_dense_weight =
      session.input<float>(113, "encoder.layer.6.intermediate.dense.weight", {3072, 768});
  const auto* const encoder_layer_6_intermediate_dense_bias =
      session.input<float>(114, "encoder.layer.6.intermediate.dense.bias", {3072});
  const auto* const encoder_layer_6_output_dense_weight =
      session.input<float>(115, "encoder.layer.6.output.dense.weight", {768, 3072});
  const auto* const encoder_layer_6_output_dense_bias =
      session.input<float>(116, "encoder.layer.6.output.dense.bias", {768});
  const auto* const encoder_layer_6_output_layer_norm_weight =
      session.input<float>(117, "encoder.layer.6.output.LayerNorm.weight", {768});
  const auto* const encoder_layer_6_output_layer_norm_bias =
      session.input<float>(118, "encoder.layer.6.output.LayerNorm.bias", {768});
  const auto* const encoder_layer_7_attention_self_query_weight =
      session.input<float>(119, "encoder.layer.7.attention.self.query.weight", {768, 768});
  const auto* const encoder_layer_7_attention_self_query_bias =
      session.input<float>(120, "encoder.layer.7.attention.self.query.bias", {768});
  const auto* const encoder_layer_7_attention_self_key_weight =
      session.input<float>(121, "encoder.layer.7.attention.self.key.weight", {768, 768});
  const auto* const encoder_layer_7_attention_self_key_bias =
      session.input<float>(122, "encoder.layer.7.attention.self.key.bias", {768});
  const auto* const encoder_layer_7_attention_self_value_weight =
      session.input<float>(123, "encoder.layer.7.attention.self.value.weight", {768, 768});
  const auto* const encoder_layer_7_attention_self_value_bias =
      session.input<float>(124, "encoder.layer.7.attention.self.value.bias", {768});
  const auto* const encoder_layer_7_attention_output_dense_weight =
      session.input<float>(125, "encoder.layer.7.attention.output.dense.weight", {768, 768});
  const auto* const encoder_layer_7_attention_output_dense_bias =
      session.input<float>(126, "encoder.layer.7.attention.output.dense.bias", {768});
  const auto* const encoder_layer_7_attention_output_layer_norm_weight =
      session.input<float>(127, "encoder.layer.7.attention.output.LayerNorm.weight", {768});
  const auto* const encoder_layer_7_attention_output_layer_norm_bias =
      session.input<float>(128, "encoder.layer.7.attention.output.LayerNorm.bias", {768});
  const auto* const encoder_layer_7_intermediate_dense_weight =
      session.input<float>(129, "encoder.layer.7.intermediate.dense.weight", {3072, 768});
  const auto* const encoder_layer_7_intermediate_dense_bias =
      session.input<float>(130, "encoder.layer.7.intermediate.dense.bias", {3072});
  const auto* const encoder_layer_7_output_dense_weight =
      session.input<float>(131, "encoder.layer.7.output.dense.weight", {768, 3072});
  const auto* const encoder_layer_7_output_dense_bias =
      session.input<float>(132, "encoder.layer.7.output.dense.bias", {768});
  const auto* const encoder_layer_7_output_layer_norm_weight =
      session.input<float>(133, "encoder.layer.7.output.LayerNorm.weight", {768});
  const auto* const encoder_layer_7_output_layer_norm_bias =
      session.input<float>(134, "encoder.layer.7.output.LayerNorm.bias", {768});
  const auto* const encoder_layer_8_attention_self_query_weight =
      session.input<float>(135, "encoder.layer.8.attention.self.query.weight", {768, 768});
  const auto* const encoder_layer_8_attention_self_query_bias =
      session.input<float>(136, "encoder.layer.8.attention.self.query.bias", {768});
  const auto* const encoder_layer_8_attention_self_key_weight =
      session.input<float>(137, "encoder.layer.8.attention.self.key.weight", {768, 768});
  const auto* const encoder_layer_8_attention_self_key_bias =
      session.input<float>(138, "encoder.layer.8.attention.self.key.bias", {768});
  const auto* const encoder_layer_8_attention_self_value_weight =
      session.input<float>(139, "encoder.layer.8.attention.self.value.weight", {768, 768});
  const auto* const encoder_layer_8_attention_self_value_bias =
      session.input<float>(140, "encoder.layer.8.attention.self.value.bias", {768});
  const auto* const encoder_layer_8_attention_output_dense_weight =
      session.input<float>(141, "encoder.layer.8.attention.output.dense.weight", {768, 768});
  const auto* const encoder_layer_8_attention_output_dense_bias =
      session.input<float>(142, "encoder.layer.8.attention.output.dense.bias", {768});
  const auto* const encoder_layer_8_attention_output_layer_norm_weight =
      session.input<float>(143, "encoder.layer.8.attention.output.LayerNorm.weight", {768});
  const auto* const encoder_layer_8_attention_output_layer_norm_bias =
      session.input<float>(144, "encoder.layer.8.attention.output.LayerNorm.bias", {768});
  const auto* const encoder_layer_8_intermediate_dense_weight =
      session.input<float>(145, "encoder.layer.8.intermediate.dense.weight", {3072, 768});
  const auto* const encoder_layer_8_intermediate_dense_bias =
      session.input<float>(146, "encoder.layer.8.intermediate.dense.bias", {3072});
  const auto* const encoder_layer_8_output_dense_weight =
      session.input<float>(147, "encoder.layer.8.output.dense.weight", {768, 3072});
  const auto* const encoder_layer_8_output_dense_bias =
      session.input<float>(148, "encoder.layer.8.output.dense.bias", {768});
  const auto* const encoder_layer_8_output_layer_norm_weight =
      session.input<float>(149, "encoder.layer.8.output.LayerNorm.weight", {768});
  const auto* const encoder_layer_8_output_layer_norm_bias =
      session.input<float>(150, "encoder.layer.8.output.LayerNorm.bias", {768});
  const auto* const encoder_layer_9_attention_self_query_weight =
      session.input<float>(151, "encoder.layer.9.attention.self.query.weight", {768, 768});
  const auto* const encoder_layer_9_attention_self_query_bias =
      session.input<float>(152, "encoder.layer.9.attention.self.query.bias", {768});
  const auto* const encoder_layer_9_attention_self_key_weight =
      session.input<float>(153, "encoder.layer.9.attention.self.key.weight", {768, 768});
  const auto* const encoder_layer_9_attention_self_key_bias =
      session.input<float>(154, "encoder.layer.9.attention.self.key.bias", {768});
  const auto* const encoder_layer_9_attention_self_value_weight =
      session.input<float>(155, "encoder.layer.9.attention.self.value.weight", {768, 768});
  const auto* const encoder_layer_9_attention_self_value_bias =
      session.input<float>(156, "encoder.layer.9.attention.self.value.bias", {768});
  const auto* const encoder_layer_9_attention_output_dense_weight =
      session.input<float>(157, "encoder.layer.9.attention.output.dense.weight", {768, 768});
  const auto* const encoder_layer_9_attention_output_dense_bias =
      session.input<float>(158, "encoder.layer.9.attention.output.dense.bias", {768});
  const auto* const encoder_layer_9_attention_output_layer_norm_weight =
      session.input<float>(159, "encoder.layer.9.attention.output.LayerNorm.weight", {768});
  const auto* const encoder_layer_9_attention_output_layer_norm_bias =
      session.input<float>(160, "encoder.layer.9.attention.output.LayerNorm.bias", {768});
  const auto* const encoder_layer_9_intermediate_dense_weight =
      session.input<float>(161, "encoder.layer.9.intermediate.dense.weight", {3072, 768});
  const auto* const encoder_layer_9_intermediate_dense_bias =
      session.input<float>(162, "encoder.layer.9.intermediate.dense.bias", {3072});
  const auto* const encoder_layer_9_output_dense_weight =
      session.input<float>(163, "encoder.layer.9.output.dense.weight", {768, 3072});
  const auto* const encoder_layer_9_output_dense_bias =
      session.input<float>(164, "encoder.layer.9.output.dense.bias", {768});
  const auto* const encoder_layer_9_output_layer_norm_weight =
      session.input<float>(165, "encoder.layer.9.output.LayerNorm.weight", {768});
  const auto* const encoder_layer_9_output_layer_norm_bias =
      session.input<float>(166, "encoder.layer.9.output.LayerNorm.bias", {768});
  const auto* const encoder_layer_10_attention_self_query_weight =
      session.input<float>(167, "encoder.layer.10.attention.self.query.weight", {768, 768});
  const auto* const encoder_layer_10_attention_self_query_bias =
      session.input<float>(168, "encoder.layer.10.attention.self.query.bias", {768});
  const auto* const encoder_layer_10_attention_self_key_weight =
      session.input<float>(169, "encoder.layer.10.attention.self.key.weight", {768, 768});
  const auto* const encoder_layer_10_attention_self_key_bias =
      session.input<float>(170, "encoder.layer.10.attention.self.key.bias", {768});
  const auto* const encoder_layer_10_attention_self_value_weight =
      session.input<float>(171, "encoder.layer.10.attention.self.value.weight", {768, 768});
  const auto* const encoder_layer_10_attention_self_value_bias =
      session.input<float>(172, "encoder.layer.10.attention.self.value.bias", {768});
  const auto* const encoder_layer_10_attention_output_dense_weight =
      session.input<float>(173, "encoder.layer.10.attention.output.dense.weight", {768, 768});
  const auto* const encoder_layer_10_attention_output_dense_bias =
      session.input<float>(174, "encoder.layer.10.attention.output.dense.bias", {768});
  const auto* const encoder_layer_10_attention_output_layer_norm_weight =
      session.input<float>(175, "encoder.layer.10.attention.output.LayerNorm.weight", {768});
  const auto* const encoder_layer_10_attention_output_layer_norm_bias =
      session.input<float>(176, "encoder.layer.10.attention.output.LayerNorm.bias", {768});
  const auto* const encoder_layer_10_intermediate_dense_weight =
      session.input<float>(177, "encoder.layer.10.intermediate.dense.weight", {3072, 768});
  const auto* const encoder_layer_10_intermediate_dense_bias =
      session.input<float>(178, "encoder.layer.10.intermediate.dense.bias", {3072});
  const auto* const encoder_layer_10_output_dense_weight =
      session.input<float>(179, "encoder.layer.10.output.dense.weight", {768, 3072});
  const auto* const encoder_layer_10_output_dense_bias =
      session.input<float>(180, "encoder.layer.10.output.dense.bias", {768});
  const auto* const encoder_layer_10_output_layer_norm_weight =
      session.input<float>(181, "encoder.layer.10.output.LayerNorm.weight", {768});
  const auto* const encoder_layer_10_output_layer_norm_bias =
      session.input<float>(182, "encoder.layer.10.output.LayerNorm.bias", {768});
  const auto* const encoder_layer_11_attention_self_query_weight =
      session.input<float>(183, "encoder.layer.11.attention.self.query.weight", {768, 768});
  const auto* const encoder_layer_11_attention_self_query_bias =
      session.input<float>(184, "encoder.layer.11.attention.self.query.bias", {768});
  const auto* const encoder_layer_11_attention_self_key_weight =
      session.input<float>(185, "encoder.layer.11.attention.self.key.weight", {768, 768});
  const auto* const encoder_layer_11_attention_self_key_bias =
      session.input<float>(186, "encoder.layer.11.attention.self.key.bias", {768});
  const auto* const encoder_layer_11_attention_self_value_weight =
      session.input<float>(187, "encoder.layer.11.attention.self.value.weight", {768, 768});
  const auto* const encoder_layer_11_attention_self_value_bias =
      session.input<float>(188, "encoder.layer.11.attention.self.value.bias", {768});
  const auto* const encoder_layer_11_attention_output_dense_weight =
      session.input<float>(189, "encoder.layer.11.attention.output.dense.weight", {768, 768});
  const auto* const encoder_layer_11_attention_output_dense_bias =
      session.input<float>(190, "encoder.layer.11.attention.output.dense.bias", {768});
  const auto* const encoder_layer_11_attention_output_layer_norm_weight =
      session.input<float>(191, "encoder.layer.11.attention.output.LayerNorm.weight", {768});
  const auto* const encoder_layer_11_attention_output_layer_norm_bias =
      session.input<float>(192, "encoder.layer.11.attention.output.LayerNorm.bias", {768});
  const auto* const encoder_layer_11_intermediate_dense_weight =
      session.input<float>(193, "encoder.layer.11.intermediate.dense.weight", {3072, 768});
  const auto* const encoder_layer_11_intermediate_dense_bias =
      session.input<float>(194, "encoder.layer.11.intermediate.dense.bias", {3072});
  const auto* const encoder_layer_11_output_dense_weight =
      session.input<float>(195, "encoder.layer.11.output.dense.weight", {768, 3072});
  const auto* const encoder_layer_11_output_dense_bias =
      session.input<float>(196, "encoder.layer.11.output.dense.bias", {768});
  const auto* const encoder_layer_11_output_layer_norm_weight =
      session.input<float>(197, "encoder.layer.11.output.LayerNorm.weight", {768});
  const auto* const encoder_layer_11_output_layer_norm_bias =
      session.input<float>(198, "encoder.layer.11.output.LayerNorm.bias", {768});
  const auto* const pooler_dense_weight =
      session.input<float>(199, "pooler.dense.weight", {768, 768});
  const auto* const pooler_dense_bias = session.input<float>(200, "pooler.dense.bias", {768});
  const auto* const embeddings_position_ids =
      session.input<int64_t>(201, "embeddings.position_ids", {1, 512});
  const auto* const embeddings_token_type_ids =
      session.input<int64_t>(202, "embeddings.token_type_ids", {1, 512});
  at::Tensor layer_11_memory = fl::empty<float>({1, 128, 768});
  auto* const layer_11 = fl::elements<float>(layer_11_memory, 98304);
  at::Tensor pooler_memory = fl::empty<float>({1, 768});
  auto* const pooler = fl::elements<float>(pooler_memory, 768);
  const at::Tensor arena_memory = fl::empty<uint8_t>({2819072});
  void* const arena = arena_memory.mutable_data_ptr();
  auto* const add_2 = fl::at<float>(arena, 0);
  auto* const layer_norm_2 = fl::at<float>(arena, 393216);
  auto* const all = fl::at<bool>(arena, 0);
  auto* const embeddings = fl::at<float>(arena, 786432);
  auto* const layer_0 = fl::at<float>(arena, 0);
  auto* const layer_1 = fl::at<float>(arena, 393216);
  auto* const layer_2 = fl::at<float>(arena, 0);
  auto* const layer_3 = fl::at<float>(arena, 393216);
  auto* const layer_4 = fl::at<float>(arena, 0);
  auto* const layer_5 = fl::at<float>(arena, 393216);
  auto* const layer_6 = fl::at<float>(arena, 0);
  auto* const layer_7 = fl::at<float>(arena, 393216);
  auto* const layer_8 = fl::at<float>(arena, 0);
  auto* const layer_9 = fl::at<float>(arena, 393216);
  auto* const layer_10 = fl::at<float>(arena, 0);
  session.check(
      fl::launch(add_2_kernel_3, fl::points(98304), session.stream(), input_0_0,
                 embeddings_word_embeddings_weight, embeddings_token_type_ids,
                 embeddings_token_type_embeddings_weight, embeddings_position_ids,
                 embeddings_position_embeddings_weight, add_2));
  layer_norm(add_2, embeddings_layer_norm_weight, embeddings_layer_norm_bias, layer_norm_2,
             fl::at<char>(arena, 851968), session);
  session.check(fl::launch(all_kernel, fl::points(1), session.stream(), input_0_1, all));
  fl::expect(fl::number(all), false, "aten::item (embeddings)");
  session.check(
      fl::launch(embeddings_kernel, fl::points(16384), session.stream(), input_0_1, embeddings));
  encoder_layer(encoder_layer_0_attention_self_query_weight, layer_norm_2,
                encoder_layer_0_attention_self_query_bias,
                encoder_layer_0_attention_self_key_weight, encoder_layer_0_attention_self_key_bias,
                encoder_layer_0_attention_self_value_weight,
                encoder_layer_0_attention_self_value_bias, embeddings,
                encoder_layer_0_attention_output_dense_weight,
                encoder_layer_0_attention_output_dense_bias,
                encoder_layer_0_attention_output_layer_norm_weight,
                encoder_layer_0_attention_output_layer_norm_bias,
                encoder_layer_0_intermediate_dense_weight, encoder_layer_0_intermediate_dense_bias,
                encoder_layer_0_output_dense_weight, encoder_layer_0_output_dense_bias,
                encoder_layer_0_output_layer_norm_weight, encoder_layer_0_output_layer_norm_bias,
                layer_0, fl::at<char>(arena, 851968), session);
  encoder_layer(encoder_layer_1_attention_self_query_weight, layer_0,
                encoder_layer_1_attention_self_query_bias,
                encoder_layer_1_attention_self_key_weight, encoder_layer_1_attention_self_key_bias,
                encoder_layer_1_attention_self_value_weight,
                encoder_layer_1_attention_self_value_bias, embeddings,
                encoder_layer_1_attention_output_dense_weight,
                encoder_layer_1_attention_output_dense_bias,
                encoder_layer_1_attention_output_layer_norm_weight,
                encoder_layer_1_attention_output_layer_norm_bias,
                encoder_layer_1_intermediate_dense_weight, encoder_layer_1_intermediate_dense_bias,
                encoder_layer_1_output_dense_weight, encoder_layer_1_output_dense_bias,
                encoder_layer_1_output_layer_norm_weight, encoder_layer_1_output_layer_norm_bias,
                layer_1, fl::at<char>(arena, 851968), session);
  encoder_layer(encoder_layer_2_attention_self_query_weight, layer_1,
                encoder_layer_2_attention_self_query_bias,
                encoder_layer_2_attention_self_key_weight, encoder_layer_2_attention_self_key_bias,
                encoder_layer_2_attention_self_value_weight,
                encoder_layer_2_attention_self_value_bias, embeddings,
                encoder_layer_2_attention_output_dense_weight,
                encoder_layer_2_attention_output_dense_bias,
                encoder_layer_2_attention_output_layer_norm_weight,
                encoder_layer_2_attention_output_layer_norm_bias,
                encoder_layer_2_intermediate_dense_weight, encoder_layer_2_intermediate_dense_bias,
                encoder_layer_2_output_dense_weight, encoder_layer_2_output_dense_bias,
                encoder_layer_2_output_layer_norm_weight, encoder_layer_2_output_layer_norm_bias,
                layer_2, fl::at<char>(arena, 851968), session);
  encoder_layer(encoder_layer_3_attention_self_query_weight, layer_2,
                encoder_layer_3_attention_self_query_bias,
                encoder_layer_3_attention_self_key_weight, encoder_layer_3_attention_self_key_bias,
                encoder_layer_3_attention_self_value_weight,
                encoder_layer_3_attention_self_value_bias, embeddings,
                encoder_layer_3_attention_output_dense_weight,
                encoder_layer_3_attention_output_dense_bias,
                encoder_layer_3_attention_output_layer_norm_weight,
                encoder_layer_3_attention_output_layer_norm_bias,
                encoder_layer_3_intermediate_dense_weight, encoder_layer_3_intermediate_dense_bias,
                encoder_layer_3_output_dense_weight, encoder_layer_3_output_dense_bias,
                encoder_layer_3_output_layer_norm_weight, encoder_layer_3_output_layer_norm_bias,
                layer_3, fl::at<char>(arena, 851968), session);
  encoder_layer(encoder_layer_4_attention_self_query_weight, layer_3,
                encoder_layer_4_attention_self_query_bias,
                encoder_layer_4_attention_self_key_weight, encoder_layer_4_attention_self_key_bias,
                encoder_layer_4_attention_self_value_weight,
                encoder_layer_4_attention_self_value_bias, embeddings,
                encoder_layer_4_attention_output_dense_weight,
                encoder_layer_4_attention_output_dense_bias,
                encoder_layer_4_attention_output_layer_norm_weight,
                encoder_layer_4_attention_output_layer_norm_bias,
                encoder_layer_4_intermediate_dense_weight, encoder_layer_4_intermediate_dense_bias,
                encoder_layer_4_output_dense_weight, encoder_layer_4_output_dense_bias,
                encoder_layer_4_output_layer_norm_weight, encoder_layer_4_output_layer_norm_bias,
                layer_4, fl::at<char>(arena, 851968), session);
  encoder_layer(encoder_layer_5_attention_self_query_weight, layer_4,
                encoder_layer_5_attention_self_query_bias,
                encoder_layer_5_attention_self_key_weight, encoder_layer_5_attention_self_key_bias,
                encoder_layer_5_attention_self_value_weight,
                encoder_layer_5_attention_self_value_bias, embeddings,
                encoder_layer_5_attention_output_dense_weight,
                encoder_layer_5_attention_output_dense_bias,
                encoder_layer_5_attention_output_layer_norm_weight,
                encoder_layer_5_attention_output_layer_norm_bias,
                encoder_layer_5_intermediate_dense_weight, encoder_layer_5_intermediate_dense_bias,
                encoder_layer_5_output_dense_weight, encoder_layer_5_output_dense_bias,
                encoder_layer_5_output_layer_norm_weight, encoder_layer_5_output_layer_norm_bias,
                layer_5, fl::at<char>(arena, 851968), session);
  encoder_layer(encoder_layer_6_attention_self_query_weight, layer_5,
                encoder_layer_6_attention_self_query_bias,
                encoder_layer_6_attention_self_key_weight, encoder_layer_6_attention_self_key_bias,
                encoder_layer_6_attention_self_value_weight,
                encoder_layer_6_attention_self_value_bias, embeddings,
                encoder_layer_6_attention_output_dense_weight,
                encoder_layer_6_attention_output_dense_bias,
                encoder_layer_6_attention_output_layer_norm_weight,
                encoder_layer_6_attention_output_layer_norm_bias,
                encoder_layer_6_intermediate_dense_weight, encoder_layer_6_intermediate_dense_bias,
                encoder_layer_6_output_dense_weight, encoder_layer_6_output_dense_bias,
                encoder_layer_6_output_layer_norm_weight, encoder_layer_6_output_layer_norm_bias,
                layer_6, fl::at<char>(arena, 851968), session);
  encoder_layer(encoder_layer_7_attention_self_query_weight, layer_6,
                encoder_layer_7_attention_self_query_bias,
                encoder_layer_7_attention_self_key_weight, encoder_layer_7_attention_self_key_bias,
                encoder_layer_7_attention_self_value_weight,
                encoder_layer_7_attention_self_value_bias, embeddings,
                encoder_layer_7_attention_output_dense_weight,
                encoder_layer_7_attention_output_dense_bias,
                encoder_layer_7_attention_output_layer_norm_weight,
                encoder_layer_7_attention_output_layer_norm_bias,
                encoder_layer_7_intermediate_dense_weight, encoder_layer_7_intermediate_dense_bias,
                encoder_layer_7_output_dense_weight, encoder_layer_7_output_dense_bias,
                encoder_layer_7_output_layer_norm_weight, encoder_layer_7_output_layer_norm_bias,
                layer_7, fl::at<char>(arena, 851968), session);
  encoder_layer(encoder_layer_8_attention_self_query_weight, layer_7,
                encoder_layer_8_attention_self_query_bias,
                encoder_layer_8_attention_self_key_weight, encoder_layer_8_attention_self_key_bias,
                encoder_layer_8_attention_self_value_weight,
                encoder_layer_8_attention_self_value_bias, embeddings,
                encoder_layer_8_attention_output_dense_weight,
                encoder_layer_8_attention_output_dense_bias,
                encoder_layer_8_attention_output_layer_norm_weight,
                encoder_layer_8_attention_output_layer_norm_bias,
                encoder_layer_8_intermediate_dense_weight, encoder_layer_8_intermediate_dense_bias,
                encoder_layer_8_output_dense_weight, encoder_layer_8_output_dense_bias,
                encoder_layer_8_output_layer_norm_weight, encoder_layer_8_output_layer_norm_bias,
                layer_8, fl::at<char>(arena, 851968), session);
  encoder_layer(encoder_layer_9_attention_self_query_weight, layer_8,
                encoder_layer_9_attention_self_query_bias,
                encoder_layer_9_attention_self_key_weight, encoder_layer_9_attention_self_key_bias,
                encoder_layer_9_attention_self_value_weight,
                encoder_layer_9_attention_self_value_bias, embeddings,
                encoder_layer_9_attention_output_dense_weight,
                encoder_layer_9_attention_output_dense_bias,
                encoder_layer_9_attention_output_layer_norm_weight,
                encoder_layer_9_attention_output_layer_norm_bias,
                encoder_layer_9_intermediate_dense_weight, encoder_layer_9_intermediate_dense_bias,
                encoder_layer_9_output_dense_weight, encoder_layer_9_output_dense_bias,
                encoder_layer_9_output_layer_norm_weight, encoder_layer_9_output_layer_norm_bias,
                layer_9, fl::at<char>(arena, 851968), session);
  encoder_layer(
      encoder_layer_10_attention_self_query_weight, layer_9,
      encoder_layer_10_attention_self_query_bias, encoder_layer_10_attention_self_key_weight,
      encoder_layer_10_attention_self_key_bias, encoder_layer_10_attention_self_value_weight,
      encoder_layer_10_attention_self_value_bias, embeddings,
      encoder_layer_10_attention_output_dense_weight, encoder_layer_10_attention_output_dense_bias,
      encoder_layer_10_attention_output_layer_norm_weight,
      encoder_layer_10_attention_output_layer_norm_bias, encoder_layer_10_intermediate_dense_weight,
      encoder_layer_10_intermediate_dense_bias, encoder_layer_10_output_dense_weight,
      encoder_layer_10_output_dense_bias, encoder_layer_10_output_layer_norm_weight,
      encoder_layer_10_output_layer_norm_bias, layer_10, fl::at<char>(arena, 851968), session);
  encoder_layer(
      encoder_layer_11_attention_self_query_weight, layer_10,
      encoder_layer_11_attention_self_query_bias, encoder_layer_11_attention_self_key_weight,
      encoder_layer_11_attention_self_key_bias, encoder_layer_11_attention_self_value_weight,
      encoder_layer_11_attention_self_value_bias, embeddings,
      encoder_layer_11_attention_output_dense_weight, encoder_layer_11_attention_output_dense_bias,
      encoder_layer_11_attention_output_layer_norm_weight,
      encoder_layer_11_attention_output_layer_norm_bias, encoder_layer_11_intermediate_dense_weight,
      encoder_layer_11_intermediate_dense_bias, encoder_layer_11_output_dense_weight,
      encoder_layer_11_output_dense_bias, encoder_layer_11_output_layer_norm_weight,
      encoder_layer_11_output_layer_norm_bias, layer_11, fl::at<char>(arena, 851968), session);
  at::Tensor dense_memory = at::addmm(
      fl::tensor(pooler_dense_bias, {768}), fl::view(layer_11, {1, 768}, {1, 1}), fl::view(pooler_dense_weight, {768, 768}, {1, 768}), 1, 1);
  auto* const dense = fl::elements<float>(dense_memory, 768);
  session.check(fl::launch(pooler_kernel, fl::points(768), session.stream(), dense, pooler));
  dense_memory.reset();
  return {layer_11_memory, pooler_memory};
}
