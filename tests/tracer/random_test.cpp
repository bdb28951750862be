// Random draws: seeds, generators, order.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include "tests/tracer/capture_helpers.h"

namespace flashlight::testing {
namespace {

TEST(Random, equal_draws_stay_two_draws) {
  const Captured captured = expect_replays(
      [](Tensors& in) -> Tensors {
        return {at::randn({3}) + in[0], at::randn({3})};
      },
      {ones()});
  EXPECT_EQ(captured.count("aten::randn"), 2u);
}

TEST(Random, a_draw_nobody_uses_still_moves_the_generator) {
  expect_replays(
      [](Tensors& in) -> Tensors {
        at::rand({5});
        at::Tensor x = at::empty({3, 4}).t().normal_();
        return {x, at::bernoulli(at::sigmoid(in[0])), at::randperm(5),
                at::multinomial(at::ones({4}), 2)};
      },
      {ones()});
}

TEST(Random, a_seed_inside_the_scope) {
  const auto program = [](Tensors& in) -> Tensors {
    at::Tensor before = at::rand({3});
    at::manual_seed(11);
    return {before, at::rand({3}) + in[0]};
  };
  expect_replays(program, {ones()});
  expect_replays(
      [](Tensors& in) -> Tensors {
        at::manual_seed(11);
        return {at::rand({3}) + in[0]};
      },
      {ones()});
}

TEST(Random, a_seed_before_the_scope_is_the_callers) {
  const auto program = [](Tensors& in) -> Tensors { return {at::dropout(in[0], 0.5, true)}; };
  at::manual_seed(1);
  const Captured captured = capture(program, {at::ones({64})});
  for (uint64_t seed : {1, 2}) {
    Tensors in = {at::ones({64})};
    at::manual_seed(seed);
    const Tensors received = captured.replay(in);
    at::manual_seed(seed);
    EXPECT_EQ(difference(received, program(in)), "");
  }
}

TEST(Random, a_generator_of_the_caller_is_an_input_and_an_effect) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(5);
  const auto program = [&](Tensors& in) -> Tensors {
    return {at::rand({3}, generator) + in[0], at::empty({3}).normal_(0, 1, generator)};
  };
  const Captured captured = capture(program, {ones()});
  Tensors in = {ones() * 2};
  for (int round = 0; round < 2; ++round) {
    const at::Tensor state = generator.get_state().clone();
    const Tensors received = captured.replay(in);
    const at::Tensor after = generator.get_state().clone();
    generator.set_state(state);
    EXPECT_EQ(difference(received, program(in)), "");
    EXPECT_EQ(difference(after, generator.get_state()), "");
  }
}

TEST(Random, a_generator_that_dies_in_the_scope_starts_each_replay_anew) {
  const auto program = [](Tensors& in) -> Tensors {
    at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(9);
    at::Tensor a = at::rand({3}, generator);
    generator.set_current_seed(10);
    return {a + in[0], at::rand({3}, generator)};
  };
  const Captured captured = expect_replays(program, {ones()});
  Tensors in = {ones()};
  for (int round = 0; round < 2; ++round)
    EXPECT_EQ(difference(captured.replay(in), program(in)), "");
}

TEST(Random, two_generators) {
  at::Generator a = at::make_generator<at::CPUGeneratorImpl>(1),
                b = at::make_generator<at::CPUGeneratorImpl>(2);
  const auto program = [&](Tensors& in) -> Tensors {
    return {at::rand({2}, a), at::rand({2}, b), at::rand({2}, a), at::rand({2}), in[0]};
  };
  const Captured captured = capture(program, {ones()});
  Tensors in = {ones()};
  a.set_current_seed(3);
  b.set_current_seed(4);
  at::manual_seed(5);
  const Tensors received = captured.replay(in);
  a.set_current_seed(3);
  b.set_current_seed(4);
  at::manual_seed(5);
  EXPECT_EQ(difference(received, program(in)), "");
}

}  // namespace
}  // namespace flashlight::testing
