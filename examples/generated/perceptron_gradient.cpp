#include "flashlight.hpp"

namespace perceptron_gradient {

struct Weights {
  const float (*hidden_weight)[784];
  const float* hidden_bias;
  const float (*output_weight)[128];
};

void perceptron_gradient(const Weights& weights, const float (&x)[64][784],
                         const float (&dy)[64][10], float (&__restrict d_hidden_weight)[128][784],
                         float (&__restrict d_hidden_bias)[128],
                         float (&__restrict d_output_weight)[10][128],
                         float (&__restrict d_output_bias)[10], std::byte* arena) {
  auto& relu = fl::at<float[64][128]>(arena, 0);
  fl::product<float>(
      64, 128, 784, [&](int i, int k) -> auto& { return x[i][k]; },
      [&](int k, int j) -> auto& { return weights.hidden_weight[j][k]; },
      [&](int i, int j, float sum) {
        const float sum_2 = sum + weights.hidden_bias[j];
        relu[i][j] = sum_2 < 0.0f ? 0.0f : sum_2;
      });
  fl::product<float>(
      10, 128, 64, [&](int i, int k) -> auto& { return dy[k][i]; },
      [&](int k, int j) -> auto& { return relu[k][j]; },
      [&](int i, int j, float sum) { d_output_weight[i][j] = sum; });
  for (int j = 0; j < 10; ++j) d_output_bias[j] = 0.0f;
  for (int i = 0; i < 64; ++i)
    for (int j = 0; j < 10; ++j) d_output_bias[j] += dy[i][j];
  auto& threshold_backward = fl::at<float[64][128]>(arena, 32768);
  fl::product<float>(
      64, 128, 10, [&](int i, int k) -> auto& { return dy[i][k]; },
      [&](int k, int j) -> auto& { return weights.output_weight[k][j]; },
      [&](int i, int j, float sum) { threshold_backward[i][j] = relu[i][j] <= 0.0f ? 0.0f : sum; });
  fl::product<float>(
      128, 784, 64, [&](int i, int k) -> auto& { return threshold_backward[k][i]; },
      [&](int k, int j) -> auto& { return x[k][j]; },
      [&](int i, int j, float sum) { d_hidden_weight[i][j] = sum; });
  for (int j = 0; j < 128; ++j) d_hidden_bias[j] = 0.0f;
  for (int i = 0; i < 64; ++i)
    for (int j = 0; j < 128; ++j) d_hidden_bias[j] += threshold_backward[i][j];
}

}  // namespace perceptron_gradient

extern "C" const char* perceptron_gradient_entry([[maybe_unused]] const void* const* arguments,
                                                 [[maybe_unused]] const void* const* weights,
                                                 [[maybe_unused]] void* const* results,
                                                 [[maybe_unused]] void* arena,
                                                 [[maybe_unused]] void* generator) {
  perceptron_gradient::Weights bound;
  std::memcpy(&bound, weights, sizeof bound);
  try {
    perceptron_gradient::perceptron_gradient(
        bound, *static_cast<std::add_pointer_t<const float[64][784]>>(arguments[0]),
        *static_cast<std::add_pointer_t<const float[64][10]>>(arguments[1]),
        *static_cast<std::add_pointer_t<float[128][784]>>(results[0]),
        *static_cast<std::add_pointer_t<float[128]>>(results[1]),
        *static_cast<std::add_pointer_t<float[10][128]>>(results[2]),
        *static_cast<std::add_pointer_t<float[10]>>(results[3]), static_cast<std::byte*>(arena));
  } catch (const std::exception& error) {
    return fl::keep_message(error.what());
  }
  return nullptr;
}
