#include "flashlight.hpp"

namespace rms_norm {

struct Weights {
  const fl::bfloat16* weight;
};

void rms_norm(const Weights& weights, const fl::bfloat16 (&x)[64][512],
              fl::bfloat16 (&__restrict y)[64][512]) {
  for (int i = 0; i < 64; ++i) {
    const float sum = fl::sum<float>(512, [&](int j) { return float(x[i][j]) * float(x[i][j]); });
    const float rsqrt = fl::rsqrt(sum / 512.0f + 1e-06f);
    for (int j = 0; j < 512; ++j) {
      const float converted = fl::rounded<fl::bfloat16>(float(x[i][j]) * rsqrt);
      y[i][j] = converted * float(weights.weight[j]);
    }
  }
}

}  // namespace rms_norm

extern "C" const char* rms_norm_entry([[maybe_unused]] const void* const* arguments,
                                      [[maybe_unused]] const void* const* weights,
                                      [[maybe_unused]] void* const* results,
                                      [[maybe_unused]] void* arena,
                                      [[maybe_unused]] void* generator) {
  rms_norm::Weights bound;
  std::memcpy(&bound, weights, sizeof bound);
  try {
    rms_norm::rms_norm(bound,
                       *static_cast<std::add_pointer_t<const fl::bfloat16[64][512]>>(arguments[0]),
                       *static_cast<std::add_pointer_t<fl::bfloat16[64][512]>>(results[0]));
  } catch (const std::exception& error) {
    return fl::keep_message(error.what());
  }
  return nullptr;
}
