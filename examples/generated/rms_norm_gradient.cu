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

__global__ void d_weight_kernel(const fl::bfloat16* __restrict__ dy,
                                const fl::bfloat16* __restrict__ x, const float* __restrict__ rsqrt,
                                fl::bfloat16* __restrict__ d_weight) {
  for (int64_t point = fl::thread() / 32; point < 512; point += fl::threads() / 32) {
    const int i = static_cast<int>(point);
    const int lane = threadIdx.x % 32;
    float part = 0.0f;
    for (int term = lane; term < 64; term += 32) {
      const int j = term;
      const float converted = fl::rounded<fl::bfloat16>(float(x[j * 512 + i]) * rsqrt[j]);
      part = part + float(dy[j * 512 + i]) * converted;
    }
    const float whole = fl::of_warp(part, fl::add_of<float>);
    if (lane == 0) d_weight[i] = whole;
  }
}

__global__ void div_kernel(const fl::bfloat16* __restrict__ dy,
                           const fl::bfloat16* __restrict__ weight,
                           const fl::bfloat16* __restrict__ x, const float* __restrict__ rsqrt,
                           float* __restrict__ div) {
  for (int64_t point = fl::thread() / 32; point < 64; point += fl::threads() / 32) {
    const int i = static_cast<int>(point);
    const int lane = threadIdx.x % 32;
    float part = 0.0f;
    for (int term = lane; term < 512; term += 32) {
      const int j = term;
      const float converted =
          fl::rounded<fl::bfloat16>((float(dy[i * 512 + j]) * float(weight[j])));
      const float converted_2 = float(x[i * 512 + j]);
      part = part + converted * converted_2;
    }
    const float whole = fl::of_warp(part, fl::add_of<float>);
    if (lane == 0) div[i] = whole * ((-0.5f) * (rsqrt[i] * rsqrt[i] * rsqrt[i])) / 512.0f;
  }
}

__global__ void d_x_kernel(const fl::bfloat16* __restrict__ dy,
                           const fl::bfloat16* __restrict__ weight, const float* __restrict__ rsqrt,
                           const float* __restrict__ div, const fl::bfloat16* __restrict__ x,
                           fl::bfloat16* __restrict__ d_x) {
  for (int64_t point = fl::thread(); point < 32768; point += fl::threads()) {
    const int i = static_cast<int>(point / 512);
    const int j = static_cast<int>(point % 512);
    const float converted = fl::rounded<fl::bfloat16>((float(dy[i * 512 + j]) * float(weight[j])));
    const float product = div[i] * float(x[i * 512 + j]);
    const float sum = converted * rsqrt[i] + product + product;
    d_x[i * 512 + j] = fl::rounded<fl::bfloat16>(sum);
  }
}

}  // namespace

extern "C" cudaError_t rms_norm_gradient(const uint16_t* x_bits, const uint16_t* weight_bits,
                                         const uint16_t* dy_bits, uint16_t* d_x_bits,
                                         uint16_t* d_weight_bits, void* arena,
                                         cudaStream_t stream) {
  auto* const x = reinterpret_cast<const fl::bfloat16*>(x_bits);
  auto* const weight = reinterpret_cast<const fl::bfloat16*>(weight_bits);
  auto* const dy = reinterpret_cast<const fl::bfloat16*>(dy_bits);
  auto* const d_x = reinterpret_cast<fl::bfloat16*>(d_x_bits);
  auto* const d_weight = reinterpret_cast<fl::bfloat16*>(d_weight_bits);
  auto* const rsqrt = fl::at<float>(arena, 0);
  auto* const div = fl::at<float>(arena, 256);
  FLASHLIGHT_TRY(fl::launch(rsqrt_kernel, fl::warps(64), stream, x, rsqrt));
  FLASHLIGHT_TRY(fl::launch(d_weight_kernel, fl::warps(512), stream, dy, x, rsqrt, d_weight));
  FLASHLIGHT_TRY(fl::launch(div_kernel, fl::warps(64), stream, dy, weight, x, rsqrt, div));
  FLASHLIGHT_TRY(fl::launch(d_x_kernel, fl::points(32768), stream, dy, weight, rsqrt, div, x, d_x));
  return cudaSuccess;
}
