#include "flashlight.hpp"

namespace sqrl {

void then_branch(const float (&x)[16][16], float (&__restrict mul)[16][16]) {
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 16; ++j) mul[i][j] = x[i][j] * (-0.125f);
}

void else_branch(const float (&x)[16][16], float (&__restrict mul)[16][16]) {
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 16; ++j) mul[i][j] = x[i][j] * x[i][j] * 0.5f;
}

void map_body(const float (&x)[16][16], float& __restrict mean, std::byte* arena) {
  const bool lt = fl::sum<float, 16, 16>([&](int i, int j) { return x[i][j]; }) < 0.0f;
  auto& cond = fl::at<float[16][16]>(arena, 0);
  if (lt) {
    then_branch(x, cond);
  } else {
    else_branch(x, cond);
  }
  const float sum =
      fl::sum<float, 16, 16>([&](int i, int j) { return fl::sin(cond[i][j]) * cond[i][j]; });
  mean = sum / 256.0f;
}

void sqrl(const float (&x)[1000][16][16], float (&__restrict y)[1000], std::byte* arena) {
  for (int i = 0; i < 1000; ++i) map_body(x[i], y[i], arena);
}

}  // namespace sqrl

extern "C" const char* sqrl_entry([[maybe_unused]] const void* const* arguments,
                                  [[maybe_unused]] const void* const* weights,
                                  [[maybe_unused]] void* const* results,
                                  [[maybe_unused]] void* arena, [[maybe_unused]] void* generator) {
  try {
    sqrl::sqrl(*static_cast<std::add_pointer_t<const float[1000][16][16]>>(arguments[0]),
               *static_cast<std::add_pointer_t<float[1000]>>(results[0]),
               static_cast<std::byte*>(arena));
  } catch (const std::exception& error) {
    return fl::keep_message(error.what());
  }
  return nullptr;
}
