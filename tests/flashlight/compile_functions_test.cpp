// Functions of tensors and numbers as compiled C++, called with LibTorch's tensors and
// differentiated by autograd, against LibTorch.
#include <gmock/gmock.h>
#include <torch/nn.h>

#include <thread>

#include "composit/ops/elementwise.h"
#include "composit/ops/functions.h"
#include "composit/ops/vmap.h"
#include "flashlight/compile.h"
#include "tests/flashlight/by_backend.h"
#include "tests/user_error.h"

namespace flashlight {
namespace {

using composit::LazyTensors;
using composit::user_error;
using test::close;
using test::doubles;
using test::leaf;
using testing::HasSubstr;
using testing::Optional;

class CompiledFunctions : public test::ByBackend {};
INSTANTIATE_TEST_SUITE_P(Backends, CompiledFunctions, test::kBackends, test::name_of_backend);

ScalarFunction relu3() {
  return scalar([](auto x) {
    if (x < 0.0) return 0.0 * x;
    if (x < 1.0) return 1.0 / 3.0 * x * x * x;
    return x - 2.0 / 3.0;
  });
}

at::Tensor relu3_of(const at::Tensor& x) {
  return at::where(x < 0, 0 * x, at::where(x < 1, x.pow(3) / 3, x - 2.0 / 3));
}

TEST_P(CompiledFunctions, OfNumbersAndTensors) {
  const CompiledFunction f = compile(relu3(), by_backend("relu3"));
  for (const double x : {-1.0, 0.0, 0.5, 1.0, 3.0}) {
    EXPECT_DOUBLE_EQ(f(x), relu3()(x));
    EXPECT_DOUBLE_EQ(f.vjp(x, 3.0), relu3().vjp({x}, {3.0})[0]);
  }
  for (const std::vector<int64_t>& sizes :
       std::vector<std::vector<int64_t>>{{}, {7}, {2, 3}, {2, 1, 3, 2}, {0, 3}}) {
    const at::Tensor x = leaf(sizes), dy = doubles(sizes);
    EXPECT_TRUE(close(f(x), relu3_of(x)));
    EXPECT_TRUE(close(f.vjp(x, dy), torch::autograd::grad({relu3_of(x)}, {x}, {dy})[0]));
  }
  const at::Tensor floats = at::randn({100});
  EXPECT_EQ(f(floats).scalar_type(), at::kFloat);
  EXPECT_TRUE(at::allclose(f(floats), relu3_of(floats)));
  if (is_cpp()) {
    EXPECT_THAT(f.specialized({floats}).source(),
                HasSubstr("void relu3(const float (&x)[100], float (&__restrict y)[100]) {"));
  }
}

TEST_P(CompiledFunctions, DerivativesOfAnyOrder) {
  const CompiledFunction f = compile(scalar([](auto x) { return x * sin(x); }), by_backend());
  const auto eager = [](const at::Tensor& x) { return x * x.sin(); };
  const at::Tensor x = leaf({5});
  at::Tensor ours = f(x), theirs = eager(x);
  for (int order = 0; order < 3; ++order) {
    ours = torch::autograd::grad({ours.sum()}, {x}, {}, true, true)[0];
    theirs = torch::autograd::grad({theirs.sum()}, {x}, {}, true, true)[0];
    EXPECT_TRUE(close(ours, theirs)) << order;
  }
}

TEST_P(CompiledFunctions, AModuleOfSequential) {
  const CompiledFunction f = compile(relu3(), by_backend("relu3"));
  torch::nn::Sequential ours(torch::nn::Linear(3, 4), torch::nn::Functional(f),
                             torch::nn::Linear(4, 1));
  ours->to(torch::kDouble);
  const auto theirs = [&](const at::Tensor& x) {
    return ours[2]->as<torch::nn::Linear>()->forward(
        relu3_of(ours[0]->as<torch::nn::Linear>()->forward(x)));
  };
  const at::Tensor x = doubles({6, 3});
  EXPECT_TRUE(close(ours->forward(x), theirs(x)));
  const auto actual = torch::autograd::grad({ours->forward(x).sum()}, ours->parameters());
  const auto expected = torch::autograd::grad({theirs(x).sum()}, ours->parameters());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_TRUE(close(actual[i], expected[i])) << i;
}

TEST_P(CompiledFunctions, MappedOverASecondArgument) {
  const composit::TensorFunction row = [](const LazyTensors& x) {
    return LazyTensors{composit::sum(x[0] * x[1]), composit::exp(x[0])};
  };
  CompileSettings settings = by_backend();
  settings.arguments = {"rows", "weight"};
  const CompiledFunction f = compile(composit::vmap(row, {0, std::nullopt}), settings);
  const at::Tensor x = leaf({4, 3}), w = leaf({3});
  const std::vector<at::Tensor> y = f.call({x, w});
  EXPECT_TRUE(close(y[0], (x * w).sum(1)));
  EXPECT_TRUE(close(y[1], x.exp()));
  const at::Tensor first = doubles({4}), second = doubles({4, 3});
  const auto expected = torch::autograd::grad({(x * w).sum(1), x.exp()}, {x, w}, {first, second});
  const auto by_call = f.vjp({x, w}, {first, second});
  const auto by_autograd = torch::autograd::grad(y, {x, w}, {first, second});
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(close(by_call[i], expected[i]));
    EXPECT_TRUE(close(by_autograd[i], expected[i]));
  }
  EXPECT_THAT(f.specialized({x, w}).source(), HasSubstr("weight"));
  EXPECT_THAT(user_error([&] { f(x, w); }), Optional(HasSubstr("has 2 results")));
}

TEST_P(CompiledFunctions, IntegersHaveNoGradient) {
  const CompiledFunction f =
      compile([](const LazyTensors& x) { return LazyTensors{x[0] * x[1]}; }, by_backend());
  const at::Tensor x = leaf({3}), factor = at::tensor({2, 0, 3});
  f(x, factor).sum().backward();
  EXPECT_TRUE(close(x.grad(), factor.to(torch::kDouble)));
  EXPECT_THAT(user_error([&] {
                f.vjp({x, factor}, {x});
              }),
              Optional(HasSubstr("received int32[3]")));
  const torch::NoGradGuard no_grad;
  EXPECT_FALSE(f(x, factor).requires_grad());
}

TEST_P(CompiledFunctions, FromSeveralThreads) {
  const CompiledFunction f = compile(relu3(), by_backend("relu3"));
  std::vector<std::thread> threads;
  for (int64_t i = 1; i <= 4; ++i)
    threads.emplace_back([&f, i] {
      for (int64_t size = i; size < i + 4; ++size) {
        const at::Tensor x = leaf({size});
        f(x).sum().backward();
        EXPECT_TRUE(close(x.grad(), torch::autograd::grad({relu3_of(x).sum()}, {x})[0]));
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace flashlight
