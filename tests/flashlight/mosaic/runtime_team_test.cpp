// Threads of the header of the mosaic backend.
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "flashlight/runtime/team.hpp"
#include "tests/flashlight/mosaic/runtime_cases.h"

namespace flashlight::mosaic::test {
namespace {

TEST(RuntimeTeam, CallsEveryThreadOnce) {
  for (int threads = 1; threads <= 5; ++threads) {
    std::vector<std::atomic<int>> calls(5);
    const auto caller = std::this_thread::get_id();
    fl::run_team(threads, [&](const fl::Team& team) {
      EXPECT_EQ(team.threads(), threads);
      EXPECT_EQ(team.thread() == 0, std::this_thread::get_id() == caller);
      ++calls[static_cast<size_t>(team.thread())];
    });
    for (int i = 0; i < 5; ++i) EXPECT_EQ(calls[static_cast<size_t>(i)], i < threads ? 1 : 0);
  }
}

TEST(RuntimeTeam, PartsAreAllOfIt) {
  for (const int64_t count : {0, 1, 2, 5, 100})
    fl::run_team(3, [&](const fl::Team& team) {
      const fl::Part part = team.part(count);
      EXPECT_GE(part.size(), count / 3);
      EXPECT_LE(part.size(), count / 3 + 1);
      EXPECT_TRUE(team.thread() > 0 || part.begin == 0);
      EXPECT_TRUE(team.thread() < 2 || part.end == count);
    });
  EXPECT_EQ(fl::Team::solo().part(7).size(), 7);
}

// Each thread reads what the others wrote before they waited.
TEST(RuntimeTeam, SeesWhatWasWrittenBeforeWaiting) {
  constexpr int kThreads = 3, kRounds = 300;
  int written[2][kThreads] = {};
  for (int call = 0; call < 20; ++call)
    fl::run_team(kThreads, [&](const fl::Team& team) {
      for (int round = 0; round < kRounds; ++round) {
        auto& now = written[round % 2];
        now[team.thread()] = call * kRounds + round;
        team.wait();
        for (const int x : now) ASSERT_EQ(x, call * kRounds + round);
      }
    });
}

TEST(RuntimeTeam, RunsAfterItSlept) {
  for (int i = 0; i < 5; ++i) {
    std::atomic<int> calls{0};
    fl::run_team(2, [&](const fl::Team&) { ++calls; });
    EXPECT_EQ(calls, 2);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

TEST(RuntimeTeam, HasTeamsWithin) {
  std::atomic<int> calls{0};
  for (int i = 0; i < 10; ++i)
    fl::run_team(2, [&](const fl::Team& team) {
      fl::run_team(3, [&](const fl::Team& inner) {
        inner.wait();
        ++calls;
      });
      team.wait();
    });
  EXPECT_EQ(calls, 60);
}

TEST(RuntimeTeam, RunsFromSeveralThreadsAtOnce) {
  std::atomic<int> calls{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 3; ++i)
    callers.emplace_back([&] {
      for (int j = 0; j < 50; ++j)
        fl::run_team(2, [&](const fl::Team& team) {
          team.wait();
          ++calls;
        });
    });
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(calls, 300);
}

// The others wait for the one that throws, and leave.
TEST(RuntimeTeam, CarriesAnExceptionToTheCaller) {
  constexpr int kThreads = 3;
  for (int thrower = 0; thrower < kThreads; ++thrower)
    for (int round = 0; round < 20; ++round) {
      std::atomic<int> passed{0};
      try {
        fl::run_team(kThreads, [&](const fl::Team& team) {
          team.wait();
          if (team.thread() == thrower) throw std::runtime_error(std::to_string(thrower));
          team.wait();
          ++passed;
        });
        ADD_FAILURE() << "nothing was thrown";
      } catch (const std::runtime_error& error) {
        EXPECT_EQ(error.what(), std::to_string(thrower));
      }
      EXPECT_EQ(passed, 0);
    }
}

// Thread 0 throws because it was made to leave.
TEST(RuntimeTeam, ThrowsTheFirstOfSeveral) {
  try {
    fl::run_team(2, [](const fl::Team& team) {
      if (team.thread() == 1) throw std::runtime_error("first");
      try {
        team.wait();
      } catch (...) {
        throw std::runtime_error("second");
      }
    });
    ADD_FAILURE() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "first");
  }
}

TEST(RuntimeTeam, ThrowsOnceWhenAllThrow) {
  for (int round = 0; round < 20; ++round)
    EXPECT_THROW(fl::run_team(3, [](const fl::Team&) { throw std::out_of_range("all"); }),
                 std::out_of_range);
  EXPECT_THROW(fl::run_team(1, [](const fl::Team&) { throw std::out_of_range("alone"); }),
               std::out_of_range);
}

}  // namespace
}  // namespace flashlight::mosaic::test
