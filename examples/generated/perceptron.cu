#include "flashlight_cuda.cuh"

namespace {

__global__ void relu_kernel(const float* __restrict__ x, const float* __restrict__ hidden_weight,
                            const float* __restrict__ hidden_bias, float* __restrict__ relu) {
  for (int64_t point = fl::thread() / 32; point < 8192; point += fl::threads() / 32) {
    const int i = static_cast<int>(point / 128);
    const int j = static_cast<int>(point % 128);
    const int lane = threadIdx.x % 32;
    float part = 0.0f;
    for (int term = lane; term < 784; term += 32) {
      const int k = term;
      part = part + x[i * 784 + k] * hidden_weight[j * 784 + k];
    }
    const float whole = fl::of_warp(part, fl::add_of<float>);
    if (lane == 0) {
      const float sum = whole + hidden_bias[j];
      relu[i * 128 + j] = sum < 0.0f ? 0.0f : sum;
    }
  }
}

__global__ void y_kernel(const float* __restrict__ relu, const float* __restrict__ output_weight,
                         const float* __restrict__ output_bias, float* __restrict__ y) {
  for (int64_t point = fl::thread() / 32; point < 640; point += fl::threads() / 32) {
    const int i = static_cast<int>(point / 10);
    const int j = static_cast<int>(point % 10);
    const int lane = threadIdx.x % 32;
    float part = 0.0f;
    for (int term = lane; term < 128; term += 32) {
      const int k = term;
      part = part + relu[i * 128 + k] * output_weight[j * 128 + k];
    }
    const float whole = fl::of_warp(part, fl::add_of<float>);
    if (lane == 0) y[i * 10 + j] = whole + output_bias[j];
  }
}

}  // namespace

extern "C" cudaError_t perceptron(const float* x, const float* hidden_weight,
                                  const float* hidden_bias, const float* output_weight,
                                  const float* output_bias, float* y, void* arena,
                                  cudaStream_t stream) {
  auto* const relu = fl::at<float>(arena, 0);
  FLASHLIGHT_TRY(
      fl::launch(relu_kernel, fl::warps(8192), stream, x, hidden_weight, hidden_bias, relu));
  FLASHLIGHT_TRY(fl::launch(y_kernel, fl::warps(640), stream, relu, output_weight, output_bias, y));
  return cudaSuccess;
}
