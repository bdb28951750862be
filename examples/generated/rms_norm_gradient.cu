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

__global__ void to_2_kernel(const fl::bfloat16* __restrict__ x, const float* __restrict__ rsqrt,
                            fl::bfloat16* __restrict__ to_2) {
  for (int64_t point = fl::thread(); point < 32768; point += fl::threads()) {
    const int i = static_cast<int>(point / 512);
    const int j = static_cast<int>(point % 512);
    to_2[i * 512 + j] = fl::rounded<fl::bfloat16>(float(x[i * 512 + j]) * rsqrt[i]);
  }
}

__global__ void mul_3_kernel(const fl::bfloat16* __restrict__ dy,
                             const fl::bfloat16* __restrict__ to_2,
                             fl::bfloat16* __restrict__ mul_3) {
  for (int64_t point = fl::thread(); point < 32768; point += fl::threads()) {
    const int i = static_cast<int>(point / 512);
    const int j = static_cast<int>(point % 512);
    mul_3[i * 512 + j] = float(dy[i * 512 + j]) * float(to_2[i * 512 + j]);
  }
}

__global__ void mul_4_kernel(const fl::bfloat16* __restrict__ dy,
                             const fl::bfloat16* __restrict__ weight,
                             fl::bfloat16* __restrict__ mul_4) {
  for (int64_t point = fl::thread(); point < 32768; point += fl::threads()) {
    const int i = static_cast<int>(point / 512);
    const int j = static_cast<int>(point % 512);
    mul_4[i * 512 + j] = float(dy[i * 512 + j]) * float(weight[j]);
  }
}

__global__ void sum_kernel(const fl::bfloat16* __restrict__ mul_3, fl::bfloat16* __restrict__ sum) {
  for (int64_t point = fl::thread() / 32; point < 512; point += fl::threads() / 32) {
    const int i = static_cast<int>(point);
    const int lane = threadIdx.x % 32;
    float part = 0.0f;
    for (int term = lane; term < 64; term += 32) {
      const int j = term;
      part = part + float(mul_3[j * 512 + i]);
    }
    const float whole = fl::of_warp(part, fl::add_of<float>);
    if (lane == 0) sum[i] = whole;
  }
}

__global__ void d_weight_kernel(const fl::bfloat16* __restrict__ sum,
                                fl::bfloat16* __restrict__ d_weight) {
  for (int64_t point = fl::thread(); point < 512; point += fl::threads()) {
    const int i = static_cast<int>(point);
    d_weight[i] = float(sum[i]);
  }
}

__global__ void mul_9_kernel(const float* __restrict__ rsqrt, float* __restrict__ mul_9) {
  for (int64_t point = fl::thread(); point < 64; point += fl::threads()) {
    const int i = static_cast<int>(point);
    mul_9[i] = (-0.5f) * (rsqrt[i] * rsqrt[i] * rsqrt[i]);
  }
}

__global__ void div_kernel(const fl::bfloat16* __restrict__ mul_4,
                           const fl::bfloat16* __restrict__ x, const float* __restrict__ mul_9,
                           float* __restrict__ div) {
  for (int64_t point = fl::thread() / 32; point < 64; point += fl::threads() / 32) {
    const int i = static_cast<int>(point);
    const int lane = threadIdx.x % 32;
    float part = 0.0f;
    for (int term = lane; term < 512; term += 32) {
      const int j = term;
      part = part + float(mul_4[i * 512 + j]) * float(x[i * 512 + j]);
    }
    const float whole = fl::of_warp(part, fl::add_of<float>);
    if (lane == 0) div[i] = whole * mul_9[i] / 512.0f;
  }
}

__global__ void d_x_kernel(const fl::bfloat16* __restrict__ mul_4, const float* __restrict__ rsqrt,
                           const float* __restrict__ div, const fl::bfloat16* __restrict__ x,
                           fl::bfloat16* __restrict__ d_x) {
  for (int64_t point = fl::thread(); point < 32768; point += fl::threads()) {
    const int i = static_cast<int>(point / 512);
    const int j = static_cast<int>(point % 512);
    const float product = div[i] * float(x[i * 512 + j]);
    const float sum = float(mul_4[i * 512 + j]) * rsqrt[i] + product + product;
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
  auto* const rsqrt = fl::at<float>(arena, 132096);
  auto* const to_2 = fl::at<fl::bfloat16>(arena, 0);
  auto* const mul_3 = fl::at<fl::bfloat16>(arena, 65536);
  auto* const mul_4 = fl::at<fl::bfloat16>(arena, 0);
  auto* const sum = fl::at<fl::bfloat16>(arena, 131072);
  auto* const mul_9 = fl::at<float>(arena, 65536);
  auto* const div = fl::at<float>(arena, 65792);
  FLASHLIGHT_TRY(fl::launch(rsqrt_kernel, fl::warps(64), stream, x, rsqrt));
  FLASHLIGHT_TRY(fl::launch(to_2_kernel, fl::points(32768), stream, x, rsqrt, to_2));
  FLASHLIGHT_TRY(fl::launch(mul_3_kernel, fl::points(32768), stream, dy, to_2, mul_3));
  FLASHLIGHT_TRY(fl::launch(mul_4_kernel, fl::points(32768), stream, dy, weight, mul_4));
  FLASHLIGHT_TRY(fl::launch(sum_kernel, fl::warps(512), stream, mul_3, sum));
  FLASHLIGHT_TRY(fl::launch(d_weight_kernel, fl::points(512), stream, sum, d_weight));
  FLASHLIGHT_TRY(fl::launch(mul_9_kernel, fl::points(64), stream, rsqrt, mul_9));
  FLASHLIGHT_TRY(fl::launch(div_kernel, fl::warps(64), stream, mul_4, x, mul_9, div));
  FLASHLIGHT_TRY(fl::launch(d_x_kernel, fl::points(32768), stream, mul_4, rsqrt, div, x, d_x));
  return cudaSuccess;
}
