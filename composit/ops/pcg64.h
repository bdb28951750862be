// The random bits of NumPy's default generator, so that draws are pure and can be compared with it.
//
//   Pcg64 bits({42});   bits.next64();   bits.next_double();
//
// PCG XSL RR 128/64: M. O'Neill, "PCG: A Family of Simple Fast Space-Efficient Statistically Good
// Algorithms for Random Number Generation" (2014). Seeding: numpy.random.SeedSequence, after
// O'Neill's seed_seq_fe. Bounded integers: D. Lemire, "Fast Random Integer Generation in an
// Interval" (2019).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "composit/ir/dtype.h"

namespace composit {

class Pcg64 {
 public:
  // `seed`: words of 32 bits, the lowest first. `position`: how many times 64 bits were drawn
  // before. `half`: the draw of which the upper 32 bits are still to be used; -1: none.
  explicit Pcg64(const std::vector<int64_t>& seed, int64_t position = 0, int64_t half = -1);

  uint64_t next64();
  // Two per 64 bits, the lower ones first.
  uint32_t next32();
  double next_double();  // in [0, 1), 53 bits
  float next_float();    // in [0, 1), 24 bits
  // Uniform from 0 to `limit`, inclusive.
  uint64_t below_or_at(uint64_t limit);
  // The same from other bits, the way NumPy's shuffle draws: of numbers of as many bits as the
  // limit has, the first that is not above it.
  uint64_t below_or_at_by_mask(uint64_t limit);
  // As if `count` numbers of float32 or float64 were drawn.
  void skip(int64_t count, DType dtype);

  int64_t position() const { return position_; }
  int64_t half() const { return half_; }

 private:
  __extension__ using Wide = unsigned __int128;

  void seed(const std::array<uint64_t, 4>& words);
  void advance(uint64_t steps);
  uint64_t output() const;

  Wide state_ = 0, increment_ = 0;
  int64_t position_ = 0;
  int64_t half_ = -1;
  uint32_t upper_ = 0;  // the bits of `half_`
};

}  // namespace composit
