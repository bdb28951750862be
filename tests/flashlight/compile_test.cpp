// Captured programs and functions as compiled C++, called with LibTorch's tensors and
// differentiated by autograd, against LibTorch.
#include "flashlight/compile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn.h>
#include <torch/optim.h>

#include <thread>

#include "composit/ops/elementwise.h"
#include "composit/ops/functions.h"
#include "composit/ops/vmap.h"
#include "flashlight/toolchain/process.h"
#include "flashlight/trace.h"
#include "tests/io/temporary_folder.h"
#include "tests/user_error.h"

namespace flashlight {
namespace {

using composit::Tensors;
using composit::user_error;
using testing::HasSubstr;
using testing::Optional;

// In float64, where LibTorch and compiled code differ by the order of sums alone.
constexpr double kTolerance = 1e-12;

testing::AssertionResult close(const at::Tensor& actual, const at::Tensor& expected) {
  if (actual.sizes() != expected.sizes() || actual.scalar_type() != expected.scalar_type())
    return testing::AssertionFailure() << actual << "\n!=\n" << expected;
  if (at::allclose(actual, expected, kTolerance, kTolerance)) return testing::AssertionSuccess();
  return testing::AssertionFailure() << actual << "\n!=\n" << expected;
}

at::Tensor doubles(at::IntArrayRef sizes) { return at::randn(sizes, torch::kDouble); }
at::Tensor leaf(at::IntArrayRef sizes) { return doubles(sizes).requires_grad_(); }

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

// ---- captured programs --------------------------------------------------------------------------

torch::nn::Sequential network() {
  torch::nn::Sequential model(torch::nn::Linear(5, 7), torch::nn::BatchNorm1d(7), torch::nn::Tanh(),
                              torch::nn::Linear(7, 2));
  model->to(torch::kDouble);
  return model;
}

TEST(Compile, CalledLikeTheModel) {
  auto model = network();
  model->eval();
  const auto captured = trace(model, doubles({4, 5}));
  const auto compiled = compile(captured, {.name = "network"});
  const at::Tensor x = doubles({5, 4}).t();
  EXPECT_TRUE(close(compiled(x), model->forward(x)));
  EXPECT_THAT(compiled.source(), HasSubstr("void network(const Weights& weights"));
}

TEST(Compile, ParametersAreTheModels) {
  auto model = network();
  model->eval();
  const auto compiled = compile(trace(model, doubles({4, 5})));
  {
    const torch::NoGradGuard no_grad;
    for (const at::Tensor& parameter : model->parameters()) parameter.mul_(2);
  }
  const at::Tensor x = doubles({4, 5});
  EXPECT_TRUE(close(compiled(x), model->forward(x)));
}

TEST(Compile, BackwardReachesArgumentsAndParametersAndBuffersAreWritten) {
  auto model = network();
  const auto compiled = compile(trace(model, doubles({4, 5})));
  auto twin = std::dynamic_pointer_cast<torch::nn::SequentialImpl>(model->clone());
  const at::Tensor x = leaf({4, 5}), y = x.detach().clone().requires_grad_();
  for (int step = 0; step < 2; ++step) {  // gradients add up, statistics move on
    compiled(x).square().sum().backward();
    twin->forward(y).square().sum().backward();
  }
  EXPECT_TRUE(close(x.grad(), y.grad()));
  const auto ours = model->parameters(), theirs = twin->parameters();
  for (size_t i = 0; i < ours.size(); ++i) EXPECT_TRUE(close(ours[i].grad(), theirs[i].grad()));
  const auto buffers = model->buffers(), expected = twin->buffers();
  for (size_t i = 0; i < buffers.size(); ++i)
    EXPECT_TRUE(at::allclose(buffers[i], expected[i])) << i;
}

TEST(Compile, AWholeTrainingStepWritesParameters) {
  auto model = network();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  const auto step = [&](const at::Tensor& x) {
    optimizer.zero_grad();
    const at::Tensor loss = model->forward(x).square().mean();
    loss.backward();
    optimizer.step();
    return loss.detach();
  };
  TraceSettings settings;
  settings.named = named_tensors(*model);
  const at::Tensor x = doubles({4, 5});
  const auto compiled = compile(trace(settings, step, x));
  std::vector<at::Tensor> before;
  for (const at::Tensor& parameter : model->parameters())
    before.push_back(parameter.detach().clone());
  const at::Tensor loss = compiled(x);
  std::vector<at::Tensor> after;
  for (const at::Tensor& parameter : model->parameters())
    after.push_back(parameter.detach().clone());
  const torch::NoGradGuard no_grad;
  for (size_t i = 0; i < before.size(); ++i) model->parameters()[i].copy_(before[i]);
  const at::AutoGradMode grad(true);
  EXPECT_TRUE(close(loss, step(x)));
  for (size_t i = 0; i < after.size(); ++i) EXPECT_TRUE(close(after[i], model->parameters()[i]));
}

TEST(Compile, LossAndGradientsAsOneFunction) {
  auto model = network();
  TraceSettings settings;
  settings.named = named_tensors(*model);
  const auto loss_of = [&](const at::Tensor& x) { return model->forward(x).square().mean(); };
  const auto captured = trace(settings, loss_of, doubles({4, 5}));
  const CompiledGradient compiled = compile(captured.grad(), {.name = "training"});
  const at::Tensor x = doubles({4, 5}), loss = loss_of(x);
  const auto expected = torch::autograd::grad({loss}, model->parameters());
  const auto [value, gradients] = compiled({x});
  EXPECT_TRUE(close(value, loss.detach()));
  ASSERT_EQ(gradients.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(close(gradients[i], expected[i])) << i;
  EXPECT_THAT(compiled.source(), HasSubstr("grad_0_weight"));
}

TEST(Compile, StructuredArgumentsAndResults) {
  const auto program = [](const std::pair<at::Tensor, at::Tensor>& xy, double factor) {
    return std::map<std::string, at::Tensor>{{"product", xy.first * xy.second * factor},
                                             {"largest", xy.first.argmax(1)}};
  };
  const std::pair<at::Tensor, at::Tensor> xy = {leaf({3, 4}), leaf({4})};
  const auto compiled = compile(trace(program, xy, 2.0));
  const auto actual = compiled(xy, 2.0), expected = program(xy, 2.0);
  EXPECT_TRUE(close(actual.at("product"), expected.at("product")));
  EXPECT_TRUE(at::equal(actual.at("largest"), expected.at("largest")));
  EXPECT_FALSE(actual.at("largest").requires_grad());
  const auto ours = torch::autograd::grad({actual.at("product").sum()}, {xy.first, xy.second});
  const auto theirs = torch::autograd::grad({expected.at("product").sum()}, {xy.first, xy.second});
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(close(ours[i], theirs[i]));
  EXPECT_THAT(user_error([&] { compiled(xy, 3.0); }), Optional(HasSubstr("expected arguments")));
}

TEST(Compile, WhatAProgramWritesToItsArguments) {
  const auto program = [](const at::Tensor& x, const at::Tensor& total) {
    total.add_(x);
    return total * 2;
  };
  const auto compiled = compile(trace(program, doubles({3}), doubles({3})));
  const at::Tensor x = leaf({3}), total = at::ones({3}, torch::kDouble);
  const at::Tensor y = compiled(x, total);
  EXPECT_TRUE(close(total, x.detach() + 1));
  EXPECT_TRUE(close(y.detach(), total * 2));
  y.sum().backward();
  EXPECT_TRUE(close(x.grad(), at::full({3}, 2, torch::kDouble)));
}

TEST(Compile, ErrorsNameTheInput) {
  auto model = network();
  model->eval();
  const auto compiled = compile(trace(model, doubles({4, 5})), {.name = "network"});
  EXPECT_EQ(user_error([&] {
              compiled(doubles({3, 5}));
            }),
            "[network] input 'input_0': expected float64[4, 5] in the CPU's memory, received "
            "float64[3, 5]");
  EXPECT_THAT(user_error([&] {
                compiled(at::randn({4, 5}));
              }),
              Optional(HasSubstr("received float32[4, 5]")));
  EXPECT_THAT(user_error([&] {
                compiled(doubles({4, 5}).to_sparse());
              }),
              Optional(HasSubstr("of layout Sparse")));
  EXPECT_THAT(user_error([&] {
                compile(trace([](at::Tensor x) { return at::bincount(x); }, at::tensor({1, 2})));
              }),
              Optional(HasSubstr("no code for 'aten::bincount")));
}

// Operations composit has no definition of, with several results and arguments of many kinds.
std::vector<at::Tensor> undefined_here(const at::Tensor& x, const at::Tensor& n) {
  const at::Tensor bins = at::_histogramdd_bin_edges(x.slice(1, 0, 2), {2, 3})[1];
  return {at::bincount(n, n.to(torch::kDouble), 6), bins, at::ormqr(x, x[0], x).exp()};
}

TEST(Compile, LinkedWithLibTorch) {
  const at::Tensor x = doubles({4, 4}), n = at::tensor({3, 1, 3, 5});
  const auto captured = trace(undefined_here, x, n);
  EXPECT_THAT(user_error([&] { compile(captured); }), Optional(HasSubstr("aten::bincount")));
  const auto compiled = compile(captured, {.name = "linked", .link_aten = true});
  const at::Tensor y = doubles({4, 4});
  const auto actual = compiled(y, n), expected = undefined_here(y, n);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(close(actual[i], expected[i])) << i;
  EXPECT_THAT(compiled.source(), HasSubstr("fl::store(at::bincount(fl::tensor(input_1, {4}), "));
  // The sizes of a result are those of the capture.
  EXPECT_THAT(user_error([&] {
                compiled(y, at::tensor({3, 1, 3, 8}));
              }),
              Optional(HasSubstr("LibTorch gave Double[9], expected 6 elements")));
}

TEST(Compile, WrittenForAMachineWithLibTorch) {
  const composit::test::TemporaryFolder folder;
  const auto captured = trace(undefined_here, doubles({4, 4}), at::tensor({3, 1, 3, 5}));
  captured.save(folder / "capture");
  const auto run = [&](const std::vector<std::string>& words) {
    const toolchain::ProcessResult result = toolchain::run({words, {}});
    EXPECT_EQ(result.status, 0) << result.output;
  };
  const std::string source = folder / "source", build = folder / "build";
  run({FLASHLIGHT_CLI, "compile", folder / "capture", "--link", "aten", "-o", source});
  run({FLASHLIGHT_CMAKE, "-S", source, "-B", build, "-DTorch_DIR=" FLASHLIGHT_TORCH_DIR});
  run({FLASHLIGHT_CMAKE, "--build", build});
  run({build + "/capture_example", source});
}

// ---- functions ----------------------------------------------------------------------------------

TEST(CompiledFunction, OfNumbersAndTensors) {
  const CompiledFunction f = compile(relu3(), {.name = "relu3"});
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
  EXPECT_THAT(f.specialized({floats}).source(),
              HasSubstr("void relu3(const float (&x)[100], float (&__restrict y)[100]) {"));
}

TEST(CompiledFunction, DerivativesOfAnyOrder) {
  const CompiledFunction f = compile(scalar([](auto x) { return x * sin(x); }));
  const auto eager = [](const at::Tensor& x) { return x * x.sin(); };
  const at::Tensor x = leaf({5});
  at::Tensor ours = f(x), theirs = eager(x);
  for (int order = 0; order < 3; ++order) {
    ours = torch::autograd::grad({ours.sum()}, {x}, {}, true, true)[0];
    theirs = torch::autograd::grad({theirs.sum()}, {x}, {}, true, true)[0];
    EXPECT_TRUE(close(ours, theirs)) << order;
  }
}

TEST(CompiledFunction, AModuleOfSequential) {
  const CompiledFunction f = compile(relu3(), {.name = "relu3"});
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

TEST(CompiledFunction, MappedOverASecondArgument) {
  const composit::TensorFunction row = [](const Tensors& x) {
    return Tensors{composit::sum(x[0] * x[1]), composit::exp(x[0])};
  };
  const CompiledFunction f =
      compile(composit::vmap(row, {0, std::nullopt}), {.arguments = {"rows", "weight"}});
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

TEST(CompiledFunction, IntegersHaveNoGradient) {
  const CompiledFunction f = compile([](const Tensors& x) { return Tensors{x[0] * x[1]}; });
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

TEST(CompiledFunction, FromSeveralThreads) {
  const CompiledFunction f = compile(relu3(), {.name = "relu3"});
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
