// Where temporaries lie in one block of memory: those that live at the same time apart, all others
// where there is room.
//
//   const std::vector<int64_t> offsets = place({{bytes, first, last}, ...});
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace flashlight::cpp {

// Alive from step `first` to step `last`, both included.
struct Lifetime {
  int64_t bytes = 0;
  size_t first = 0, last = 0;
};

constexpr int64_t kArenaAlignment = 64;

// Offsets, multiples of kArenaAlignment: the largest first, each at the lowest offset that is free
// all its life (greedy by size; Pisarchyk & Lee, "Efficient memory management for deep neural net
// inference", 2020).
std::vector<int64_t> place(const std::vector<Lifetime>& lifetimes);
// Bytes from 0 to the end of the last one.
int64_t arena_size(const std::vector<Lifetime>& lifetimes, const std::vector<int64_t>& offsets);

}  // namespace flashlight::cpp
