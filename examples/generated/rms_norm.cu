#include "flashlight_cuda.cuh"

namespace {

__global__ void rsqrt_kernel(const fl::bfloat16* __restrict__ x, float* __restrict__ rsqrt) {
  for (int64_t point = fl::thread() / 32; point < 64; point += fl::threads() / 32) {
    const int i = static_cast<int>(point);
    const int lane = threadIdx.x % 32;
    float part = 0.0f;
    for (int term = lane; term < 512; term += 32) {
      const int j = term;
      part = part + float(x[i * 512 + j]) * float(x[i * 512 + j]);
    }
    const float whole = fl::of_warp(part, fl::add_of<float>);
    if (lane == 0) rsqrt[i] = fl::rsqrt(whole / 512.0f + 1e-06f);
  }
}

__global__ void y_kernel(const fl::bfloat16* __restrict__ x, const float* __restrict__ rsqrt,
                         const fl::bfloat16* __restrict__ weight, fl::bfloat16* __restrict__ y) {
  for (int64_t point = fl::thread(); point < 32768; point += fl::threads()) {
    const int i = static_cast<int>(point / 512);
    const int j = static_cast<int>(point % 512);
    const float converted = fl::rounded<fl::bfloat16>(float(x[i * 512 + j]) * rsqrt[i]);
    y[i * 512 + j] = converted * float(weight[j]);
  }
}

}  // namespace

extern "C" cudaError_t rms_norm(const uint16_t* x_bits, const uint16_t* weight_bits,
                                uint16_t* y_bits, void* arena, cudaStream_t stream) {
  auto* const x = reinterpret_cast<const fl::bfloat16*>(x_bits);
  auto* const weight = reinterpret_cast<const fl::bfloat16*>(weight_bits);
  auto* const y = reinterpret_cast<fl::bfloat16*>(y_bits);
  auto* const rsqrt = fl::at<float>(arena, 0);
  FLASHLIGHT_TRY(fl::launch(rsqrt_kernel, fl::warps(64), stream, x, rsqrt));
  FLASHLIGHT_TRY(fl::launch(y_kernel, fl::points(32768), stream, x, rsqrt, weight, y));
  return cudaSuccess;
}
