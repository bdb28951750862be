// Random numbers as pure nodes: the same bits as NumPy's default generator (PCG64) draws.
//
//   cnp::random::Generator rng = cnp::random::default_rng(42);
//   cnp::NdArray x = rng.random({2, 3});
//   // numpy: rng.random((2, 3), dtype=numpy.float32)
//
// A node carries the seed and where in the sequence its numbers start, so that it has the same
// value however often and wherever it is evaluated. The generator itself only counts.
#pragma once

#include <cstdint>

#include "composit/numpy/ndarray.h"

namespace composit::numpy::random {

// A place in a sequence of random numbers; each call goes on from there.
class Generator {
 public:
  // `seed`: words of 32 bits, the lowest first, as numpy.random.SeedSequence takes an integer.
  explicit Generator(Ints seed) : seed_(std::move(seed)) {}

  // Uniform in [0, 1). float32 or float64; UserError for another dtype.
  NdArray random(const Ints& size = {}, DType dtype = DType::float32);
  // Uniform in [low, high), float64 as NumPy's.
  NdArray uniform(double low = 0, double high = 1, const Ints& size = {});
  // Integers in [low, high), int64. Draws now: how many numbers that takes depends on them.
  NdArray integers(int64_t low, int64_t high, const Ints& size = {});
  // 0 to n - 1 in random order. Draws now, too.
  NdArray permutation(int64_t n);

 private:
  Ints seed_;
  int64_t position_ = 0;  // of the next 64 bits in the sequence
  int64_t half_ = -1;     // position of 64 bits of which the upper half is still to be used, or -1
};

// PCG64 from a seed, or from one that the system draws.
Generator default_rng(uint64_t seed);
// Seeded by the operating system.
Generator default_rng();
// Draws from a generator of its own, composit's.
NdArray random(const Ints& size, DType dtype = DType::float32);

}  // namespace composit::numpy::random
