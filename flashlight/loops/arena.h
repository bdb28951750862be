// Where temporaries lie in one block of memory: those that live at the same time apart, all others
// where there is room.
//
//   const std::vector<int64_t> offsets = place({{bytes, first, last}, ...});
//   arena_size(lifetimes, offsets);      // at least least_size(lifetimes)
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace flashlight::loops {

// Alive from step `first` to step `last`, both included.
struct Lifetime {
  int64_t bytes = 0;
  size_t first = 0, last = 0;
  std::optional<int64_t> offset = {};  // where it has to lie
};

constexpr int64_t kArenaAlignment = 64;

// Offsets, multiples of kArenaAlignment: one after the other, each at the lowest offset that is
// free all its life (Pisarchyk & Lee, "Efficient memory management for deep neural net inference",
// 2020). The largest first; where that takes more than least_size, also in other orders, and in
// ones where what lies on top moves to the front. The first of the smallest. Those that have to lie
// somewhere come before all others, and must not overlap.
std::vector<int64_t> place(const std::vector<Lifetime>& lifetimes);
// Bytes from 0 to the end of the last one.
int64_t arena_size(const std::vector<Lifetime>& lifetimes, const std::vector<int64_t>& offsets);
// Bytes of those that live at the same time, at most, from one multiple of `alignment` to the next:
// no arena is smaller.
int64_t least_size(const std::vector<Lifetime>& lifetimes, int64_t alignment = kArenaAlignment);

}  // namespace flashlight::loops
