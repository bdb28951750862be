// Programs for CUDA that call LibTorch, compiled for the host: their kernels run in the host's
// machine of tests/flashlight/cuda, calls of LibTorch on the CPU.
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>
#include <torch/nn.h>
#include <torch/optim.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "composit/ops/functions.h"
#include "flashlight/cuda/backend.h"
#include "flashlight/gradient.h"
#include "flashlight/package/shipped.h"
#include "flashlight/toolchain/library.h"
#include "flashlight/trace.h"
#include "tests/flashlight/cuda/watched.h"
#include "tests/flashlight/small_models.h"

namespace flashlight {
namespace {

using test::difference;
using test::tensors_of;
using zoo::Subject;
using zoo::Tensors;
using Entry = void(const Tensors&, Tensors&);

// LibTorch's memory is what kernels may access, from when it is allocated until it is freed.
class WatchedAllocator : public c10::Allocator {
 public:
  explicit WatchedAllocator(const cuda::test::Watch& watch)
      : watch_(watch), inner_(c10::GetCPUAllocator()) {
    c10::SetCPUAllocator(this, kPriority);
  }
  ~WatchedAllocator() override { c10::SetCPUAllocator(inner_, kPriority); }

  c10::DataPtr allocate(size_t bytes) override {
    auto* block = new Block{inner_->allocate(bytes), watch_.forbid};
    void* const memory = block->memory.get();
    watch_.allow(memory, bytes);
    return {memory, block, &release, c10::kCPU};
  }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

 private:
  struct Block {
    c10::DataPtr memory;
    void (*forbid)(const void*);
  };
  static void release(void* context) {
    const auto* block = static_cast<Block*>(context);
    block->forbid(block->memory.get());
    delete block;
  }

  static constexpr uint8_t kPriority = 100;
  const cuda::test::Watch& watch_;
  c10::Allocator* inner_;
};

class LinkedProgram {
 public:
  explicit LinkedProgram(const composit::Graph& graph)
      : library_(build(
            cuda::linked_source_of(graph, {.name = "program", .called = cuda::schema_of_call}))),
        watch_(library_),
        entry_(library_.symbol<Entry>("entry")) {}

  // Results are copies: their memory was the watched allocator's.
  Tensors operator()(const Tensors& inputs) const {
    Tensors results;
    watch_.forget();
    for (const at::Tensor& input : inputs)
      watch_.allow(input.storage().data(), input.storage().nbytes());
    {
      WatchedAllocator allocator(watch_);
      entry_(inputs, results);
    }
    EXPECT_EQ(watch_.fault(), "");
    const cuda::test::Sectors sectors = watch_.sectors();
    std::cout << sectors.reads.touched << " sectors read, " << sectors.reads.ratio()
              << " times the fewest; " << sectors.writes.touched << " written, "
              << sectors.writes.ratio() << " times\n";
    for (at::Tensor& result : results) result = result.clone();
    return results;
  }

 private:
  static toolchain::Library build(const cuda::CudaSource& source) {
    toolchain::Sources sources;
    sources.headers = {package::shipped_file("flashlight_cuda.cuh"),
                       package::shipped_file("flashlight_cuda_aten.cuh"),
                       {"program.h", source.header}};
    for (const auto& [name, text] : cuda::test::machine_headers())
      sources.headers.push_back({name, text});
    sources.units.push_back(
        {"program.cpp",
         "#include \"host_cuda.h\"\n" + cuda::test::watched(source.text) +
             "\nextern \"C\" void entry(const std::vector<at::Tensor>& inputs, "
             "std::vector<at::Tensor>& results) {\n  results = program(inputs);\n}\n"});
    std::vector<std::string> flags = {"-std=c++20", "-O1"};
    for (const char* folder : {FLASHLIGHT_TORCH_INCLUDES})
      flags.push_back("-I" + std::string(folder));
    return toolchain::Library::load(sources, {.flags = flags});
  }

  toolchain::Library library_;
  cuda::test::Watch watch_;
  Entry* entry_;
};

class CudaModels : public testing::TestWithParam<Subject> {};

// Every architecture at a width that runs on the host: its loss and all gradients.
TEST_P(CudaModels, loss_and_gradients_are_libtorchs) {
  const Subject& subject = GetParam();
  const bool is_nightly = std::getenv("FLASHLIGHT_FUZZ_PROGRAMS") != nullptr;
  if (!is_nightly && subject.name != "bert" && subject.name != "resnet_training")
    GTEST_SKIP() << "minutes of kernels on the host: the nightly preset runs this";
  zoo::to_double(subject);
  const auto inputs = [&](uint64_t seed) { return zoo::to_double(subject.inputs(seed)); };
  const auto captured = zoo::capture_loss(subject, inputs(1));
  const Gradient gradient = captured.grad();
  const LinkedProgram program(gradient.graph());
  const auto expected = gradient(inputs(2));
  const Tensors results = program(tensors_of(captured, gradient.graph(), inputs(2)));
  ASSERT_FALSE(results.empty());
  // The noise levels are products of up to 1,000 numbers of float32, which a kernel rounds one by
  // one; LibTorch has the products in double on the CPU.
  const double tolerance =
      subject.name == "stable_diffusion" ? 1e-6 : std::max(test::compiled_tolerance(subject), 1e-9);
  EXPECT_LT(difference({results[0]}, {expected.loss}), tolerance);
  EXPECT_LT(difference({results.begin() + 1, results.end()}, expected.gradients), tolerance);
}

// Products of complex numbers are LibTorch's, what lies between them kernels; an input may be a
// view whose signs LibTorch has not changed yet.
TEST(CudaComplex, ValuesAreLibTorchs) {
  using composit::apply_one;
  const auto type = composit::tensor_type(composit::DType::complex64, {3, 3});
  const composit::LazyTensor x = composit::input("x", type), y = composit::input("y", type);
  const composit::LazyTensor product =
      apply_one("aten::matmul", {x, composit::exp(apply_one("aten::conj", {y}))});
  composit::Graph::Parts parts;
  parts.inputs = {x, y};
  parts.outputs = {product, apply_one("aten::abs", {product * x})};
  const LinkedProgram program(composit::Graph(std::move(parts)));
  torch::manual_seed(1);
  const at::Tensor a = at::randn({3, 3}, at::kComplexFloat),
                   b = at::conj(at::randn({3, 3}, at::kComplexFloat));
  const Tensors results = program({a, b});
  const at::Tensor expected = at::matmul(a, at::exp(at::conj(b)));
  ASSERT_EQ(results[0].scalar_type(), at::kComplexFloat);
  EXPECT_LT(at::abs(results[0] - expected).max().item<float>(), 1e-5);
  EXPECT_LT(at::abs(results[1] - at::abs(expected * a)).max().item<float>(), 1e-4);
}

// A step of SGD with momentum is one program that writes the parameters and the velocities, as
// LibTorch's optimizer does: two of them, since velocities are zero in the first.
TEST(CudaTraining, StepsAreLibTorchs) {
  torch::manual_seed(1);
  const auto parameters = [] {
    return Tensors{at::randn({8, 5}, at::kDouble), at::randn({8}, at::kDouble),
                   at::randn({1, 8}, at::kDouble)};
  };
  const Tensors weights = parameters(), x = {at::randn({16, 5}, at::kDouble)};
  const at::Tensor target = at::sin(x[0].sum(1, true));
  Tensors trained;  // by LibTorch
  for (const at::Tensor& weight : weights) trained.push_back(weight.clone().requires_grad_());
  const auto loss_of = [](const Tensors& w, const at::Tensor& at_x, const at::Tensor& expected) {
    return at::mse_loss(at::linear(at::tanh(at::linear(at_x, w[0], w[1])), w[2]), expected);
  };

  // The arguments are parameters, then velocities, x and target.
  constexpr size_t kCount = 3;
  constexpr double kRate = 0.1, kMomentum = 0.9;
  const auto step = [&](const Tensors& arguments) {
    Tensors w;
    for (size_t i = 0; i < kCount; ++i) w.push_back(arguments[i].detach().clone().requires_grad_());
    const at::Tensor loss = loss_of(w, arguments[2 * kCount], arguments[2 * kCount + 1]);
    loss.backward();
    const at::NoGradGuard without_gradients;
    for (size_t i = 0; i < kCount; ++i) {
      arguments[kCount + i].mul_(kMomentum).add_(w[i].grad());
      arguments[i].add_(arguments[kCount + i], -kRate);
    }
    return loss.detach();
  };
  const auto fresh = [&] {
    Tensors arguments;
    for (const at::Tensor& weight : weights) arguments.push_back(weight.clone());
    for (const at::Tensor& weight : weights) arguments.push_back(at::zeros_like(weight));
    arguments.push_back(x[0]);
    arguments.push_back(target);
    return arguments;
  };
  const auto captured = trace(step, fresh());
  const LinkedProgram program(captured.graph());
  Tensors arguments = fresh();
  const Tensors bound = tensors_of(captured, captured.graph(), arguments);

  torch::optim::SGD optimizer(trained, torch::optim::SGDOptions(kRate).momentum(kMomentum));
  for (int i = 0; i < 2; ++i) {
    optimizer.zero_grad();
    const at::Tensor expected = loss_of(trained, x[0], target);
    expected.backward();
    optimizer.step();
    const Tensors results = program(bound);
    EXPECT_LT(difference({results.at(0)}, {expected.detach()}), 1e-12);
    for (size_t k = 0; k < kCount; ++k)
      EXPECT_LT(difference({arguments[k]}, {trained[k].detach()}), 1e-12) << "parameter " << k;
  }
}

// The program writes an input that LibTorch would differentiate by; tensors may have no elements.
TEST(CudaTraining, WritesParameters) {
  const auto step = [](const Tensors& arguments) {
    const at::NoGradGuard without_gradients;
    arguments[0].add_(at::mm(arguments[1], arguments[2]), -0.5);
    return arguments[0].sum();
  };
  const auto captured = trace(step, Tensors{at::zeros({2, 2}), at::ones({2, 0}), at::ones({0, 2})});
  const LinkedProgram program(captured.graph());
  const at::Tensor weight = at::eye(2).requires_grad_();
  Tensors arguments = {weight, at::ones({2, 0}), at::ones({0, 2})};
  const Tensors results = program(tensors_of(captured, captured.graph(), arguments));
  EXPECT_TRUE(at::equal(weight, at::eye(2)));
  EXPECT_EQ(results.at(0).item<float>(), 2);
  EXPECT_FALSE(results.at(0).requires_grad());
}

INSTANTIATE_TEST_SUITE_P(Small, CudaModels, testing::ValuesIn(zoo::small_models()),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace flashlight
