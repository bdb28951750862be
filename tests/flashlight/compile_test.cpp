// Captured programs as compiled C++, called with LibTorch's tensors and differentiated by autograd,
// against LibTorch.
#include "flashlight/compile.h"

#include <gmock/gmock.h>
#include <torch/nn.h>
#include <torch/optim.h>

#include <thread>

#include "composit/eval/evaluate.h"
#include "composit/ir/print.h"
#include "flashlight/mosaic/choices.h"
#include "flashlight/toolchain/process.h"
#include "flashlight/trace.h"
#include "tests/flashlight/by_backend.h"
#include "tests/io/temporary_folder.h"
#include "tests/user_error.h"

namespace flashlight {
namespace {

using composit::user_error;
using test::close;
using test::doubles;
using test::leaf;
using testing::HasSubstr;
using testing::Optional;

class Compile : public test::ByBackend {};
INSTANTIATE_TEST_SUITE_P(Backends, Compile, test::kBackends, test::name_of_backend);

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

// The state that a training step may change: parameters, statistics, the optimizer's momentum.
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

// Operators in place keep the dtype of what they write, whatever the functional ones give.
TEST_P(Compile, WritesInPlaceKeepTheirDtype) {
  const auto program = [](const at::Tensor& x) {
    at::Tensor y = x.clone(), z = x.clone(), n = x.to(at::kInt), less = x.clone();
    y *= at::scalar_tensor(0.5, at::kDouble);          // a number
    z += x.to(at::kDouble) * 0.25;                     // computed in float64
    n += at::arange(x.numel(), at::kLong).view_as(x);  // computed in int64
    less.lt_(z);                                       // gives bool
    return std::vector<at::Tensor>{y, z, n, less};
  };
  const at::Tensor x = at::arange(-3, 3, at::kFloat).view({2, 3});  // all results are exact
  const auto captured = trace(program, x);
  EXPECT_THAT(composit::print(captured.graph()), HasSubstr("= aten::mul.Tensor"));
  const auto received = compile(captured, by_backend())(x + 1), expected = program(x + 1);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(received[i].dtype(), expected[i].dtype()) << i;
    EXPECT_TRUE(at::equal(received[i], expected[i])) << i;
  }
  const auto gradient = [&](const auto& function) {
    const at::Tensor at = (x + 1).requires_grad_();
    const auto results = function(at);
    return torch::autograd::grad({(results[0] * results[1]).sum()}, {at})[0];
  };
  EXPECT_TRUE(at::equal(gradient(compile(captured, by_backend())), gradient(program)));
}

// The graph has the memory and where in it the two lie: not what the functional operator computes.
TEST_P(Compile, WritesToMemoryThatIsReadAreRefused) {
  const auto captured = trace(
      [](const at::Tensor& x) {
        at::Tensor y = x.clone();
        y.slice(1, 0, 4, 2).add_(y.select(0, 0).slice(0, 0, 2));
        return y.sum();
      },
      doubles({2, 4}));
  const std::string what = "aten::add_.Tensor";
  EXPECT_THAT(user_error([&] { compile(captured, by_backend()); }), Optional(HasSubstr(what)));
  EXPECT_THAT(user_error([&] {
                captured.evaluate({doubles({2, 4})}, composit::reference());
              }),
              Optional(HasSubstr(what)));
  EXPECT_THAT(user_error([&] { captured.grad(0, {"input_0"}); }), Optional(HasSubstr(what)));
}

// In the memory that the caller has, which autograd is told of.
TEST_P(Compile, WhatIsWrittenStaysWhereItIs) {
  const auto program = [](const at::Tensor& x, const at::Tensor& total) {
    total.add_(x);
    return total * 2;
  };
  const auto compiled = compile(trace(program, doubles({3}), doubles({3})), by_backend());
  const at::Tensor columns = at::ones({3, 2}, torch::kDouble).t();
  for (const at::Tensor& total : {at::ones({3}, torch::kDouble), columns[1]}) {
    const void* const data = total.const_data_ptr();
    const auto version = total._version();
    const at::Tensor x = doubles({3});
    compiled(x, total);
    EXPECT_TRUE(close(total, x + 1));
    EXPECT_EQ(total.const_data_ptr(), data);
    EXPECT_EQ(total._version(), version + 1);
  }
  EXPECT_TRUE(close(columns[0], at::ones({3}, torch::kDouble)));
}

// What is written through one would be read through the other, and was not when it was captured.
TEST_P(Compile, InputsThatShareMemory) {
  const auto program = [](const at::Tensor& x, const at::Tensor& total) { total.add_(x); };
  const auto compiled = compile(trace(program, doubles({50}), doubles({50})), by_backend());
  for (const int64_t shift : {0, 1, 49}) {
    const at::Tensor memory = doubles({50 + shift}), x = memory.narrow(0, 0, 50),
                     total = memory.narrow(0, shift, 50), before = memory.clone();
    EXPECT_THAT(user_error([&] { compiled(x, total); }), Optional(HasSubstr("overlap in memory")));
    EXPECT_TRUE(at::equal(memory, before)) << shift;
  }
  const at::Tensor memory = doubles({100}), x = memory.narrow(0, 0, 50),
                   total = memory.narrow(0, 50, 50), expected = total + x;
  compiled(x, total);
  EXPECT_TRUE(close(total, expected));
}

TEST_P(Compile, NothingIsWrittenInACallThatThrows) {
  const auto program = [](const at::Tensor& x, const at::Tensor& total) {
    total.add_(x);
    return (x.sum() > 0).item<bool>() ? total * 2 : total * 3;
  };
  const at::Tensor x = at::ones({3}, torch::kDouble), total = at::ones({3}, torch::kDouble);
  const auto compiled = compile(trace(program, x, total.clone()), by_backend());
  EXPECT_THAT(user_error([&] { compiled(-x, total); }), Optional(HasSubstr("guard")));
  EXPECT_TRUE(close(total, x));
  EXPECT_TRUE(close(compiled(x, total), x * 4));
  EXPECT_TRUE(close(total, x * 2));
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
  const Profile profile = compile(captured, {.backend = Mosaic{}}).profile({x});
  ASSERT_FALSE(profile.empty());
  for (const TimedKernel& kernel : profile) EXPECT_LE(kernel.start, kernel.end);
  EXPECT_THAT(table(profile), HasSubstr("addmm"));
  EXPECT_THAT(user_error([&] { compile(captured).profile({x}); }),
              Optional(HasSubstr("expected a backend that times its kernels")));
}

// exp is what the product does with its sums, unless those are kept. The backward has other values.
TEST(CompileByMosaic, TakesChoicesByName) {
  const auto program = [](const at::Tensor& x, const at::Tensor& w, const at::Tensor& v) {
    return x.mm(w).exp().mm(v);
  };
  // Small, for sums of exponentials of large numbers cancel.
  const at::Tensor x = (0.1 * doubles({9, 33})).requires_grad_(), w = leaf({33, 40}),
                   v = leaf({40, 20});
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

}  // namespace
}  // namespace flashlight
