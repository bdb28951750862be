// Programs for CUDA whose kernels run in the host's machine, and what it saw of their memory.
//
//   Watch watch(library);
//   watch.allow(x.data(), x.nbytes());
//   ... a call ...
//   EXPECT_EQ(watch.fault(), "");
#pragma once

#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "flashlight/toolchain/library.h"

namespace flashlight::cuda::test {

inline std::string read_file(const std::string& path) {
  std::ifstream stream(path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// The headers of the machine, by name.
inline std::vector<std::pair<std::string, std::string>> machine_headers() {
  const std::string folder = FLASHLIGHT_HOST_CUDA;
  return {{"host_cuda.h", read_file(folder + "/host_cuda.h")},
          {"host_memory.h", read_file(folder + "/host_memory.h")}};
}

// A flag by which the machine reports arithmetic that C++ leaves undefined.
constexpr const char* kUndefined = "-fsanitize=signed-integer-overflow,float-cast-overflow";

// The kernels with parameters that are watched.
inline std::string watched(const std::string& text) {
  static const std::regex pointer(R"((const )?([\w:<>]+)\* __restrict__ (\w+))");
  return std::regex_replace(text, pointer, "host_cuda::Pointer<$1$2> $3");
}

// Sectors of 32 bytes that warps touched, and how few would hold the bytes they touched.
struct Traffic {
  int64_t touched = 0, least = 0;
  double ratio() const {
    return least == 0 ? 1 : static_cast<double>(touched) / static_cast<double>(least);
  }
};
struct Sectors {
  Traffic reads, writes;
};

// The functions of host_memory.h in a library of kernels.
class Watch {
 public:
  explicit Watch(const toolchain::Library& library)
      : allow(library.symbol<void(const void*, size_t)>("host_cuda_allow")),
        forbid(library.symbol<void(const void*)>("host_cuda_forbid")),
        forget(library.symbol<void()>("host_cuda_forget")),
        fault_(library.symbol<const char*()>("host_cuda_fault")),
        sectors_(library.symbol<void(int64_t*)>("host_cuda_sectors")) {}

  // Kernels may access these bytes from now on; no more; what was seen is forgotten.
  void (*allow)(const void*, size_t);
  void (*forbid)(const void*);
  void (*forget)();

  // The first thing that was wrong; empty: nothing.
  std::string fault() const { return fault_(); }
  Sectors sectors() const {
    int64_t numbers[4];
    sectors_(numbers);
    return {{numbers[0], numbers[1]}, {numbers[2], numbers[3]}};
  }

 private:
  const char* (*fault_)();
  void (*sectors_)(int64_t*);
};

}  // namespace flashlight::cuda::test
