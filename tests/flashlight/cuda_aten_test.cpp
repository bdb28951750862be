// Programs for CUDA that call LibTorch, compiled for the host: their kernels run in the host's
// machine of tests/flashlight/cuda, calls of LibTorch on the CPU.
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "composit/ops/functions.h"
#include "flashlight/cuda/backend.h"
#include "flashlight/gradient.h"
#include "flashlight/package/shipped.h"
#include "flashlight/toolchain/library.h"
#include "tests/flashlight/small_models.h"

namespace flashlight {
namespace {

using test::difference;
using test::tensors_of;
using zoo::Subject;
using zoo::Tensors;
using Entry = void(const Tensors&, Tensors&);

std::string read(const std::string& path) {
  std::ifstream stream(path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

class LinkedProgram {
 public:
  explicit LinkedProgram(const composit::Graph& graph)
      : library_(build(
            cuda::linked_source_of(graph, {.name = "program", .called = cuda::schema_of_call}))),
        entry_(library_.symbol<Entry>("entry")) {}

  Tensors operator()(const Tensors& inputs) const {
    Tensors results;
    entry_(inputs, results);
    return results;
  }

 private:
  static toolchain::Library build(const cuda::CudaSource& source) {
    toolchain::Sources sources;
    sources.headers = {
        package::shipped_file("flashlight_cuda.cuh"),
        package::shipped_file("flashlight_cuda_aten.cuh"),
        {"host_cuda.h", read(std::string(FLASHLIGHT_HOST_CUDA) + "/host_cuda.h")},
        {"host_memory.h", read(std::string(FLASHLIGHT_HOST_CUDA) + "/host_memory.h")},
        {"program.h", source.header}};
    sources.units.push_back(
        {"program.cpp",
         "#include \"host_cuda.h\"\n" + source.text +
             "\nextern \"C\" void entry(const std::vector<at::Tensor>& inputs, "
             "std::vector<at::Tensor>& results) {\n  results = program(inputs);\n}\n"});
    std::vector<std::string> flags = {"-std=c++20", "-O1", "-fwrapv"};
    for (const char* folder : {FLASHLIGHT_TORCH_INCLUDES})
      flags.push_back("-I" + std::string(folder));
    return toolchain::Library::load(sources, {.flags = flags});
  }

  toolchain::Library library_;
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

INSTANTIATE_TEST_SUITE_P(Small, CudaModels, testing::ValuesIn(zoo::small_models()),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace flashlight
