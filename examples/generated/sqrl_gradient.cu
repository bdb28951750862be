#include "flashlight_cuda.cuh"

namespace {

__global__ void mul_kernel(const float* __restrict__ x, float* __restrict__ mul) {
  for (int64_t point = fl::thread(); point < 256; point += fl::threads()) {
    const int i = static_cast<int>(point / 16);
    const int j = static_cast<int>(point % 16);
    mul[i * 16 + j] = x[i * 16 + j] * (-0.125f);
  }
}

__global__ void mul_2_kernel(const float* __restrict__ x, float* __restrict__ mul_2) {
  for (int64_t point = fl::thread(); point < 256; point += fl::threads()) {
    const int i = static_cast<int>(point / 16);
    const int j = static_cast<int>(point % 16);
    mul_2[i * 16 + j] = x[i * 16 + j] * x[i * 16 + j] * 0.5f;
  }
}

__global__ void sum_kernel(const float* __restrict__ x, float* __restrict__ sum) {
  for (int64_t point = fl::thread() / 32; point < 1; point += fl::threads() / 32) {
    const int lane = threadIdx.x % 32;
    float part = 0.0f;
    for (int term = lane; term < 256; term += 32) {
      const int i = term / 16;
      const int j = term % 16;
      part = part + x[i * 16 + j];
    }
    const float whole = fl::of_warp(part, fl::add_of<float>);
    if (lane == 0) sum[0] = whole;
  }
}

__global__ void lt_kernel(const float* __restrict__ sum, bool* __restrict__ lt) {
  for (int64_t point = fl::thread(); point < 1; point += fl::threads()) {
    lt[0] = sum[0] < 0.0f;
  }
}

__global__ void sin_kernel(const float* __restrict__ cond, float* __restrict__ sin) {
  for (int64_t point = fl::thread(); point < 256; point += fl::threads()) {
    const int i = static_cast<int>(point / 16);
    const int j = static_cast<int>(point % 16);
    sin[i * 16 + j] = fl::sin(cond[i * 16 + j]);
  }
}

__global__ void mean_kernel(const float* __restrict__ sin, const float* __restrict__ cond,
                            float* __restrict__ mean) {
  for (int64_t point = fl::thread() / 32; point < 1; point += fl::threads() / 32) {
    const int lane = threadIdx.x % 32;
    float part = 0.0f;
    for (int term = lane; term < 256; term += 32) {
      const int i = term / 16;
      const int j = term % 16;
      part = part + sin[i * 16 + j] * cond[i * 16 + j];
    }
    const float whole = fl::of_warp(part, fl::add_of<float>);
    if (lane == 0) mean[0] = whole / 256.0f;
  }
}

__global__ void mul_kernel_2(const float* __restrict__ x_2, float* __restrict__ mul) {
  for (int64_t point = fl::thread(); point < 256; point += fl::threads()) {
    const int i = static_cast<int>(point / 16);
    const int j = static_cast<int>(point % 16);
    mul[i * 16 + j] = x_2[i * 16 + j] * (-0.125f);
  }
}

__global__ void add_kernel(const float* __restrict__ x_2, const float* __restrict__ x,
                           float* __restrict__ add) {
  for (int64_t point = fl::thread(); point < 256; point += fl::threads()) {
    const int i = static_cast<int>(point / 16);
    const int j = static_cast<int>(point % 16);
    const float product = x_2[i * 16 + j] * 0.5f * x[i * 16 + j];
    add[i * 16 + j] = product + product;
  }
}

__global__ void lt_kernel_2(const float* __restrict__ x_3, bool* __restrict__ lt) {
  for (int64_t point = fl::thread(); point < 1; point += fl::threads()) {
    lt[0] = x_3[0] < 0.0f;
  }
}

__global__ void div_kernel(const float* __restrict__ x_2, float* __restrict__ div) {
  for (int64_t point = fl::thread(); point < 1; point += fl::threads()) {
    div[0] = x_2[0] / 256.0f;
  }
}

__global__ void add_kernel_2(const float* __restrict__ div, const float* __restrict__ x_5,
                             const float* __restrict__ x_4, float* __restrict__ add) {
  for (int64_t point = fl::thread(); point < 256; point += fl::threads()) {
    const int i = static_cast<int>(point / 16);
    const int j = static_cast<int>(point % 16);
    const float product = div[0] * x_5[i * 16 + j];
    const float product_2 = div[0] * x_4[i * 16 + j] * fl::cos(x_4[i * 16 + j]);
    add[i * 16 + j] = product + product_2;
  }
}

cudaError_t then_branch(const float* x, float* mul, char* /*arena*/, cudaStream_t stream) {
  FLASHLIGHT_TRY(fl::launch(mul_kernel, fl::points(256), stream, x, mul));
  return cudaSuccess;
}

cudaError_t else_branch(const float* x, float* mul_2, char* /*arena*/, cudaStream_t stream) {
  FLASHLIGHT_TRY(fl::launch(mul_2_kernel, fl::points(256), stream, x, mul_2));
  return cudaSuccess;
}

cudaError_t map_body(const float* x, float* mean, float* sum, float* cond, float* sin, char* arena,
                     cudaStream_t stream) {
  auto* const lt = fl::at<bool>(arena, 0);
  FLASHLIGHT_TRY(fl::launch(sum_kernel, fl::warps(1), stream, x, sum));
  FLASHLIGHT_TRY(fl::launch(lt_kernel, fl::points(1), stream, sum, lt));
  bool chosen;
  FLASHLIGHT_TRY(fl::read(&chosen, lt, stream));
  if (chosen) {
    FLASHLIGHT_TRY(then_branch(x, cond, nullptr, stream));
  } else {
    FLASHLIGHT_TRY(else_branch(x, cond, nullptr, stream));
  }
  FLASHLIGHT_TRY(fl::launch(sin_kernel, fl::points(256), stream, cond, sin));
  FLASHLIGHT_TRY(fl::launch(mean_kernel, fl::warps(1), stream, sin, cond, mean));
  return cudaSuccess;
}

cudaError_t then_branch_2(const float* x, const float* x_2, float* mul, char* /*arena*/,
                          cudaStream_t stream) {
  FLASHLIGHT_TRY(fl::launch(mul_kernel_2, fl::points(256), stream, x_2, mul));
  return cudaSuccess;
}

cudaError_t else_branch_2(const float* x, const float* x_2, float* add, char* /*arena*/,
                          cudaStream_t stream) {
  FLASHLIGHT_TRY(fl::launch(add_kernel, fl::points(256), stream, x_2, x, add));
  return cudaSuccess;
}

cudaError_t map_body_2(const float* x, const float* x_2, const float* x_3, const float* x_4,
                       const float* x_5, float* cond, char* arena, cudaStream_t stream) {
  auto* const lt = fl::at<bool>(arena, 1088);
  auto* const div = fl::at<float>(arena, 1024);
  auto* const add = fl::at<float>(arena, 0);
  FLASHLIGHT_TRY(fl::launch(lt_kernel_2, fl::points(1), stream, x_3, lt));
  FLASHLIGHT_TRY(fl::launch(div_kernel, fl::points(1), stream, x_2, div));
  FLASHLIGHT_TRY(fl::launch(add_kernel_2, fl::points(256), stream, div, x_5, x_4, add));
  bool chosen;
  FLASHLIGHT_TRY(fl::read(&chosen, lt, stream));
  if (chosen) {
    FLASHLIGHT_TRY(then_branch_2(x, add, cond, nullptr, stream));
  } else {
    FLASHLIGHT_TRY(else_branch_2(x, add, cond, nullptr, stream));
  }
  return cudaSuccess;
}

}  // namespace

extern "C" cudaError_t sqrl_gradient(const float* x, const float* dy, float* d_x, void* arena,
                                     cudaStream_t stream) {
  auto* const map = fl::at<float>(arena, 2048000);
  auto* const map_2 = fl::at<float>(arena, 2052032);
  auto* const map_3 = fl::at<float>(arena, 0);
  auto* const map_4 = fl::at<float>(arena, 1024000);
  for (int64_t trip = 0; trip < 1000; ++trip) {
    FLASHLIGHT_TRY(
        map_body(x + trip * 256, map + trip, map_2 + trip, map_3 + trip * 256, map_4 + trip * 256,
                 fl::at<char>(arena, 2056064), stream));
  }
  for (int64_t trip_2 = 0; trip_2 < 1000; ++trip_2) {
    FLASHLIGHT_TRY(
        map_body_2(x + trip_2 * 256, dy + trip_2, map_2 + trip_2, map_3 + trip_2 * 256,
                   map_4 + trip_2 * 256, d_x + trip_2 * 256, fl::at<char>(arena, 2056064), stream));
  }
  return cudaSuccess;
}
