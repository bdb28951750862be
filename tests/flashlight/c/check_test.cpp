// Captures of the C interface beside their programs, and threads that share them.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "flashlight/c.h"
#include "tests/flashlight/c/c_calls.h"

namespace {

using namespace flashlight::test;
using testing::HasSubstr;

// ---- what a check sees --------------------------------------------------------------------------

struct Answer {
  int32_t same, confirmed;
  std::string report;
};
Answer check(flashlight_capture capture, const at::Tensor& x, const Program& program) {
  Answer answer{-1, -1, ""};
  char* report = nullptr;
  expect_done(flashlight_scope_check(recorded(x, program), capture, &answer.same, &report));
  answer.report = taken(report);
  expect_done(flashlight_capture_confirmed(capture, &answer.confirmed));
  return answer;
}

TEST(Check, sees_what_the_host_decides) {
  float factor = 2;
  const Program scaled = [&](const at::Tensor& x) { return x * factor; };
  const flashlight_capture capture = captured(at::ones(3), scaled);
  factor = 3;
  Answer answer = check(capture, at::arange(3.0f), scaled);
  EXPECT_EQ(answer.same, 0);
  EXPECT_THAT(answer.report, HasSubstr("aten::mul"));
  EXPECT_EQ(answer.confirmed, 0);
  factor = 2;
  answer = check(capture, at::ones(3), scaled);  // of the same content as the first run's
  EXPECT_EQ(answer.same, 1) << answer.report;
  EXPECT_EQ(answer.confirmed, 0);
  answer = check(capture, at::arange(3.0f), scaled);
  EXPECT_EQ(answer.same, 1) << answer.report;
  EXPECT_EQ(answer.confirmed, 1);
  expect_done(flashlight_capture_free(capture));
}

TEST(Check, sees_memory_that_no_operator_wrote) {
  const Program program = [](const at::Tensor& x) {
    const at::Tensor y = x + x;
    x.data_ptr<float>()[0] = 9;
    return y * x;
  };
  const flashlight_capture capture = captured(at::ones(3), program);
  const Answer answer = check(capture, at::arange(3.0f), program);
  EXPECT_EQ(answer.same, 0);
  EXPECT_THAT(answer.report, HasSubstr("changed the memory of 'x'"));
  expect_done(flashlight_capture_free(capture));
}

TEST(Check, of_a_program_that_writes_and_draws) {
  at::Tensor sum = at::zeros(3);
  const auto run = [&](at::Tensor x, flashlight_capture* capture, flashlight_capture known) {
    const flashlight_scope scope = begun();
    expect_done(flashlight_scope_input(scope, &x, "x"));
    expect_done(flashlight_scope_buffer(scope, &sum, "sum"));
    sum.add_(x);
    at::Tensor y = at::dropout(sum, 0.5, true);
    expect_done(flashlight_scope_output(scope, &y, "y"));
    if (capture != nullptr) return expect_done(flashlight_scope_end(scope, capture));
    int32_t same = -1;
    char* report = nullptr;
    expect_done(flashlight_scope_check(scope, known, &same, &report));
    const std::string text = taken(report);
    EXPECT_EQ(same, 1) << text;
  };
  flashlight_capture capture = nullptr;
  run(at::ones(3), &capture, nullptr);
  run(at::arange(3.0f), nullptr, capture);
  EXPECT_TRUE(at::equal(sum, at::ones(3) + at::arange(3.0f)));  // a check leaves what ran
  const at::Tensor before = sum.clone();
  at::manual_seed(5);
  const at::Tensor received = replayed(capture, at::ones(3));
  EXPECT_TRUE(at::equal(sum, before + 1));
  at::manual_seed(5);
  EXPECT_TRUE(at::equal(received, at::dropout(sum, 0.5, true)));
  expect_done(flashlight_capture_free(capture));
}

TEST(Check, sees_other_weights) {
  at::Tensor x = at::arange(3.0f);
  const auto scope_of = [&](at::Tensor weight) {
    const flashlight_scope scope = begun();
    expect_done(flashlight_scope_input(scope, &x, "x"));
    expect_done(flashlight_scope_parameter(scope, &weight, "weight"));
    at::Tensor y = x * weight;
    expect_done(flashlight_scope_output(scope, &y, nullptr));
    return scope;
  };
  flashlight_capture capture = nullptr;
  expect_done(flashlight_scope_end(scope_of(at::ones(3)), &capture));
  int32_t same = -1;
  char* report = nullptr;
  expect_done(flashlight_scope_check(scope_of(2 * at::ones(3)), capture, &same, &report));
  EXPECT_EQ(same, 0);
  EXPECT_THAT(taken(report), HasSubstr("'weight' has other values than in the capture"));
  expect_done(flashlight_scope_check(scope_of(at::ones(3)), capture, &same, nullptr));
  EXPECT_EQ(same, 1);
  expect_done(flashlight_capture_free(capture));
}

TEST(Captures, of_a_backward_leave_gradients) {
  at::Tensor weight = at::arange(3.0f).set_requires_grad(true), x = at::ones(3);
  const flashlight_scope scope = begun();
  expect_done(flashlight_scope_input(scope, &x, "x"));
  expect_done(flashlight_scope_parameter(scope, &weight, "weight"));
  at::Tensor loss = (x * weight * weight).sum();
  loss.backward();
  expect_done(flashlight_scope_output(scope, &loss, nullptr));
  flashlight_capture capture = nullptr;
  expect_done(flashlight_scope_end(scope, &capture));
  weight.mutable_grad() = at::Tensor();
  replayed(capture, 3 * at::ones(3));
  ASSERT_TRUE(weight.grad().defined());
  EXPECT_TRUE(at::equal(weight.grad(), 6 * weight.detach()));
  expect_done(flashlight_capture_free(capture));
}

// ---- threads ------------------------------------------------------------------------------------

TEST(Threads, share_everything_but_scopes) {
  const flashlight_capture shared = captured(at::ones(64));
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number)
    threads.emplace_back([shared, number] {
      for (int i = 0; i < 20; ++i) {
        const at::Tensor x = number + at::arange(64.0f);
        EXPECT_TRUE(at::equal(replayed(shared, x), x + x));
        const flashlight_capture own = captured(x, [](const at::Tensor& y) { return y * y; });
        EXPECT_TRUE(at::equal(replayed(own, x), x * x));
        expect_done(flashlight_capture_free(own));
        EXPECT_NE(error_of(flashlight_capture_free(own)), "");
      }
    });
  for (std::thread& thread : threads) thread.join();
  expect_done(flashlight_capture_free(shared));
}

TEST(Threads, free_what_another_one_runs) {
  const flashlight_capture shared = captured(at::ones(64));
  constexpr int kThreads = 3;
  std::atomic<int> running{0};
  std::vector<std::thread> threads;
  for (int number = 0; number < kThreads; ++number)
    threads.emplace_back([shared, &running] {
      at::Tensor x = at::arange(64.0f);
      flashlight_tensor input = &x, output = nullptr;
      bool first = true;
      while (flashlight_capture_replay(shared, &input, 1, &output, 1) == FLASHLIGHT_OK) {
        EXPECT_TRUE(at::equal(*static_cast<at::Tensor*>(output), x + x));
        flashlight_tensor_free(output);
        if (std::exchange(first, false)) ++running;
      }
      EXPECT_THAT(flashlight_last_error(), HasSubstr("was freed"));
    });
  while (running < kThreads) std::this_thread::yield();
  expect_done(flashlight_capture_free(shared));
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
