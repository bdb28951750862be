// What the machine can do, to compare kernels with.
//
//   const double gflops = measured_peak(2);      // a few milliseconds
#pragma once

#include <algorithm>
#include <chrono>

#include "flashlight/mosaic/runtime/microkernel.hpp"
#include "flashlight/mosaic/runtime/team.hpp"

namespace fl {

// GFLOP/s that so many threads reach together with multiplications and additions of floats in
// registers.
inline double measured_peak(int threads) {
  constexpr int kSums = 12, kSteps = 200'000, kRounds = 10;
  using Lanes = detail::Vectors<float>;
  using Clock = std::chrono::steady_clock;
  double least = 1e30;
  run_team(threads, [&](const Team& team) {
    Lanes::Vector sums[kSums] = {};
    const Lanes::Vector x = Lanes::all(0.5f), y = Lanes::all(1.0f);
    for (int round = 0; round < kRounds; ++round) {
      team.wait();
      const Clock::time_point start = Clock::now();
      for (int step = 0; step < kSteps; ++step) {
#pragma GCC unroll 12
        for (Lanes::Vector& sum : sums) {
          sum = sum * x + y;
          detail::keep_in_register(sum);
        }
      }
      team.wait();
      if (team.thread() == 0)
        least = std::min(least, std::chrono::duration<double>(Clock::now() - start).count());
    }
    for (const Lanes::Vector& sum : sums) [[maybe_unused]] const volatile float used = sum[0];
  });
  return 2e-9 * kSums * kSteps * Lanes::kLanes * threads / least;
}

}  // namespace fl
