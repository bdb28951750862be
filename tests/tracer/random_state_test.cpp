// States of generators that a program reads and sets again: values of the run, no constants.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <thread>

#include "composit/ir/parse.h"
#include "composit/ir/print.h"
#include "composit/ir/verify.h"
#include "tests/tracer/capture_helpers.h"

namespace flashlight::testing {
namespace {

using Generators = std::vector<at::Generator>;

at::Generator default_generator() { return at::globalContext().defaultGenerator(c10::kCPU); }
at::Tensor state() { return default_generator().get_state(); }
void restore(const at::Tensor& to) { default_generator().set_state(to); }

// As torch.random.fork_rng.
struct Fork {
  at::Tensor before = state();
  ~Fork() { restore(before); }
};

// Captures with the generators freshly seeded (the default one with 7), then replays and runs with
// other seeds, some numbers drawn: results and the generators' states afterwards must be the same
// bits.
Captured expect_random_replays(const Function& function, Generators generators = {}) {
  generators.insert(generators.begin(), default_generator());
  const auto seed = [&](uint64_t number) {
    const bool drawn = number % 2 == 0;
    for (at::Generator& generator : generators) {
      generator.set_current_seed(number++);
      if (drawn) at::randn({17}, generator);
    }
  };
  const auto states = [&] {
    Tensors result;
    for (at::Generator& generator : generators) result.push_back(generator.get_state());
    return result;
  };
  seed(7);
  Tensors in = {ones()};
  const Tensors first = function(in);
  const Tensors first_states = states();
  seed(7);
  Captured captured = capture(function, {ones()});
  EXPECT_EQ(difference(states(), first_states), "") << "generators after the capture";
  const std::string text = composit::print(captured.published.graph);
  composit::verify(captured.published.graph);
  EXPECT_TRUE(composit::parse(text) == captured.published.graph) << text;
  for (const uint64_t number : {7, 20, 31}) {
    seed(number);
    const Tensors expected = function(in);
    const Tensors expected_states = states();
    seed(number);
    EXPECT_EQ(difference(captured.replay(in), expected), "") << number << '\n' << text;
    EXPECT_EQ(difference(states(), expected_states), "") << number << '\n' << text;
  }
  return captured;
}

TEST(RandomState, draws_in_a_fork_leave_the_generator) {
  const Captured captured = expect_random_replays([](Tensors& in) -> Tensors {
    at::Tensor inside;
    {
      const Fork fork;
      inside = at::randn({3}) + at::rand({3});
    }
    return {inside, at::randn({3}) * in[0]};
  });
  EXPECT_EQ(captured.count("composit::generator_state"), 1u);
  EXPECT_EQ(captured.count("composit::restore_generator_state"), 1u);
  EXPECT_EQ(captured.count("composit::set_generator_state"), 0u);
}

TEST(RandomState, a_fork_at_the_end_of_the_scope) {
  expect_random_replays([](Tensors& in) -> Tensors {
    const at::Tensor before = at::rand({2});
    const Fork fork;
    return {before, at::randn({700}), in[0]};
  });
}

TEST(RandomState, a_seed_in_a_fork_stays_a_constant) {
  for (const uint64_t number : {7, 8, 11})  // also the one that the caller gave before the capture
    expect_random_replays([number](Tensors& in) -> Tensors {
      const at::Tensor before = at::rand({3});
      at::Tensor inside;
      {
        const Fork fork;
        at::manual_seed(number);
        inside = at::rand({3});
      }
      return {before, inside, at::rand({3}) + in[0]};
    });
}

TEST(RandomState, a_seed_equal_to_the_callers_is_a_constant) {
  const Captured captured = expect_random_replays([](Tensors& in) -> Tensors {
    at::manual_seed(7);
    return {at::rand({3}) + in[0]};
  });
  EXPECT_EQ(captured.count("composit::set_generator_state"), 1u);
}

TEST(RandomState, places_of_equal_states_are_told_apart) {
  expect_random_replays([](Tensors& in) -> Tensors {
    const at::Tensor first = at::rand({3}), of_caller = state();
    at::manual_seed(7);
    const at::Tensor second = at::rand({3}), of_seed = state();
    restore(of_caller);
    const at::Tensor third = at::rand({3});
    restore(of_seed);
    return {first, second, third, at::rand({3}) + in[0]};
  });
}

TEST(RandomState, read_in_the_run_and_set_after_other_draws) {
  expect_random_replays([](Tensors& in) -> Tensors {
    const at::Tensor begin = state(), x = at::randn({5});
    const at::Tensor middle = state(), y = at::bernoulli(at::sigmoid(in[0]));
    const at::Tensor z = at::randperm(6);
    restore(middle);
    const at::Tensor again = at::bernoulli(at::sigmoid(in[0]));
    restore(begin);
    return {x, y, z, again, at::randn({5})};
  });
}

TEST(RandomState, set_twice) {
  expect_random_replays([](Tensors& in) -> Tensors {
    const at::Tensor begin = state(), x = at::rand({4});
    restore(begin);
    const at::Tensor y = at::rand({2});
    restore(begin);
    const at::Tensor later = state();  // of a place that was restored
    const at::Tensor z = at::rand({700});
    restore(later);
    return {x, y, z, at::rand({4}), in[0]};
  });
}

TEST(RandomState, nested_forks) {
  expect_random_replays([](Tensors& in) -> Tensors {
    Tensors drawn = {at::rand({1})};
    {
      const Fork outer;
      drawn.push_back(at::rand({2}));
      {
        const Fork inner;
        at::manual_seed(3);
        drawn.push_back(at::dropout(in[0], 0.5, true));
      }
      drawn.push_back(at::rand({2}));
    }
    drawn.push_back(at::rand({2}));
    return drawn;
  });
}

TEST(RandomState, through_a_copied_tensor) {
  expect_random_replays([](Tensors& in) -> Tensors {
    const at::Tensor copy = state().clone(), x = at::rand({3});
    restore(copy);
    const at::Tensor y = at::rand({3});
    restore(at::stack({copy, state()})[0].clone());
    return {x, y, at::rand({3}) + in[0]};
  });
}

TEST(RandomState, is_a_result_like_others) {
  const Captured captured = expect_random_replays([](Tensors& in) -> Tensors {
    const at::Tensor begin = state(), x = at::rand({3}) + in[0];
    return {begin, x, state()};
  });
  EXPECT_EQ(captured.count("composit::generator_state"), 2u);
}

TEST(RandomState, the_captured_run_returns_the_bits_of_eager) {
  const auto program = [](Tensors&) -> Tensors { return {state(), at::rand({3}), state()}; };
  Tensors none;
  at::manual_seed(3);
  const Tensors expected = program(none);
  at::manual_seed(3);
  TraceScope scope;
  const Tensors received = program(none);
  scope.finish(received);
  EXPECT_EQ(difference(received, expected), "");
}

TEST(RandomState, of_dropout_in_a_composite_stays_closed) {
  const Captured captured = expect_random_replays([](Tensors& in) -> Tensors {
    const at::Tensor begin = state(), x = at::dropout(in[0], 0.5, true);
    restore(begin);
    return {x, at::dropout(in[0], 0.5, true), at::dropout(in[0], 0.25, true)};
  });
  EXPECT_EQ(captured.count("aten::dropout"), 3u);
}

TEST(RandomState, unused_states_leave_no_node) {
  const Captured captured = expect_random_replays([](Tensors& in) -> Tensors {
    state();
    return {at::rand({3}) + in[0], at::dropout(in[0], 0.5, true)};
  });
  EXPECT_EQ(captured.count("composit::generator_state"), 0u);
}

TEST(RandomState, a_seed_at_the_end_of_the_scope) {
  expect_random_replays([](Tensors& in) -> Tensors {
    const at::Tensor x = at::rand({3}) + in[0];
    at::manual_seed(5);
    return {x};
  });
}

// As torch.utils.checkpoint, it computes the forward pass again in the state it began with.
TEST(RandomState, a_checkpoint_by_hand) {
  at::Tensor weight = at::randn({3, 3}).requires_grad_();
  const auto block = [&](const at::Tensor& x) {
    return at::dropout(at::relu(at::mm(x, weight)), 0.5, true);
  };
  expect_random_replays([&](Tensors& in) -> Tensors {
    const at::Tensor x = at::randn({4, 3}) * in[0], begin = state();
    at::Tensor out;
    {
      const at::AutoGradMode no_grad(false);
      out = block(x);
    }
    const at::Tensor leaf = at::dropout(out, 0.5, true).detach().requires_grad_();
    const at::Tensor upstream = torch::autograd::grad({leaf.pow(2).sum()}, {leaf})[0];
    const Fork fork;
    restore(begin);
    const at::AutoGradMode grad(true);
    return {torch::autograd::grad({block(x)}, {weight}, {upstream})[0], leaf.detach()};
  });
}

TEST(RandomState, of_a_generator_of_the_caller) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(5);
  expect_random_replays(
      [&](Tensors& in) -> Tensors {
        const at::Tensor x = at::rand({3}, generator), later = generator.get_state();
        const at::Tensor y = at::empty({3}).normal_(0, 1, generator);
        generator.set_state(later);
        return {x, y, at::rand({3}, generator) + in[0], at::rand({2})};
      },
      {generator});
}

TEST(RandomState, of_a_generator_of_the_caller_before_its_first_draw) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(5);
  expect_random_replays(
      [&](Tensors& in) -> Tensors {
        const at::Tensor begin = generator.get_state(), x = at::rand({3}, generator);
        generator.set_state(begin);
        return {x, at::rand({3}, generator) + in[0]};
      },
      {generator});
}

TEST(RandomState, a_seed_of_a_generator_of_the_caller_is_a_constant) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(5);
  expect_random_replays(
      [&](Tensors& in) -> Tensors {
        const at::Tensor x = at::rand({3}, generator);
        generator.set_current_seed(8);  // as before the capture
        return {x, at::rand({3}, generator) + in[0]};
      },
      {generator});
}

TEST(RandomState, of_one_generator_set_to_another) {
  at::Generator a = at::make_generator<at::CPUGeneratorImpl>(1),
                b = at::make_generator<at::CPUGeneratorImpl>(2);
  expect_random_replays(
      [&](Tensors& in) -> Tensors {
        const at::Tensor x = at::rand({3}, a), y = at::rand({2}, b);
        b.set_state(a.get_state());
        const at::Tensor z = at::rand({3}, b);
        a.set_state(state());
        return {x, y, z, at::rand({3}, a), at::rand({3}) + in[0]};
      },
      {a, b});
}

TEST(RandomState, of_a_copied_generator) {
  expect_random_replays([&](Tensors& in) -> Tensors {
    const at::Tensor x = at::rand({3});
    at::Generator copy = default_generator().clone();
    return {x, at::rand({3}, copy), at::rand({3}) + in[0]};
  });
}

TEST(RandomState, in_scopes_inside_of_each_other) {
  expect_random_replays([&](Tensors& in) -> Tensors {
    const at::Tensor begin = state(), x = at::rand({3});
    Tensors inner;
    {
      TraceScope scope;
      const at::Tensor middle = state();
      inner = {at::rand({3}), at::dropout(in[0], 0.5, true)};
      restore(middle);
      inner.push_back(at::rand({3}));
      scope.finish({});
    }
    const at::Tensor y = at::rand({3});
    restore(begin);
    return {x, inner[0], inner[1], inner[2], y, at::rand({3})};
  });
}

TEST(RandomState, a_draw_of_another_thread_at_the_end_is_not_the_programs) {
  const Captured captured = capture(
      [](Tensors& in) -> Tensors {
        const at::Tensor x = at::rand({3}) + in[0];
        std::thread([] { at::rand({3}); }).join();
        return {x};
      },
      {ones()});
  EXPECT_EQ(captured.published.graph.effects().size(), 1u);
  ASSERT_EQ(captured.published.remarks.size(), 1u);
  EXPECT_NE(captured.published.remarks[0].find("'default'"), std::string::npos);
}

// The marks that tell states apart must not be drawn.
TEST(RandomState, draws_of_a_scope_are_the_draws_without_it) {
  for (int64_t drawn = 0; drawn < 1300; drawn += drawn < 620 || drawn > 628 ? 31 : 1) {
    const auto program = [&](Tensors&) -> Tensors {
      Tensors all;
      for (int i = 0; i < 6; ++i) {
        all.push_back(at::randint(0, 1000000, {drawn % 7 + 300 * (i % 3)}));
        all.push_back(at::randn({drawn % 3 + 1}));
      }
      return all;
    };
    Tensors none;
    at::manual_seed(1);
    at::randint(0, 9, {drawn});
    const at::Tensor begin = state();
    const Tensors expected = program(none);
    const at::Tensor end = state();
    restore(begin);
    TraceScope scope;
    const Tensors received = program(none);
    scope.finish({});
    EXPECT_EQ(difference(received, expected), "");
    EXPECT_EQ(difference(state(), end), "");
  }
}

}  // namespace
}  // namespace flashlight::testing
