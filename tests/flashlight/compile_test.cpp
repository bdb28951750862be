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

// Both backends give what LibTorch gives; mosaic's sums stay those of the graph.
struct Backend {
  std::string name;
  std::variant<Cpp, Mosaic> options;
};
void PrintTo(const Backend& backend, std::ostream* out) { *out << backend.name; }

class ByBackend : public testing::TestWithParam<Backend> {
 protected:
  static CompileSettings by_backend(const std::string& name = "program") {
    return {.name = name, .backend = GetParam().options};
  }
  static bool is_cpp() { return std::holds_alternative<Cpp>(GetParam().options); }
};
class Compile : public ByBackend {};
class CompiledFunctions : public ByBackend {};

const Backend kBackends[] = {
    {"cpp", Cpp{}},
    {"mosaic", Mosaic{.threads = 2, .winograd = false}},
    {"mosaic_reading_anew", Mosaic{.threads = 1, .winograd = false, .freeze = false}}};
const auto name_of = [](const auto& info) { return info.param.name; };
INSTANTIATE_TEST_SUITE_P(Backends, Compile, testing::ValuesIn(kBackends), name_of);
INSTANTIATE_TEST_SUITE_P(Backends, CompiledFunctions, testing::ValuesIn(kBackends), name_of);

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

TEST_P(Compile, CalledLikeTheModel) {
  auto model = network();
  model->eval();
  const auto captured = trace(model, doubles({4, 5}));
  const auto compiled = compile(captured, by_backend("network"));
  const at::Tensor x = doubles({5, 4}).t();
  EXPECT_TRUE(close(compiled(x), model->forward(x)));
  if (is_cpp()) {
    EXPECT_THAT(compiled.source(), HasSubstr("void network(const Weights& weights"));
  }
}

TEST_P(Compile, ParametersAreTheModels) {
  auto model = network();
  model->eval();
  const auto compiled = compile(trace(model, doubles({4, 5})), by_backend());
  const at::Tensor x = doubles({4, 5});
  EXPECT_TRUE(close(compiled(x), model->forward(x)));
  {
    const torch::NoGradGuard no_grad;
    for (const at::Tensor& parameter : model->parameters()) parameter.mul_(2);
  }
  EXPECT_TRUE(close(compiled(x), model->forward(x)));
  for (at::Tensor parameter : model->parameters()) parameter.set_data(parameter.detach() * 0.5);
  EXPECT_TRUE(close(compiled(x), model->forward(x)));
}

TEST_P(Compile, ParametersThatChangeWhileThreadsCall) {
  auto model = network();
  model->eval();
  const auto compiled = compile(trace(model, doubles({4, 5})), by_backend());
  const at::Tensor x = doubles({4, 5});
  for (int round = 0; round < 3; ++round) {
    const at::Tensor expected = model->forward(x);
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i)
      threads.emplace_back([&] { EXPECT_TRUE(close(compiled(x), expected)); });
    for (std::thread& thread : threads) thread.join();
    const torch::NoGradGuard no_grad;
    for (const at::Tensor& parameter : model->parameters()) parameter.mul_(0.9);
  }
}

TEST_P(Compile, BackwardReachesArgumentsAndParametersAndBuffersAreWritten) {
  auto model = network();
  const auto compiled = compile(trace(model, doubles({4, 5})), by_backend());
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

TEST_P(Compile, AWholeTrainingStepWritesParameters) {
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
  const auto compiled = compile(trace(settings, step, x), by_backend());
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

// What a training step may change: parameters, statistics, and the optimizer's momentum.
std::vector<NamedTensor> state_of(torch::nn::Sequential& model, torch::optim::SGD& optimizer) {
  std::vector<NamedTensor> state = named_tensors(*model);
  int number = 0;
  for (const at::Tensor& parameter : model->parameters()) {
    const auto found = optimizer.state().find(parameter.unsafeGetTensorImpl());
    if (found == optimizer.state().end()) continue;
    const auto& one = static_cast<torch::optim::SGDParamState&>(*found->second);
    state.push_back({"momentum." + std::to_string(number++), one.momentum_buffer(),
                     composit::InputKind::buffer});
  }
  return state;
}

std::vector<at::Tensor> copies_of(const std::vector<NamedTensor>& state) {
  std::vector<at::Tensor> copies;
  for (const NamedTensor& one : state) copies.push_back(one.tensor.detach().clone());
  return copies;
}

TEST_P(Compile, TrainingStepsOfAConvolutionalNetwork) {
  torch::nn::Sequential model(torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 8, 3).padding(1)),
                              torch::nn::BatchNorm2d(8), torch::nn::ReLU(),
                              torch::nn::Conv2d(torch::nn::Conv2dOptions(8, 16, 3).stride(2)),
                              torch::nn::Flatten(), torch::nn::Linear(16 * 3 * 3, 10));
  model->to(torch::kDouble);
  torch::optim::SGD optimizer(model->parameters(),
                              torch::optim::SGDOptions(0.1).momentum(0.9).weight_decay(0.01));
  const auto step = [&](const at::Tensor& x, const at::Tensor& target) {
    optimizer.zero_grad();
    const at::Tensor loss = torch::nn::functional::cross_entropy(model->forward(x), target);
    loss.backward();
    optimizer.step();
    return loss.detach();
  };
  const at::Tensor x = doubles({4, 3, 8, 8}), target = at::tensor({1, 0, 9, 3}, at::kLong);
  step(x, target);  // there is momentum from the first step on
  const std::vector<NamedTensor> state = state_of(model, optimizer);
  TraceSettings settings;
  settings.named = state;
  const auto compiled = compile(trace(settings, step, x, target), by_backend("training"));

  const std::vector<at::Tensor> before = copies_of(state);
  const std::vector<at::Tensor> losses = {compiled(x, target), compiled(x, target)};
  const std::vector<at::Tensor> after = copies_of(state);
  {
    const torch::NoGradGuard no_grad;
    for (size_t i = 0; i < state.size(); ++i) at::Tensor(state[i].tensor).copy_(before[i]);
  }
  for (const at::Tensor& loss : losses) EXPECT_TRUE(close(loss, step(x, target)));
  for (size_t i = 0; i < state.size(); ++i)
    EXPECT_TRUE(close(after[i], state[i].tensor.detach())) << state[i].name;
  EXPECT_FALSE(at::equal(before[0], after[0]));
}

TEST_P(Compile, LossAndGradientsAsOneFunction) {
  auto model = network();
  TraceSettings settings;
  settings.named = named_tensors(*model);
  const auto loss_of = [&](const at::Tensor& x) { return model->forward(x).square().mean(); };
  const auto captured = trace(settings, loss_of, doubles({4, 5}));
  const CompiledGradient compiled = compile(captured.grad(), by_backend("training"));
  const at::Tensor x = doubles({4, 5}), loss = loss_of(x);
  const auto expected = torch::autograd::grad({loss}, model->parameters());
  const auto [value, gradients] = compiled({x});
  EXPECT_TRUE(close(value, loss.detach()));
  ASSERT_EQ(gradients.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(close(gradients[i], expected[i])) << i;
  EXPECT_THAT(compiled.source(), HasSubstr("grad_0_weight"));
}

TEST_P(Compile, StructuredArgumentsAndResults) {
  const auto program = [](const std::pair<at::Tensor, at::Tensor>& xy, double factor) {
    return std::map<std::string, at::Tensor>{{"product", xy.first * xy.second * factor},
                                             {"largest", xy.first.argmax(1)}};
  };
  const std::pair<at::Tensor, at::Tensor> xy = {leaf({3, 4}), leaf({4})};
  const auto compiled = compile(trace(program, xy, 2.0), by_backend());
  const auto actual = compiled(xy, 2.0), expected = program(xy, 2.0);
  EXPECT_TRUE(close(actual.at("product"), expected.at("product")));
  EXPECT_TRUE(at::equal(actual.at("largest"), expected.at("largest")));
  EXPECT_FALSE(actual.at("largest").requires_grad());
  const auto ours = torch::autograd::grad({actual.at("product").sum()}, {xy.first, xy.second});
  const auto theirs = torch::autograd::grad({expected.at("product").sum()}, {xy.first, xy.second});
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(close(ours[i], theirs[i]));
  EXPECT_THAT(user_error([&] { compiled(xy, 3.0); }), Optional(HasSubstr("expected arguments")));
}

TEST_P(Compile, WhatAProgramWritesToItsArguments) {
  const auto program = [](const at::Tensor& x, const at::Tensor& total) {
    total.add_(x);
    return total * 2;
  };
  const auto compiled = compile(trace(program, doubles({3}), doubles({3})), by_backend());
  const at::Tensor x = leaf({3}), total = at::ones({3}, torch::kDouble);
  const at::Tensor y = compiled(x, total);
  EXPECT_TRUE(close(total, x.detach() + 1));
  EXPECT_TRUE(close(y.detach(), total * 2));
  y.sum().backward();
  EXPECT_TRUE(close(x.grad(), at::full({3}, 2, torch::kDouble)));
}

TEST_P(Compile, ErrorsNameTheInput) {
  auto model = network();
  model->eval();
  const auto compiled = compile(trace(model, doubles({4, 5})), by_backend("network"));
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
                compile(trace([](at::Tensor x) { return at::bincount(x); }, at::tensor({1, 2})),
                        by_backend());
              }),
              Optional(HasSubstr("no code for 'aten::bincount")));
}

TEST(CompileByMosaic, TellsHowLongKernelsTook) {
  auto model = network();
  model->eval();
  const auto captured = trace(model, doubles({4, 5}));
  const at::Tensor x = doubles({4, 5});
  const mosaic::Profile profile = compile(captured, {.backend = Mosaic{}}).profile({x});
  ASSERT_FALSE(profile.empty());
  for (const mosaic::TimedKernel& kernel : profile) EXPECT_LE(kernel.start, kernel.end);
  EXPECT_THAT(mosaic::table(profile), HasSubstr("addmm"));
  EXPECT_THAT(user_error([&] { compile(captured).profile({x}); }),
              Optional(HasSubstr("the cpp backend has no kernels to time")));
}

// exp is what the product does with its sums, unless those are kept. The backward has other values.
TEST(CompileByMosaic, TakesChoicesByName) {
  const auto program = [](const at::Tensor& x, const at::Tensor& w, const at::Tensor& v) {
    return x.mm(w).exp().mm(v);
  };
  const at::Tensor x = leaf({9, 33}), w = leaf({33, 40}), v = leaf({40, 20});
  const auto captured = trace(program, x, w, v);
  const auto by_choices = [&](const std::string& text) {
    return compile(captured, {.backend = Mosaic{.choices = mosaic::parse_choices(text)}});
  };
  const auto kept = by_choices("mm: keep");
  const std::vector<at::Tensor> inputs = {x, w, v};
  EXPECT_EQ(kept.profile(inputs).size(), by_choices("").profile(inputs).size() + 1);
  const at::Tensor dy = doubles({9, 20});
  EXPECT_TRUE(close(kept(x, w, v), program(x, w, v)));
  const auto ours = torch::autograd::grad({kept(x, w, v)}, inputs, {dy});
  const auto theirs = torch::autograd::grad({program(x, w, v)}, inputs, {dy});
  for (size_t i = 0; i < inputs.size(); ++i) EXPECT_TRUE(close(ours[i], theirs[i])) << i;
}

TEST(CompileByMosaic, RefusesChoicesThatCannotBe) {
  const auto captured = trace([](const at::Tensor& x) { return x.mm(x).exp(); }, doubles({32, 32}));
  const auto refusal = [&](const std::string& text) {
    const Mosaic options = {.choices = mosaic::parse_choices(text)};
    return user_error([&] { compile(captured, {.backend = options}); });
  };
  EXPECT_THAT(refusal("nobody: keep"), Optional(HasSubstr("no value is called 'nobody'; there")));
  EXPECT_THAT(refusal("mm: keep, winograd 2"),
              Optional(HasSubstr("'mm' cannot be computed by Winograd's algorithm")));
}

// Operations composit has no definition of, with several results and arguments of many kinds.
std::vector<at::Tensor> undefined_here(const at::Tensor& x, const at::Tensor& n) {
  const at::Tensor bins = at::_histogramdd_bin_edges(x.slice(1, 0, 2), {2, 3})[1];
  return {at::bincount(n, n.to(torch::kDouble), 6), bins, at::ormqr(x, x[0], x).exp()};
}

TEST(CompileByCpp, LinkedWithLibTorch) {
  const at::Tensor x = doubles({4, 4}), n = at::tensor({3, 1, 3, 5});
  const auto captured = trace(undefined_here, x, n);
  EXPECT_THAT(user_error([&] { compile(captured); }), Optional(HasSubstr("aten::bincount")));
  const auto compiled = compile(captured, {.name = "linked", .backend = Cpp{.link_aten = true}});
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

TEST(CompileByCpp, WrittenForAMachineWithLibTorch) {
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
  const composit::TensorFunction row = [](const Tensors& x) {
    return Tensors{composit::sum(x[0] * x[1]), composit::exp(x[0])};
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
      compile([](const Tensors& x) { return Tensors{x[0] * x[1]}; }, by_backend());
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
