#include "flashlight.hpp"

namespace rms_norm_gradient {

struct Weights {
  const fl::bfloat16* weight;
};

void rms_norm_gradient(const Weights& weights, const fl::bfloat16 (&x)[64][512],
                       const fl::bfloat16 (&dy)[64][512], fl::bfloat16 (&__restrict d_x)[64][512],
                       fl::bfloat16 (&__restrict d_weight)[512]) {
  float rsqrt[64];
  for (int i = 0; i < 64; ++i) {
    const float sum = fl::sum<float>(512, [&](int j) { return float(x[i][j]) * float(x[i][j]); });
    rsqrt[i] = fl::rsqrt(sum / 512.0f + 1e-06f);
    const float sum_2 = fl::sum<float>(512, [&](int j) {
      const float converted =
          fl::rounded<fl::bfloat16>((float(dy[i][j]) * float(weights.weight[j])));
      return converted * float(x[i][j]);
    });
    const float div = sum_2 * ((-0.5f) * (rsqrt[i] * rsqrt[i] * rsqrt[i])) / 512.0f;
    for (int j = 0; j < 512; ++j) {
      const float converted_2 =
          fl::rounded<fl::bfloat16>((float(dy[i][j]) * float(weights.weight[j])));
      const float product = div * float(x[i][j]);
      const float sum_3 = converted_2 * rsqrt[i] + product + product;
      d_x[i][j] = fl::rounded<fl::bfloat16>(sum_3);
    }
  }
  for (int i = 0; i < 512; ++i) {
    float sum = 0.0f;
    for (int j = 0; j < 64; ++j) {
      const float product = float(dy[j][i]) * fl::rounded<fl::bfloat16>(float(x[j][i]) * rsqrt[j]);
      sum = sum + product;
    }
    d_weight[i] = sum;
  }
}

}  // namespace rms_norm_gradient

extern "C" const char* rms_norm_gradient_entry([[maybe_unused]] const void* const* arguments,
                                               [[maybe_unused]] const void* const* weights,
                                               [[maybe_unused]] void* const* results,
                                               [[maybe_unused]] void* arena,
                                               [[maybe_unused]] void* generator) {
  rms_norm_gradient::Weights bound;
  std::memcpy(&bound, weights, sizeof bound);
  try {
    rms_norm_gradient::rms_norm_gradient(
        bound, *static_cast<std::add_pointer_t<const fl::bfloat16[64][512]>>(arguments[0]),
        *static_cast<std::add_pointer_t<const fl::bfloat16[64][512]>>(arguments[1]),
        *static_cast<std::add_pointer_t<fl::bfloat16[64][512]>>(results[0]),
        *static_cast<std::add_pointer_t<fl::bfloat16[512]>>(results[1]));
  } catch (const std::exception& error) {
    return fl::keep_message(error.what());
  }
  return nullptr;
}
