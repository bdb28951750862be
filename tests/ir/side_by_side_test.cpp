// Work in threads: each piece once, errors in order, no threads within threads.
#include "composit/ir/side_by_side.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace composit {
namespace {

TEST(SideBySide, EachPieceIsDoneOnce) {
  for (const size_t count : {0, 1, 2, 16, 1000}) {
    std::vector<int> done(count);
    side_by_side(
        count, [&](size_t i) { ++done[i]; }, /*few=*/2);
    EXPECT_EQ(done, std::vector<int>(count, 1)) << count;
  }
}

TEST(SideBySide, AFewPiecesStayInTheThread) {
  const auto self = std::this_thread::get_id();
  side_by_side(15, [&](size_t) { EXPECT_EQ(std::this_thread::get_id(), self); });
}

TEST(SideBySide, WorkWithinWorkStaysInItsThread) {
  side_by_side(
      8,
      [](size_t) {
        const auto self = std::this_thread::get_id();
        side_by_side(64, [&](size_t) { EXPECT_EQ(std::this_thread::get_id(), self); });
      },
      /*few=*/2);
  EXPECT_FALSE(is_beside_others);
}

TEST(SideBySide, TheErrorOfTheFirstPieceIsThrown) {
  for (int round = 0; round < 20; ++round) try {
      side_by_side(100, [](size_t i) {
        if (i % 3 == 2) throw std::runtime_error(std::to_string(i));
      });
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "2");
    }
  EXPECT_FALSE(is_beside_others);
}

}  // namespace
}  // namespace composit
