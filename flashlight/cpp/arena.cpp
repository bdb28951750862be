#include "flashlight/cpp/arena.h"

#include <algorithm>
#include <numeric>

namespace flashlight::cpp {
namespace {

int64_t aligned(int64_t bytes) {
  return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

bool overlap(const Lifetime& a, const Lifetime& b) {
  return a.first <= b.last && b.first <= a.last;
}

}  // namespace

std::vector<int64_t> place(const std::vector<Lifetime>& lifetimes) {
  std::vector<size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return lifetimes[a].bytes > lifetimes[b].bytes; });
  std::vector<int64_t> offsets(lifetimes.size(), 0);
  std::vector<size_t> placed;  // by offset
  for (size_t one : order) {
    int64_t offset = 0;
    for (size_t other : placed) {
      if (!overlap(lifetimes[one], lifetimes[other])) continue;
      if (offset + lifetimes[one].bytes <= offsets[other]) break;
      offset = std::max(offset, aligned(offsets[other] + lifetimes[other].bytes));
    }
    offsets[one] = offset;
    const auto at = std::upper_bound(placed.begin(), placed.end(), offset,
                                     [&](int64_t x, size_t other) { return x < offsets[other]; });
    placed.insert(at, one);
  }
  return offsets;
}

int64_t arena_size(const std::vector<Lifetime>& lifetimes, const std::vector<int64_t>& offsets) {
  int64_t size = 0;
  for (size_t i = 0; i < lifetimes.size(); ++i)
    size = std::max(size, aligned(offsets[i] + lifetimes[i].bytes));
  return size;
}

}  // namespace flashlight::cpp
