#include "flashlight/loops/arena.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

namespace flashlight::loops {
namespace {

// Limits on the orders tried after the sorted ones: per value, and in total.
constexpr size_t kTriesPerValue = 4, kMostTries = 400;

int64_t aligned(int64_t bytes, int64_t alignment = kArenaAlignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

bool overlap(const Lifetime& a, const Lifetime& b) {
  return a.first <= b.last && b.first <= a.last;
}

using Order = std::vector<size_t>;

class Placer {
 public:
  explicit Placer(const std::vector<Lifetime>& lifetimes)
      : lives_(lifetimes), least_(least_size(lifetimes)) {}

  std::vector<int64_t> run() {
    for (const auto& key : keys()) {
      Order order(lives_.size());
      std::iota(order.begin(), order.end(), size_t{0});
      std::stable_sort(order.begin(), order.end(),
                       [&](size_t a, size_t b) { return key(lives_[a]) > key(lives_[b]); });
      try_order(order);
      if (size_ == least_) return offsets_;
    }
    const size_t tries = std::min(kMostTries, kTriesPerValue * lives_.size());
    Order order = order_;
    for (size_t i = 0; i < tries && size_ > least_; ++i) {
      order = raised(order, i);
      // A worse order may lead to a better one; every few tries, restart from the best.
      if (!try_order(order) && i % kTriesPerValue == kTriesPerValue - 1) order = order_;
    }
    return offsets_;
  }

 private:
  using Key = std::function<double(const Lifetime&)>;
  static std::vector<Key> keys() {
    const auto bytes = [](const Lifetime& one) { return static_cast<double>(one.bytes); };
    const auto length = [](const Lifetime& one) {
      return static_cast<double>(one.last - one.first + 1);
    };
    return {bytes, [=](const Lifetime& one) { return bytes(one) * length(one); }, length,
            [](const Lifetime& one) { return -static_cast<double>(one.first); },
            [](const Lifetime& one) { return static_cast<double>(one.last); }};
  }

  // Places the values in this order. True if the arena is smaller than for all orders before.
  bool try_order(const Order& order) {
    std::vector<int64_t> offsets = in_order(order);
    const int64_t size = arena_size(lives_, offsets);
    last_ = offsets;
    if (!offsets_.empty() && size >= size_) return false;
    size_ = size;
    order_ = order;
    offsets_ = std::move(offsets);
    return true;
  }

  std::vector<int64_t> in_order(const Order& order) const {
    std::vector<int64_t> offsets(lives_.size(), 0);
    Order placed;  // by offset
    const auto put = [&](size_t one, int64_t offset) {
      offsets[one] = offset;
      const auto at = std::upper_bound(placed.begin(), placed.end(), offset,
                                       [&](int64_t x, size_t other) { return x < offsets[other]; });
      placed.insert(at, one);
    };
    for (const size_t one : order)
      if (lives_[one].offset) put(one, *lives_[one].offset);
    for (const size_t one : order) {
      if (lives_[one].offset) continue;
      int64_t offset = 0;
      for (const size_t other : placed) {
        if (!overlap(lives_[one], lives_[other])) continue;
        if (offset + lives_[one].bytes <= offsets[other]) break;
        offset = std::max(offset, aligned(offsets[other] + lives_[other].bytes));
      }
      put(one, offset);
    }
    return offsets;
  }

  // Moves the value that ends highest in the last placement to the front. In every other round also
  // moves one that lives at the same time: first the highest, in later rounds lower ones.
  Order raised(const Order& order, size_t round) const {
    size_t top = 0;
    for (size_t i = 0; i < lives_.size(); ++i)
      if (last_[i] + lives_[i].bytes > last_[top] + lives_[top].bytes) top = i;
    Order below;
    for (size_t i = 0; i < lives_.size(); ++i)
      if (i != top && overlap(lives_[i], lives_[top])) below.push_back(i);
    std::stable_sort(below.begin(), below.end(),
                     [&](size_t a, size_t b) { return last_[a] > last_[b]; });
    Order first = {top};
    if (round % 2 == 1 && !below.empty()) first.push_back(below[round / 2 % below.size()]);
    Order now = first;
    for (const size_t one : order)
      if (std::find(first.begin(), first.end(), one) == first.end()) now.push_back(one);
    return now;
  }

  const std::vector<Lifetime>& lives_;
  const int64_t least_;
  int64_t size_ = 0;
  Order order_;
  std::vector<int64_t> offsets_, last_;  // of the best order, and of the last one
};

}  // namespace

std::vector<int64_t> place(const std::vector<Lifetime>& lifetimes) {
  return Placer(lifetimes).run();
}

int64_t arena_size(const std::vector<Lifetime>& lifetimes, const std::vector<int64_t>& offsets) {
  int64_t size = 0;
  for (size_t i = 0; i < lifetimes.size(); ++i)
    size = std::max(size, aligned(offsets[i] + lifetimes[i].bytes));
  return size;
}

int64_t least_size(const std::vector<Lifetime>& lifetimes, int64_t alignment) {
  std::map<size_t, int64_t> changes;  // by step: how many more bytes are alive
  for (const Lifetime& one : lifetimes) {
    changes[one.first] += aligned(one.bytes, alignment);
    changes[one.last + 1] -= aligned(one.bytes, alignment);
  }
  int64_t alive = 0, most = 0;
  for (const auto& [step, change] : changes) most = std::max(most, alive += change);
  return most;
}

}  // namespace flashlight::loops
