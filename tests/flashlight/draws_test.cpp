// Programs that draw, as C++: from one seed, the numbers of LibTorch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "flashlight/compile.h"
#include "flashlight/cpp/backend.h"
#include "flashlight/runtime/random.hpp"
#include "flashlight/trace.h"
#include "tests/user_error.h"
#include "tracer/convert.h"

namespace flashlight {
namespace {

using testing::HasSubstr;
using Function = std::function<std::vector<at::Tensor>(const at::Tensor&)>;

cpp::Compiled compiled(const Function& function, const at::Tensor& x) {
  return cpp::compile(trace(function, x).graph());
}

// The compiled program draws what LibTorch does, for several seeds; results agree in all bits but
// those of `tolerance`.
void expect_draws(const Function& function, const at::Tensor& x, double tolerance = 0) {
  const cpp::Compiled program = compiled(function, x);
  for (const uint64_t seed : {uint64_t{0}, uint64_t{42}, uint64_t{1} << 40}) {
    at::manual_seed(seed);
    const std::vector<at::Tensor> expected = function(x);
    const auto results = program({tracer::to_array(x)}, fl::Generator(seed));
    for (size_t i = 0; i < expected.size(); ++i) {
      const at::Tensor actual = tracer::to_tensor(results[i]);
      EXPECT_TRUE(at::allclose(actual, expected[i].to(actual.scalar_type()), tolerance, tolerance))
          << "result " << i << ", seed " << seed << "\n"
          << program->source();
    }
  }
}

TEST(CompiledDraws, OfEveryKind) {
  for (const auto dtype : {torch::kFloat, torch::kDouble})
    expect_draws(
        [dtype](const at::Tensor& x) -> std::vector<at::Tensor> {
          const auto options = at::TensorOptions(dtype);
          return {at::rand({3, 5}, options),
                  at::rand_like(x),
                  at::randn({7}, options),
                  at::randn({5, 9}, options),
                  at::randn_like(x),
                  at::empty({4}, options).normal_(3, 0.5),
                  at::empty({3, 7}, options).normal_(3, 0.5),
                  at::empty({4}, options).uniform_(-2, 7),
                  at::empty({4}, options).exponential_(0.3),
                  at::empty({4}, options).cauchy_(1, 2),
                  at::empty({4}, options).log_normal_(),
                  at::empty({4}, options).geometric_(0.2),
                  at::bernoulli(x.abs()),
                  at::empty({4}, options).bernoulli_(0.3),
                  at::randint(10, {6}),
                  at::randint(-3, 10, {6}, options),
                  at::randint_like(x, 9),
                  at::empty({5}, at::kInt).random_(),
                  at::empty({5}, at::kLong).random_(2, int64_t{1} << 40),
                  at::randperm(11)};
        },
        at::linspace(-1, 1, 20, at::TensorOptions(dtype)));
}

TEST(CompiledDraws, IntoMemoryInAnotherOrder) {
  expect_draws(
      [](const at::Tensor& x) -> std::vector<at::Tensor> {
        const at::Tensor turned = x.permute({2, 0, 1});
        const auto last = at::MemoryFormat::ChannelsLast;
        return {at::rand_like(turned),
                at::randn_like(turned),
                at::empty({5, 2}).t().normal_(1, 2),
                at::empty({5, 3}).t().normal_(1, 2),
                at::empty({5, 9}).t().normal_(1, 2),
                at::empty({2, 3, 4, 5}).contiguous(last).uniform_(-1, 1),
                at::empty({2, 3, 4, 5}).contiguous(last).normal_(),
                at::empty({3, 4}, at::kLong).t().random_(0, 9),
                at::dropout(turned, 0.5, true),
                at::rand({1})};
      },
      at::ones({2, 3, 4}));
}

TEST(CompiledDraws, WithArithmeticAround) {
  expect_draws(
      [](const at::Tensor& x) -> std::vector<at::Tensor> {
        return {at::normal(x, 0.5),
                at::normal(2, at::sigmoid(x)),
                at::normal(x, at::sigmoid(x)),
                at::multinomial(at::sigmoid(x), 1),
                at::multinomial(at::sigmoid(x).reshape({4, 5}), 3),
                at::multinomial(at::sigmoid(x).reshape({4, 5}), 9, true),
                at::rand({2})};
      },
      at::linspace(-1, 1, 20, torch::kDouble), 1e-12);
}

TEST(CompiledDraws, OfDropoutInTraining) {
  expect_draws(
      [](const at::Tensor& x) -> std::vector<at::Tensor> {
        const auto [kept, mask] = at::native_dropout(x, 0.2, true);
        return {at::dropout(at::relu(x), 0.3, true), kept, mask, at::feature_dropout(x, 0.5, true)};
      },
      at::randn({4, 6, 3}, torch::kDouble), 1e-12);
}

TEST(CompiledDraws, AfterASeedInTheProgram) {
  expect_draws(
      [](const at::Tensor& x) -> std::vector<at::Tensor> {
        const at::Tensor before = at::randn({3});
        at::manual_seed(11);
        return {before, at::rand({3}) + x};
      },
      at::ones({3}));
}

// One sequence for eager and compiled programs, and for what draws next.
TEST(CompiledDraws, GoOnWhereLibTorchIs) {
  const auto program = [](const at::Tensor& x) {
    return at::dropout(x, 0.4, true) + at::randn({3});
  };
  const auto fast = compile(trace(program, at::ones({3})));
  const at::Tensor x = at::tensor({1.f, 2.f, 3.f});
  std::vector<at::Tensor> expected, actual;
  at::manual_seed(5);
  for (int i = 0; i < 300; ++i) expected.push_back(program(x)), expected.push_back(at::randn({1}));
  at::manual_seed(5);
  for (int i = 0; i < 300; ++i) actual.push_back(fast(x)), actual.push_back(at::randn({1}));
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_TRUE(at::allclose(actual[i], expected[i])) << i;
}

// The backward computes the draws again: those of its forward, whatever was drawn since.
TEST(CompiledDraws, AreTheSameInTheBackward) {
  const auto program = [](const at::Tensor& x) {
    at::rand({2});
    return x * x * at::rand({3}, torch::kDouble);
  };
  const auto fast = compile(trace(program, at::ones({3}, torch::kDouble)));
  const at::Tensor x = at::rand({3}, torch::kDouble).requires_grad_();
  at::manual_seed(8);
  const at::Tensor first = program(x), second = program(x);
  at::manual_seed(8);
  const at::Tensor one = fast(x), two = fast(x);
  for (const auto& [expected, actual] : {std::pair(first, one), std::pair(second, two)}) {
    const auto gradient = [&](const at::Tensor& y) {
      return torch::autograd::grad({y.sum()}, {x}, {}, true)[0];
    };
    EXPECT_TRUE(at::allclose(gradient(actual), gradient(expected)));
  }
}

TEST(CompiledGuards, OfCapturedPrograms) {
  const cpp::Compiled program = compiled(
      [](const at::Tensor& x) -> std::vector<at::Tensor> {
        const at::Tensor chosen = x.masked_select(x > 0);
        if (at::equal(x, x.flip({0}))) return {x};
        return {x * x.sum().item<float>() + at::nonzero(x).size(0), chosen};
      },
      at::tensor({1.f, -2.f, 3.f}));
  EXPECT_EQ(program({tracer::to_array(at::tensor({1.f, -2.f, 3.f}))}).size(), 2);
  const auto message = [&](const at::Tensor& x) {
    return composit::user_error([&] { program({tracer::to_array(x)}); });
  };
  EXPECT_THAT(message(at::tensor({1.f, 2.f, 3.f})),
              testing::Optional(HasSubstr("guard: aten::masked_select gave 3, captured with 2")));
  EXPECT_THAT(message(at::tensor({1.f, -2.f, 1.f})),
              testing::Optional(HasSubstr("guard: aten::equal gave true, captured with false")));
  EXPECT_THAT(message(at::tensor({1.f, -2.f, 4.f})),
              testing::Optional(HasSubstr("guard: aten::item gave 3, captured with 2")));
}

}  // namespace
}  // namespace flashlight
