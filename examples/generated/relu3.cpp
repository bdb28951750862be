#include "flashlight.hpp"

namespace relu3 {

void relu3(const float (&x)[1024], float (&__restrict y)[1024]) {
  for (int i = 0; i < 1024; ++i) {
    const float selected = x[i] < 1.0f ? 0.33333334f * x[i] * x[i] * x[i] : x[i] - 0.6666667f;
    y[i] = x[i] < 0.0f ? 0.0f * x[i] : selected;
  }
}

}  // namespace relu3

extern "C" const char* relu3_entry([[maybe_unused]] const void* const* arguments,
                                   [[maybe_unused]] const void* const* weights,
                                   [[maybe_unused]] void* const* results,
                                   [[maybe_unused]] void* arena, [[maybe_unused]] void* generator) {
  try {
    relu3::relu3(*static_cast<std::add_pointer_t<const float[1024]>>(arguments[0]),
                 *static_cast<std::add_pointer_t<float[1024]>>(results[0]));
  } catch (const std::exception& error) {
    return fl::keep_message(error.what());
  }
  return nullptr;
}
