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

__global__ void lt_kernel(const float* __restrict__ x, bool* __restrict__ lt) {
  for (int64_t point = fl::thread() / 32; point < 1; point += fl::threads() / 32) {
    const int lane = threadIdx.x % 32;
    float part = 0.0f;
    for (int term = lane; term < 256; term += 32) {
      const int i = term / 16;
      const int j = term % 16;
      part = part + x[i * 16 + j];
    }
    const float whole = fl::of_warp(part, fl::add_of<float>);
    if (lane == 0) lt[0] = whole < 0.0f;
  }
}

__global__ void mean_kernel(const float* __restrict__ cond, float* __restrict__ mean) {
  for (int64_t point = fl::thread() / 32; point < 1; point += fl::threads() / 32) {
    const int lane = threadIdx.x % 32;
    float part = 0.0f;
    for (int term = lane; term < 256; term += 32) {
      const int i = term / 16;
      const int j = term % 16;
      part = part + fl::sin(cond[i * 16 + j]) * cond[i * 16 + j];
    }
    const float whole = fl::of_warp(part, fl::add_of<float>);
    if (lane == 0) mean[0] = whole / 256.0f;
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

cudaError_t map_body(const float* x, float* mean, char* arena, cudaStream_t stream) {
  auto* const lt = fl::at<bool>(arena, 1024);
  auto* const cond = fl::at<float>(arena, 0);
  FLASHLIGHT_TRY(fl::launch(lt_kernel, fl::warps(1), stream, x, lt));
  bool chosen;
  FLASHLIGHT_TRY(fl::read(&chosen, lt, stream));
  if (chosen) {
    FLASHLIGHT_TRY(then_branch(x, cond, nullptr, stream));
  } else {
    FLASHLIGHT_TRY(else_branch(x, cond, nullptr, stream));
  }
  FLASHLIGHT_TRY(fl::launch(mean_kernel, fl::warps(1), stream, cond, mean));
  return cudaSuccess;
}

}  // namespace

extern "C" cudaError_t sqrl(const float* x, float* y, void* arena, cudaStream_t stream) {
  for (int64_t trip = 0; trip < 1000; ++trip) {
    FLASHLIGHT_TRY(map_body(x + trip * 256, y + trip, fl::at<char>(arena, 0), stream));
  }
  return cudaSuccess;
}
