#include "flashlight_cuda.cuh"

namespace {

__global__ void y_kernel(const float* __restrict__ x, float* __restrict__ y) {
  for (int64_t point = fl::thread(); point < 1024; point += fl::threads()) {
    const int i = static_cast<int>(point);
    const float selected = x[i] < 1.0f ? 0.33333334f * x[i] * x[i] * x[i] : x[i] - 0.6666667f;
    y[i] = x[i] < 0.0f ? 0.0f * x[i] : selected;
  }
}

}  // namespace

extern "C" cudaError_t relu3(const float* x, float* y, void* /*arena*/, cudaStream_t stream) {
  FLASHLIGHT_TRY(fl::launch(y_kernel, fl::points(1024), stream, x, y));
  return cudaSuccess;
}
