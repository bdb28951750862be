#include "flashlight.hpp"

namespace rms_norm_gradient {

struct Weights {
  const fl::bfloat16* weight;
};

void rms_norm_gradient(const Weights& weights, const fl::bfloat16 (&x)[64][512],
                       const fl::bfloat16 (&dy)[64][512], fl::bfloat16 (&__restrict d_x)[64][512],
                       fl::bfloat16 (&__restrict d_weight)[512], std::byte* arena) {
  auto& mul = fl::at<fl::bfloat16[64][512]>(arena, 0);
  for (int i = 0; i < 64; ++i) {
    const float sum_2 = fl::sum<float>(512, [&](int j) { return float(x[i][j]) * float(x[i][j]); });
    const float rsqrt = fl::rsqrt(sum_2 / 512.0f + 1e-06f);
    for (int j = 0; j < 512; ++j) {
      const float to = fl::rounded<fl::bfloat16>(float(x[i][j]) * rsqrt);
      mul[i][j] = float(dy[i][j]) * float(to);
    }
    fl::bfloat16 mul_2[512];
    for (int j = 0; j < 512; ++j) mul_2[j] = float(dy[i][j]) * float(weights.weight[j]);
    const float mul_3 = (-0.5f) * (rsqrt * rsqrt * rsqrt);
    const float sum_3 =
        fl::sum<float>(512, [&](int j) { return float(mul_2[j]) * float(x[i][j]); });
    const float div = sum_3 * mul_3 / 512.0f;
    for (int j = 0; j < 512; ++j) {
      const float product = div * float(x[i][j]);
      const float sum_4 = float(mul_2[j]) * rsqrt + product + product;
      d_x[i][j] = fl::rounded<fl::bfloat16>(sum_4);
    }
  }
  auto& sum = fl::at<fl::bfloat16[512]>(arena, 65536);
  for (int j = 0; j < 512; ++j) sum[j] = 0.0f;
  for (int i = 0; i < 64; ++i)
    for (int j = 0; j < 512; ++j) sum[j] = sum[j] + float(mul[i][j]);
  for (int i = 0; i < 512; ++i) d_weight[i] = float(sum[i]);
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
        *static_cast<std::add_pointer_t<fl::bfloat16[512]>>(results[1]),
        static_cast<std::byte*>(arena));
  } catch (const std::exception& error) {
    return fl::keep_message(error.what());
  }
  return nullptr;
}
