#include "composit/ir/align.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace composit {
namespace {

using Keys = std::vector<uint64_t>;

// The length of the longest common subsequence, by the textbook's table.
size_t longest(const Keys& a, const Keys& b) {
  std::vector<std::vector<size_t>> best(a.size() + 1, std::vector<size_t>(b.size() + 1, 0));
  for (size_t i = 1; i <= a.size(); ++i)
    for (size_t j = 1; j <= b.size(); ++j)
      best[i][j] =
          a[i - 1] == b[j - 1] ? best[i - 1][j - 1] + 1 : std::max(best[i - 1][j], best[i][j - 1]);
  return best[a.size()][b.size()];
}

void expect_legal(const Keys& a, const Keys& b, const std::vector<Match>& matches) {
  for (size_t i = 0; i < matches.size(); ++i) {
    ASSERT_EQ(a.at(matches[i].before), b.at(matches[i].after));
    if (i == 0) continue;
    ASSERT_LT(matches[i - 1].before, matches[i].before);
    ASSERT_LT(matches[i - 1].after, matches[i].after);
  }
}

TEST(Align, Examples) {
  EXPECT_EQ(align({1, 2, 3}, {1, 3}), (std::vector<Match>{{0, 0}, {2, 1}}));
  EXPECT_TRUE(align({}, {1}).empty());
  EXPECT_TRUE(align({1, 2}, {3, 4}).empty());
}

TEST(Align, RandomSequencesHaveTheLongest) {
  std::mt19937_64 random(1);
  for (int run = 0; run < 20000; ++run) {
    const uint64_t kinds = 1 + random() % 8;
    Keys a(random() % 30), b(random() % 30);
    for (auto* keys : {&a, &b})
      for (uint64_t& key : *keys) key = random() % kinds;
    const auto matches = align(a, b);
    expect_legal(a, b, matches);
    ASSERT_EQ(matches.size(), longest(a, b)) << "run " << run;
  }
}

TEST(Align, LongSequencesWithFewEdits) {
  std::mt19937_64 random(2);
  Keys a(1000000);
  for (uint64_t& key : a) key = random() % 50;
  Keys b = a;
  for (int edit = 0; edit < 100; ++edit)
    b.erase(b.begin() + static_cast<ptrdiff_t>(random() % b.size()));
  const auto matches = align(a, b);
  expect_legal(a, b, matches);
  EXPECT_EQ(matches.size(), b.size());
}

// Hopelessly different sequences take linear time and still find a good part of what is common.
TEST(Align, LongSequencesWithoutOrder) {
  std::mt19937_64 random(3);
  Keys a(30000), b(30000);
  for (auto* keys : {&a, &b})
    for (uint64_t& key : *keys) key = random() % 4;
  const auto matches = align(a, b);
  expect_legal(a, b, matches);
  EXPECT_GT(matches.size(), a.size() / 2);  // the longest have about 0.65 of the length
  Keys reversed = a;
  for (size_t i = 0; i < reversed.size(); ++i) reversed[i] = i;
  a = reversed;
  std::reverse(reversed.begin(), reversed.end());
  expect_legal(a, reversed, align(a, reversed));
}

}  // namespace
}  // namespace composit
