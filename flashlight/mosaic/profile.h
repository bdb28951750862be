// How long the kernels of a call took.
//
//   const Profile profile = compiled.profile(inputs, results);
//   std::cout << table(profile, 236.0);        // GFLOP/s that the machine can do
//   write_file("trace.json", chrome_trace(profile));
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "flashlight/mosaic/kernel_writer.h"

namespace flashlight::mosaic {

struct TimedKernel {
  std::string name, module;
  int64_t start = 0, end = 0;  // nanoseconds of a steady clock
  int64_t operations = 0;      // multiplications and additions of products
  int64_t bytes = 0;           // of the values that it touches, each once
};
using Profile = std::vector<TimedKernel>;

// Without times.
TimedKernel timed_kernel(const Plan& plan, const Kernel& kernel, const KernelText& text);

// A line per name of a kernel, the longest time first: calls, milliseconds, share of all, GFLOP/s,
// share of `peak` (GFLOP/s; 0: unknown), GB/s.
std::string table(const Profile& profile, double peak = 0);

// For chrome://tracing and Perfetto.
std::string chrome_trace(const Profile& profile);

}  // namespace flashlight::mosaic
