#include "flashlight.hpp"

namespace relu3_gradient {

void relu3_gradient(const float (&x)[1024], const float (&dy)[1024],
                    float (&__restrict d_x)[1024]) {
  for (int i = 0; i < 1024; ++i) {
    const float element = dy[i];
    const float product = 0.33333334f * x[i];
    const float sum = (product + product) * x[i] + product * x[i];
    d_x[i] = x[i] < 0.0f ? 0.0f : element * (x[i] < 1.0f ? sum : 1.0f);
  }
}

}  // namespace relu3_gradient

extern "C" const char* relu3_gradient_entry([[maybe_unused]] const void* const* arguments,
                                            [[maybe_unused]] const void* const* weights,
                                            [[maybe_unused]] void* const* results,
                                            [[maybe_unused]] void* arena,
                                            [[maybe_unused]] void* generator) {
  try {
    relu3_gradient::relu3_gradient(
        *static_cast<std::add_pointer_t<const float[1024]>>(arguments[0]),
        *static_cast<std::add_pointer_t<const float[1024]>>(arguments[1]),
        *static_cast<std::add_pointer_t<float[1024]>>(results[0]));
  } catch (const std::exception& error) {
    return fl::keep_message(error.what());
  }
  return nullptr;
}
