// Places temporaries in one block of memory (the arena). Temporaries that live at the same time do
// not overlap; all others may share memory.
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
  std::optional<int64_t> offset = {};  // if it is fixed beforehand
};

constexpr int64_t kArenaAlignment = 64;

// Returns an offset per lifetime, a multiple of kArenaAlignment. Places values one after the other,
// the largest first, each at the lowest offset that is free for its whole life (Pisarchyk & Lee,
// "Efficient memory management for deep neural net inference", 2020). While the arena exceeds
// least_size, tries other orders, some of which move the value on top to the front; keeps the first
// of the smallest. Values with a fixed `offset` are placed before all others and must not overlap.
std::vector<int64_t> place(const std::vector<Lifetime>& lifetimes);
// Bytes from 0 to the end of the value that ends last, rounded up to kArenaAlignment.
int64_t arena_size(const std::vector<Lifetime>& lifetimes, const std::vector<int64_t>& offsets);
// The most bytes that are alive at the same time, with each value rounded up to `alignment`. No
// arena can be smaller.
int64_t least_size(const std::vector<Lifetime>& lifetimes, int64_t alignment = kArenaAlignment);

}  // namespace flashlight::loops
