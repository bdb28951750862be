#include "flashlight.hpp"

namespace perceptron {

struct Weights {
  const float (*hidden_weight)[784];
  const float* hidden_bias;
  const float (*output_weight)[128];
  const float* output_bias;
};

void perceptron(const Weights& weights, const float (&x)[64][784], float (&__restrict y)[64][10],
                std::byte* arena) {
  auto& relu = fl::at<float[64][128]>(arena, 0);
  fl::product<float>(
      64, 128, 784, [&](int i, int k) -> auto& { return x[i][k]; },
      [&](int k, int j) -> auto& { return weights.hidden_weight[j][k]; },
      [&](int i, int j, float sum) {
        const float sum_2 = sum + weights.hidden_bias[j];
        relu[i][j] = sum_2 < 0.0f ? 0.0f : sum_2;
      });
  fl::product<float>(
      64, 10, 128, [&](int i, int k) -> auto& { return relu[i][k]; },
      [&](int k, int j) -> auto& { return weights.output_weight[j][k]; },
      [&](int i, int j, float sum) { y[i][j] = sum + weights.output_bias[j]; });
}

}  // namespace perceptron

extern "C" const char* perceptron_entry([[maybe_unused]] const void* const* arguments,
                                        [[maybe_unused]] const void* const* weights,
                                        [[maybe_unused]] void* const* results,
                                        [[maybe_unused]] void* arena,
                                        [[maybe_unused]] void* generator) {
  perceptron::Weights bound;
  std::memcpy(&bound, weights, sizeof bound);
  try {
    perceptron::perceptron(bound,
                           *static_cast<std::add_pointer_t<const float[64][784]>>(arguments[0]),
                           *static_cast<std::add_pointer_t<float[64][10]>>(results[0]),
                           static_cast<std::byte*>(arena));
  } catch (const std::exception& error) {
    return fl::keep_message(error.what());
  }
  return nullptr;
}
