#include "flashlight.hpp"

namespace sqrl_gradient {

void then_branch(const float (&x)[16][16], float (&__restrict mul)[16][16]) {
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 16; ++j) mul[i][j] = x[i][j] * (-0.125f);
}

void else_branch(const float (&x)[16][16], float (&__restrict mul)[16][16]) {
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 16; ++j) mul[i][j] = x[i][j] * x[i][j] * 0.5f;
}

void map_body(const float (&x)[16][16], float& __restrict mean, float& __restrict sum,
              float (&__restrict cond)[16][16], float (&__restrict sin)[16][16]) {
  sum = fl::sum<float, 16, 16>([&](int i, int j) { return x[i][j]; });
  const bool lt = sum < 0.0f;
  if (lt) {
    then_branch(x, cond);
  } else {
    else_branch(x, cond);
  }
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 16; ++j) sin[i][j] = fl::sin(cond[i][j]);
  mean = fl::sum<float, 16, 16>([&](int i, int j) { return sin[i][j] * cond[i][j]; }) / 256.0f;
}

void then_branch_2([[maybe_unused]] const float (&x)[16][16], const float (&x_2)[16][16],
                   float (&__restrict mul)[16][16]) {
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 16; ++j) mul[i][j] = x_2[i][j] * (-0.125f);
}

void else_branch_2(const float (&x)[16][16], const float (&x_2)[16][16],
                   float (&__restrict add)[16][16]) {
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 16; ++j) {
      const float product = x_2[i][j] * 0.5f * x[i][j];
      add[i][j] = product + product;
    }
}

void map_body_2(const float (&x)[16][16], const float& x_2, const float& x_3,
                const float (&x_4)[16][16], const float (&x_5)[16][16],
                float (&__restrict cond)[16][16], std::byte* arena) {
  const bool lt = x_3 < 0.0f;
  const float div = x_2 / 256.0f;
  auto& add = fl::at<float[16][16]>(arena, 0);
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 16; ++j) add[i][j] = div * x_5[i][j] + div * x_4[i][j] * fl::cos(x_4[i][j]);
  if (lt) {
    then_branch_2(x, add, cond);
  } else {
    else_branch_2(x, add, cond);
  }
}

void sqrl_gradient(const float (&x)[1000][16][16], const float (&dy)[1000],
                   float (&__restrict d_x)[1000][16][16], std::byte* arena) {
  auto& map = fl::at<float[1000]>(arena, 2048000);
  auto& map_2 = fl::at<float[1000]>(arena, 2052032);
  auto& map_3 = fl::at<float[1000][16][16]>(arena, 0);
  auto& map_4 = fl::at<float[1000][16][16]>(arena, 1024000);
  for (int i = 0; i < 1000; ++i) map_body(x[i], map[i], map_2[i], map_3[i], map_4[i]);
  for (int i = 0; i < 1000; ++i)
    map_body_2(x[i], dy[i], map_2[i], map_3[i], map_4[i], d_x[i], arena + 2056064);
}

}  // namespace sqrl_gradient

extern "C" const char* sqrl_gradient_entry([[maybe_unused]] const void* const* arguments,
                                           [[maybe_unused]] const void* const* weights,
                                           [[maybe_unused]] void* const* results,
                                           [[maybe_unused]] void* arena,
                                           [[maybe_unused]] void* generator) {
  try {
    sqrl_gradient::sqrl_gradient(
        *static_cast<std::add_pointer_t<const float[1000][16][16]>>(arguments[0]),
        *static_cast<std::add_pointer_t<const float[1000]>>(arguments[1]),
        *static_cast<std::add_pointer_t<float[1000][16][16]>>(results[0]),
        static_cast<std::byte*>(arena));
  } catch (const std::exception& error) {
    return fl::keep_message(error.what());
  }
  return nullptr;
}
