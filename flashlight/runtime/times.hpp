// When the kernels of a call have ended.
//
//   int64_t times[3];                    // nullptr: nobody asks
//   start_times(team, times);
//   first(team, x, y);
//   end_kernel(team, times, 1);
//   second(team, y, z);
//   end_kernel(team, times, 2);          // the second took times[2] - times[1] nanoseconds
#pragma once

#include <chrono>
#include <cstdint>

#include "flashlight/runtime/team.hpp"

namespace fl {

namespace detail {
inline void note(const Team& team, int64_t* times, int number) {
  if (times == nullptr || team.thread() != 0) return;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  times[number] = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}
}  // namespace detail

inline void start_times(const Team& team, int64_t* times) {
  if (times == nullptr) return;
  team.wait();
  detail::note(team, times, 0);
}

// All threads have done their parts; what they wrote is seen by the next kernel.
inline void end_kernel(const Team& team, int64_t* times, int number) {
  team.wait();
  detail::note(team, times, number);
}

}  // namespace fl
