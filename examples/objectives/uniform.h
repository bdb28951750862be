// Numbers for problems, the same in C++ and in Python (benchmarks/cpp/problems.py).
//
//   Array x = uniform({.sizes = {1000, 64}, .seed = 4, .low = -1, .high = 1});
//
// Element i is number i of SplitMix64 (Steele, Lea, Flood 2014, "Fast splittable pseudorandom
// number generators") started at `seed`, its upper 53 bits scaled to [low, high).
#pragma once

#include <cstdint>
#include <vector>

#include "composit/ir/array.h"

namespace objectives {

uint64_t splitmix64(uint64_t seed, uint64_t i);

struct Uniform {
  std::vector<int64_t> sizes;
  uint64_t seed = 0;
  double low = 0, high = 1;  // their difference a power of two: then nothing is rounded twice
};
// float32 or float64.
composit::Array uniform(const Uniform& uniform, composit::DType dtype = composit::DType::float64);
// Integers in [0, limit): the numbers above modulo `limit`.
composit::Array integers(const std::vector<int64_t>& sizes, uint64_t seed, int64_t limit);

}  // namespace objectives
