#include "flashlight_cuda.cuh"

namespace {

__global__ void d_x_kernel(const float* __restrict__ x, const float* __restrict__ dy,
                           float* __restrict__ d_x) {
  for (int64_t point = fl::thread(); point < 1024; point += fl::threads()) {
    const int i = static_cast<int>(point);
    const float element = dy[i];
    const float product = 0.33333334f * x[i];
    const float sum = (product + product) * x[i] + product * x[i];
    d_x[i] = x[i] < 0.0f ? 0.0f : element * (x[i] < 1.0f ? sum : 1.0f);
  }
}

}  // namespace

extern "C" cudaError_t relu3_gradient(const float* x, const float* dy, float* d_x, void* /*arena*/,
                                      cudaStream_t stream) {
  FLASHLIGHT_TRY(fl::launch(d_x_kernel, fl::points(1024), stream, x, dy, d_x));
  return cudaSuccess;
}
