#include "flashlight/devices/queues.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <mutex>

#include "tests/user_error.h"

namespace flashlight::devices {
namespace {

using composit::UserError;

Schedule schedule(std::vector<Task> tasks) {
  Schedule all;
  for (const Task& task : tasks) all.queues = std::max(all.queues, task.queue + 1);
  all.tasks = std::move(tasks);
  all.overlaps = true;
  return all;
}

TEST(Queues, RunEachTaskAfterThoseItWaitsFor) {
  const Schedule all = schedule({{.queue = 0},
                                 {.queue = 1, .after = {0}},
                                 {.queue = 2, .after = {0}},
                                 {.queue = 0, .after = {1, 2}},
                                 {.queue = 1, .after = {3}}});
  for (int round = 0; round < 200; ++round) {
    std::vector<std::atomic<bool>> done(all.tasks.size());
    std::atomic<int> wrong = 0;
    run_in_queues(all, true, [&](size_t task) {
      for (const size_t one : all.tasks[task].after) wrong += done[one] ? 0 : 1;
      done[task] = true;
    });
    EXPECT_EQ(wrong, 0);
    for (const auto& one : done) EXPECT_TRUE(one);
  }
}

// Each of two tasks waits until the other one has begun: one after the other they would never end.
TEST(Queues, RunTasksAtTheSameTime) {
  const Schedule all = schedule({{.queue = 0}, {.queue = 1}, {.queue = 1, .after = {0}}});
  for (int round = 0; round < 200; ++round) {
    std::barrier both(2);
    std::atomic<int> met = 0;
    run_in_queues(all, true, [&](size_t task) {
      if (task == 2) return;
      both.arrive_and_wait();
      ++met;
    });
    EXPECT_EQ(met, 2);
  }
}

// Whatever thread is first.
TEST(Queues, ThrowTheErrorOfTheFirstTask) {
  const Schedule all = schedule({{.queue = 0}, {.queue = 1}, {.queue = 0}, {.queue = 1}});
  for (int round = 0; round < 200; ++round) {
    const auto error = composit::user_error([&] {
      run_in_queues(all, true, [&](size_t task) {
        if (task > 0) throw UserError(std::to_string(task));
      });
    });
    EXPECT_EQ(error, "1");
  }
}

TEST(Queues, OfOneThreadKeepTheOrder) {
  const Schedule all = schedule({{.queue = 1}, {.queue = 0}, {.queue = 1}});
  std::vector<size_t> order;
  run_in_queues(all, false, [&](size_t task) { order.push_back(task); });
  EXPECT_THAT(order, testing::ElementsAre(0, 1, 2));
}

}  // namespace
}  // namespace flashlight::devices
