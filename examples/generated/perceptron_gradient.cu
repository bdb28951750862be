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

__global__ void d_output_weight_kernel(const float* __restrict__ dy, const float* __restrict__ relu,
                                       float* __restrict__ d_output_weight) {
  for (int64_t point = fl::thread() / 32; point < 1280; point += fl::threads() / 32) {
    const int i = static_cast<int>(point / 128);
    const int j = static_cast<int>(point % 128);
    const int lane = threadIdx.x % 32;
    float part = 0.0f;
    for (int term = lane; term < 64; term += 32) {
      const int k = term;
      part = part + dy[k * 10 + i] * relu[k * 128 + j];
    }
    const float whole = fl::of_warp(part, fl::add_of<float>);
    if (lane == 0) d_output_weight[i * 128 + j] = whole;
  }
}

__global__ void d_output_bias_kernel(const float* __restrict__ dy,
                                     float* __restrict__ d_output_bias) {
  for (int64_t point = fl::thread() / 32; point < 10; point += fl::threads() / 32) {
    const int i = static_cast<int>(point);
    const int lane = threadIdx.x % 32;
    float part = 0.0f;
    for (int term = lane; term < 64; term += 32) {
      const int j = term;
      part = part + dy[j * 10 + i];
    }
    const float whole = fl::of_warp(part, fl::add_of<float>);
    if (lane == 0) d_output_bias[i] = whole;
  }
}

__global__ void threshold_backward_kernel(const float* __restrict__ dy,
                                          const float* __restrict__ output_weight,
                                          const float* __restrict__ relu,
                                          float* __restrict__ threshold_backward) {
  for (int64_t point = fl::thread(); point < 8192; point += fl::threads()) {
    const int i = static_cast<int>(point / 128);
    const int j = static_cast<int>(point % 128);
    float sum = 0.0f;
    for (int k = 0; k < 10; ++k) sum += dy[i * 10 + k] * output_weight[k * 128 + j];
    float value;
    value = relu[i * 128 + j] <= 0.0f ? 0.0f : sum;
    threshold_backward[i * 128 + j] = value;
  }
}

__global__ void d_hidden_weight_kernel(const float* __restrict__ threshold_backward,
                                       const float* __restrict__ x,
                                       float* __restrict__ d_hidden_weight) {
  for (int64_t point = fl::thread() / 32; point < 100352; point += fl::threads() / 32) {
    const int i = static_cast<int>(point / 784);
    const int j = static_cast<int>(point % 784);
    const int lane = threadIdx.x % 32;
    float part = 0.0f;
    for (int term = lane; term < 64; term += 32) {
      const int k = term;
      part = part + threshold_backward[k * 128 + i] * x[k * 784 + j];
    }
    const float whole = fl::of_warp(part, fl::add_of<float>);
    if (lane == 0) d_hidden_weight[i * 784 + j] = whole;
  }
}

__global__ void d_hidden_bias_kernel(const float* __restrict__ threshold_backward,
                                     float* __restrict__ d_hidden_bias) {
  for (int64_t point = fl::thread() / 32; point < 128; point += fl::threads() / 32) {
    const int i = static_cast<int>(point);
    const int lane = threadIdx.x % 32;
    float part = 0.0f;
    for (int term = lane; term < 64; term += 32) {
      const int j = term;
      part = part + threshold_backward[j * 128 + i];
    }
    const float whole = fl::of_warp(part, fl::add_of<float>);
    if (lane == 0) d_hidden_bias[i] = whole;
  }
}

}  // namespace

extern "C" cudaError_t perceptron_gradient(const float* x, const float* hidden_weight,
                                           const float* hidden_bias, const float* output_weight,
                                           const float* output_bias, const float* dy,
                                           float* d_hidden_weight, float* d_hidden_bias,
                                           float* d_output_weight, float* d_output_bias,
                                           void* arena, cudaStream_t stream) {
  auto* const relu = fl::at<float>(arena, 0);
  auto* const threshold_backward = fl::at<float>(arena, 32768);
  FLASHLIGHT_TRY(
      fl::launch(relu_kernel, fl::warps(8192), stream, x, hidden_weight, hidden_bias, relu));
  FLASHLIGHT_TRY(
      fl::launch(d_output_weight_kernel, fl::warps(1280), stream, dy, relu, d_output_weight));
  FLASHLIGHT_TRY(fl::launch(d_output_bias_kernel, fl::warps(10), stream, dy, d_output_bias));
  FLASHLIGHT_TRY(
      fl::launch(threshold_backward_kernel, fl::points(8192), stream, dy, output_weight, relu,
                 threshold_backward));
  FLASHLIGHT_TRY(
      fl::launch(d_hidden_weight_kernel, fl::warps(100352), stream, threshold_backward, x,
                 d_hidden_weight));
  FLASHLIGHT_TRY(
      fl::launch(d_hidden_bias_kernel, fl::warps(128), stream, threshold_backward, d_hidden_bias));
  return cudaSuccess;
}
