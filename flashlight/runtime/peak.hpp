// Measures the arithmetic peak of the machine, to compare kernels with.
//
//   const double gflops = measured_peak(2);      // a few milliseconds
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

#include "flashlight/runtime/microkernel.hpp"
#include "flashlight/runtime/team.hpp"

namespace fl {
namespace detail {

// GFLOP/s of this thread with multiplications and additions of floats in registers, during more
// than 100 microseconds. More chains than a unit's latency needs, fewer than there are registers;
// equal ones a compiler would compute once.
inline double multiply_add_rate() {
  constexpr int kChains = 12, kSteps = 50'000;
  using Lanes = Vectors<float>;
  using Clock = std::chrono::steady_clock;
  Lanes::Vector chains[kChains];
#pragma GCC unroll 12
  for (int i = 0; i < kChains; ++i) chains[i] = Lanes::all(static_cast<float>(i));
  const Lanes::Vector factor = Lanes::all(0.99f), term = Lanes::all(1.01f);
  const Clock::time_point start = Clock::now();
  for (int step = 0; step < kSteps; ++step) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) chains[i] = chains[i] * factor + term;
  }
  const std::chrono::duration<double> elapsed = Clock::now() - start;
  Lanes::Vector all = chains[0];
#pragma GCC unroll 12
  for (int i = 1; i < kChains; ++i) all += chains[i];
  [[maybe_unused]] const volatile float used = all[0];
  return 2e-9 * kChains * kSteps * Lanes::kLanes / elapsed.count();
}

}  // namespace detail

// GFLOP/s that this number of threads reach together: the best of several tries of each thread, at
// the same time.
inline double measured_peak(int threads) {
  constexpr int kRounds = 10;
  std::vector<double> best(static_cast<std::size_t>(threads));
  run_team(threads, [&](const Team& team) {
    double& mine = best[static_cast<std::size_t>(team.thread())];
    for (int round = 0; round < kRounds; ++round) {
      team.wait();
      mine = std::max(mine, detail::multiply_add_rate());
    }
  });
  double sum = 0;
  for (const double rate : best) sum += rate;
  return sum;
}

}  // namespace fl
