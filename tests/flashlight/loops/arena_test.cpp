// Values in an arena: never two at the same place at the same time, in little more than the least
// there is.
#include "flashlight/loops/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

namespace flashlight::loops {
namespace {

std::vector<Lifetime> random_lifetimes(std::mt19937& random, size_t count, size_t steps,
                                       size_t longest, int64_t most_bytes) {
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  std::vector<Lifetime> lives;
  for (size_t i = 0; i < count; ++i) {
    const size_t first = below(steps);
    lives.push_back({1 + static_cast<int64_t>(below(static_cast<size_t>(most_bytes))), first,
                     first + below(longest)});
  }
  return lives;
}

bool meet(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

std::string faults(const std::vector<Lifetime>& lives, const std::vector<int64_t>& offsets) {
  std::string text;
  for (size_t a = 0; a < lives.size(); ++a) {
    if (offsets[a] < 0 || offsets[a] % kArenaAlignment != 0)
      text += "offset " + std::to_string(offsets[a]) + "\n";
    for (size_t b = a + 1; b < lives.size(); ++b)
      if (meet(lives[a], lives[b]) && offsets[a] < offsets[b] + lives[b].bytes &&
          offsets[b] < offsets[a] + lives[a].bytes)
        text += std::to_string(a) + " and " + std::to_string(b) + " overlap\n";
  }
  return text;
}

// The smallest arena there is: in some order, each goes to the lowest free place.
int64_t smallest_of_all_orders(const std::vector<Lifetime>& lives) {
  std::vector<size_t> order(lives.size());
  std::iota(order.begin(), order.end(), size_t{0});
  int64_t smallest = std::numeric_limits<int64_t>::max();
  do {
    std::vector<int64_t> offsets(lives.size(), 0);
    for (size_t i = 0; i < order.size(); ++i) {
      const size_t one = order[i];
      for (bool moved = true; moved;) {
        moved = false;
        for (size_t j = 0; j < i; ++j) {
          const size_t other = order[j];
          if (!meet(lives[one], lives[other]) ||
              offsets[one] >= offsets[other] + lives[other].bytes ||
              offsets[other] >= offsets[one] + lives[one].bytes)
            continue;
          offsets[one] = (offsets[other] + lives[other].bytes + kArenaAlignment - 1) /
                         kArenaAlignment * kArenaAlignment;
          moved = true;
        }
      }
    }
    smallest = std::min(smallest, arena_size(lives, offsets));
  } while (std::next_permutation(order.begin(), order.end()));
  return smallest;
}

TEST(Arena, no_two_that_live_at_the_same_time_overlap) {
  std::mt19937 random(7);
  for (const size_t count : {1, 2, 5, 20, 80, 300})
    for (int i = 0; i < 10; ++i) {
      const auto lives = random_lifetimes(random, count, count, 9, 5000);
      const auto offsets = place(lives);
      ASSERT_EQ(faults(lives, offsets), "") << count << " values";
      ASSERT_GE(arena_size(lives, offsets), least_size(lives));
    }
}

// Offsets are multiples of 64: sizes of so many lines let least_size be reached.
TEST(Arena, is_as_small_as_the_best_order_makes_it) {
  std::mt19937 random(11);
  int above = 0;
  for (int i = 0; i < 300; ++i) {
    auto lives = random_lifetimes(random, 3 + static_cast<size_t>(i) % 5, 9, 5, 12);
    for (Lifetime& one : lives) one.bytes *= kArenaAlignment;
    const int64_t best = smallest_of_all_orders(lives);
    EXPECT_EQ(arena_size(lives, place(lives)), best) << "case " << i;
    above += best > least_size(lives);
  }
  EXPECT_LT(above, 10);
}

TEST(Arena, is_little_more_than_the_least) {
  std::mt19937 random(13);
  for (const size_t count : {30, 100, 400})
    for (int i = 0; i < 10; ++i) {
      const auto lives = random_lifetimes(random, count, count, 10, 60000);
      EXPECT_LE(static_cast<double>(arena_size(lives, place(lives))),
                1.03 * static_cast<double>(least_size(lives)))
          << count << " values, case " << i;
    }
}

// By size alone, the second largest goes on top of the largest, and the small ones on top of both.
TEST(Arena, the_largest_first_is_not_always_best) {
  const std::vector<Lifetime> lives = {{640, 0, 1}, {576, 2, 3}, {512, 1, 2}, {128, 0, 0}};
  EXPECT_EQ(arena_size(lives, place(lives)), least_size(lives));
}

TEST(Arena, the_least_is_what_lives_at_once) {
  EXPECT_EQ(least_size({}), 0);
  EXPECT_EQ(least_size({{100, 0, 1}, {50, 1, 2}, {100, 2, 3}}, 1), 150);
  EXPECT_EQ(least_size({{100, 0, 1}, {50, 1, 2}, {100, 2, 3}}), 192);
}

TEST(Arena, is_the_same_every_time) {
  std::mt19937 random(17);
  const auto lives = random_lifetimes(random, 90, 60, 12, 9000);
  EXPECT_EQ(place(lives), place(lives));
}

}  // namespace
}  // namespace flashlight::loops
