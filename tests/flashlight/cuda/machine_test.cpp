// The host's machine itself: kernels with a mistake each, and what it says of them; how it counts
// sectors.
#include <gtest/gtest.h>

#include <cmath>

#include "flashlight/package/shipped.h"
#include "tests/flashlight/cuda/watched.h"

namespace flashlight::cuda {
namespace {

const char* const kKernels = R"(
__global__ void shared_bounds(float* __restrict__ y) {
  FLASHLIGHT_SHARED(float, parts, 256);
  parts[threadIdx.x + 1] = 1.0f;
  y[threadIdx.x] = 0.0f;
}
__global__ void shared_unwritten(float* __restrict__ y) {
  FLASHLIGHT_SHARED(float, parts, 256);
  if (threadIdx.x < 255) parts[threadIdx.x] = 1.0f;
  __syncthreads();
  y[threadIdx.x] = parts[255 - threadIdx.x];
}
__global__ void shared_race(float* __restrict__ y) {
  FLASHLIGHT_SHARED(float, parts, 256);
  parts[threadIdx.x] = 1.0f;
  __syncthreads();
  parts[threadIdx.x] = 2.0f + parts[255 - threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = parts[threadIdx.x];
}
__global__ void bounds(float* __restrict__ y) { y[threadIdx.x * 33] = 0.0f; }
__global__ void race(float* __restrict__ y) { y[threadIdx.x / 2] = 0.0f; }
__global__ void overflow(float* __restrict__ y) {
  const int least = static_cast<int>(-y[threadIdx.x]) - 2147483647 - 1;
  y[threadIdx.x] = static_cast<float>(-least);
}
__global__ void negative_byte(float* __restrict__ y) {
  y[threadIdx.x] = static_cast<uint8_t>(y[threadIdx.x] - 1.0f);
}
__global__ void reversed(float* __restrict__ y) {
  FLASHLIGHT_SHARED(float, parts, 256);
  parts[threadIdx.x] = y[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = parts[255 - threadIdx.x];
}
__global__ void spread(float* __restrict__ y) { y[threadIdx.x * 8] = 1.0f; }
__global__ void one_for_all(const float* __restrict__ x, float* __restrict__ y) {
  y[threadIdx.x] = x[0];
}
#define ENTRY(name) \
  extern "C" int name##_entry(float* y) { return fl::launch(name, fl::blocks(1), nullptr, y); }
ENTRY(shared_bounds) ENTRY(shared_unwritten) ENTRY(shared_race) ENTRY(bounds) ENTRY(race)
ENTRY(overflow) ENTRY(negative_byte) ENTRY(reversed) ENTRY(spread)
extern "C" int one_for_all_entry(float* y) {
  return fl::launch(one_for_all, fl::blocks(1), nullptr, y + 1024, y);
}
)";

class CudaMachine : public testing::Test {
 protected:
  static const toolchain::Library& library() {
    static const toolchain::Library loaded = [] {
      toolchain::Sources sources;
      sources.headers = {package::shipped_file("flashlight_cuda.cuh")};
      for (const auto& [name, text] : test::machine_headers())
        sources.headers.push_back({name, text});
      sources.units.push_back(
          {"kernels.cpp", "#include \"host_cuda.h\"\n" + test::watched(kKernels)});
      return toolchain::Library::load(sources, {.flags = {"-std=c++17", "-O0", test::kUndefined}});
    }();
    return loaded;
  }

  // What the machine says after a kernel of one block, on 2,048 elements.
  std::string fault_of(const std::string& kernel) {
    watch_.forget();
    watch_.allow(elements_, sizeof elements_);
    library().symbol<int(float*)>(kernel + "_entry")(elements_);
    return watch_.fault();
  }

  alignas(32) float elements_[2048] = {};
  test::Watch watch_{library()};
};

TEST_F(CudaMachine, SeesMistakes) {
  EXPECT_EQ(fault_of("shared_bounds"), "thread 255 leaves its shared memory");
  EXPECT_EQ(fault_of("shared_unwritten"), "thread 0 reads shared memory that nobody wrote");
  EXPECT_TRUE(fault_of("shared_race").ends_with("race for an element of shared memory"));
  EXPECT_TRUE(fault_of("bounds").ends_with("leaves its memory"));
  EXPECT_TRUE(fault_of("race").ends_with("race for an element"));
}

TEST_F(CudaMachine, SeesUndefinedArithmetic) {
  EXPECT_TRUE(fault_of("overflow").starts_with("a negated number overflows in line "));
  EXPECT_TRUE(fault_of("negative_byte").starts_with("a float does not fit an integer in line "));
}

TEST_F(CudaMachine, LetsBarriersOrderAccesses) {
  for (size_t i = 0; i < 256; ++i) elements_[i] = static_cast<float>(i);
  EXPECT_EQ(fault_of("reversed"), "");
  for (size_t i = 0; i < 256; ++i) EXPECT_EQ(elements_[i], static_cast<float>(255 - i));
}

// A sector holds 8 floats; a warp has 4 of them, and all its lanes' own where they lie apart.
TEST_F(CudaMachine, CountsSectors) {
  EXPECT_EQ(fault_of("reversed"), "");
  EXPECT_EQ(watch_.sectors().reads.touched, 32);
  EXPECT_EQ(watch_.sectors().writes.touched, 32);
  EXPECT_EQ(fault_of("spread"), "");
  EXPECT_EQ(watch_.sectors().writes.touched, 256);
  EXPECT_EQ(watch_.sectors().writes.least, 32);
  EXPECT_EQ(fault_of("one_for_all"), "");
  EXPECT_EQ(watch_.sectors().reads.touched, 8);
  EXPECT_EQ(watch_.sectors().reads.least, 8);
}

}  // namespace
}  // namespace flashlight::cuda
