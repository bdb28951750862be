// What decoding cannot be faster than on this machine: `./dev bench llm` prints it beside its
// times.
//
//   const Limits now = look_at_limits(2, memory);          // two threads, of 1 GB: about a second
#pragma once

#include <cstdint>
#include <span>

namespace benchmarks {

struct Limits {
  double read;  // GB/s read from memory beyond all caches: the best of several kernels
  double dot4;  // GB/s of integers of 4 bits, scales included, widened and multiplied in a cache
};

// `memory` has been written before, and is far larger than all caches; all threads together.
Limits look_at_limits(int threads, std::span<const uint32_t> memory);

}  // namespace benchmarks
