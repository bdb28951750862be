// Saved modules: parameters, buffers, submodules; what they write; captures of them.
#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "composit/ad/chain_rule.h"
#include "composit/eval/evaluate.h"
#include "composit/ir/parse.h"
#include "composit/ir/print.h"
#include "composit/ir/verify.h"
#include "composit/ops/functions.h"
#include "flashlight/capture.h"
#include "flashlight/cpp/backend.h"
#include "tests/agreement.h"
#include "tests/frontends/torchscript/compare.h"
#include "tests/user_error.h"
#include "tracer/convert.h"

namespace flashlight::test {
namespace {

using c10::IValue;
using composit::Array;
using composit::Graph;
using composit::test::difference;
using Arrays = std::vector<Array>;

// Removed at the end of the process.
const std::filesystem::path& folder() {
  struct Folder {
    std::filesystem::path path = std::filesystem::temp_directory_path() /
                                 ("flashlight_torchscript_" + std::to_string(getpid()));
    Folder() { std::filesystem::create_directories(path); }
    ~Folder() { std::filesystem::remove_all(path); }
  };
  static const Folder made;
  return made.path;
}

Array array_of(const at::Tensor& tensor) { return tracer::to_array(tensor.detach().contiguous()); }

// The inputs of a run of the graph: the example, then what inputs hold.
Arrays inputs_of(const composit::SavedCapture& capture) {
  Arrays inputs = capture.example_inputs;
  for (size_t i = inputs.size(); i < capture.graph.inputs().size(); ++i)
    inputs.push_back(capture.graph.inputs()[i].node->held());
  return inputs;
}

void expect_like(const Arrays& values, const Arrays& expected, const char* by) {
  ASSERT_GE(values.size(), expected.size()) << by;
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(difference(values[i], expected[i], 64), "") << by << ", result " << i;
}

// ---- made here ----------------------------------------------------------------------------------

// x -> two linear maps with a branch between, and a count of the calls.
torch::jit::Module two_layers() {
  torch::jit::Module inner("Inner"), outer("Outer");
  inner.register_parameter("weight", random({3, 3}, 4), false);
  inner.define(
      "def forward(self, x: Tensor) -> Tensor:\n    return torch.matmul(x, self.weight)\n");
  outer.register_module("inner", inner);
  outer.register_parameter("bias", random({3}, 9), false);
  outer.register_buffer("calls", at::zeros({}, at::kDouble));
  outer.define(R"(
def forward(self, x: Tensor) -> Tensor:
    self.calls += 1
    y = self.inner.forward(x) + self.bias
    if bool(y.sum() > 0):
        y = self.inner.forward(y) * 2
    return y * self.calls
)");
  return outer;
}

TEST(Modules, parameters_are_inputs_by_name) {
  const auto path = folder() / "two_layers.pt";
  two_layers().save(path);
  const auto script = torchscript::load(path);
  EXPECT_THAT(script.functions(), testing::ElementsAre("forward"));
  for (uint64_t seed : {0, 3}) {
    const at::Tensor x = random({2, 3}, seed);
    const Graph graph = script.graph("forward", {x});
    composit::verify(graph);
    EXPECT_EQ(composit::parse(composit::print(graph)), graph);
    std::vector<std::string> names;
    for (const auto& input : graph.inputs()) names.push_back(composit::input_name(*input.node));
    EXPECT_THAT(names, testing::ElementsAre("x", "calls", "inner.weight", "bias"));
    ASSERT_EQ(graph.mutations().size(), 1);
    EXPECT_EQ(composit::input_name(*graph.mutations()[0].target.node), "calls");

    torch::jit::Module eager = two_layers();
    const Array expected = array_of(eager.forward({x}).toTensor());
    Arrays inputs = {array_of(x)};
    for (size_t i = 1; i < 4; ++i) inputs.push_back(graph.inputs()[i].node->held());
    for (const composit::Backend* backend : {&composit::reference(), &cpp::backend()}) {
      const Arrays values = composit::evaluate(graph, inputs, *backend);
      ASSERT_EQ(values.size(), 2);
      EXPECT_EQ(difference(values[0], expected), "");
      EXPECT_EQ(difference(values[1], array_of(eager.attr("calls").toTensor())), "");
    }
  }
  EXPECT_THAT(composit::user_error([&] {
                script.function("forward")({composit::input(
                    "x", composit::tensor_type(composit::DType::float64, {2, 3}))});
              }).value_or(""),
              testing::HasSubstr("'forward' writes an argument or a buffer"));
}

TEST(Modules, gradients_by_parameters) {
  const auto path = folder() / "two_layers.pt";
  two_layers().save(path);
  const at::Tensor x = random({2, 3});
  const Graph graph = torchscript::load(path).graph("forward", {x});
  const auto gradients =
      composit::grad(composit::sum(graph.outputs()[0]), {graph.inputs()[2], graph.inputs()[3]});
  torch::jit::Module eager = two_layers();
  for (const at::Tensor& parameter : eager.parameters()) parameter.requires_grad_();
  eager.forward({x}).toTensor().sum().backward();
  const composit::Values values = {{graph.inputs()[0], array_of(x)}};
  const Arrays ours = composit::evaluate(gradients, values);
  EXPECT_EQ(difference(ours[0],
                       array_of(eager.attr("inner").toModule().attr("weight").toTensor().grad())),
            "");
  EXPECT_EQ(difference(ours[1], array_of(eager.attr("bias").toTensor().grad())), "");
}

TEST(Modules, captures_are_saved_and_replayed) {
  const auto path = folder() / "two_layers.pt";
  two_layers().save(path);
  const auto target = folder() / "two_layers";
  composit::save(torchscript::load(path).capture("forward", {random({2, 3})}), target);
  const composit::SavedCapture capture = composit::load(target);
  EXPECT_EQ(capture.weights.size(), 3);
  expect_like(composit::evaluate(capture.graph,
                                 [&] {
                                   Arrays inputs = capture.example_inputs;
                                   for (const char* name : {"calls", "inner.weight", "bias"})
                                     inputs.push_back(capture.weights.at(name));
                                   return inputs;
                                 }()),
              capture.example_outputs, "reference");
  const auto replayed = CaptureBase::load(target);
  const auto results = replayed.replay(replayed.example_arguments());
  EXPECT_TRUE(at::allclose(results.at(0), replayed.example_results().at(0)));
}

// Numbers are tensors there; LibTorch gives the results, of recursive functions the definitions.
TEST(Modules, captures_of_functions) {
  const auto script = torchscript::compile(R"(
def power(x: Tensor, n: int) -> Tensor:
    return x if n == 1 else x * power(x, n - 1)
)");
  const auto expect = [&](const composit::SavedCapture& capture, const Arrays& expected) {
    ASSERT_EQ(capture.example_outputs.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_EQ(difference(capture.example_outputs[i], expected[i]), "");
    expect_like(composit::evaluate(capture.graph, inputs_of(capture), cpp::backend()), expected,
                "C++");
  };
  expect(torchscript::compile("def f(x: float, n: int):\n    while x > 1.0:\n        x = x / 2\n"
                              "        n += 1\n    return x, n\n")
             .capture("f", {number(5), 3}),
         {array_of(number(0.625)), array_of(at::scalar_tensor(6, at::kLong))});
  const at::Tensor x = random({3});
  expect(script.capture("power", {x, 3}), {array_of(x * x * x)});
}

// ---- saved by Python ----------------------------------------------------------------------------

struct Saved {
  std::string file;
  std::vector<IValue> arguments;
};

void PrintTo(const Saved& saved, std::ostream* out) { *out << saved.file; }

class SavedModules : public testing::TestWithParam<Saved> {
 protected:
  static void SetUpTestSuite() {
    static const int made = std::system(
        (std::string(FLASHLIGHT_PYTHON) + " " + FLASHLIGHT_SAVE_MODULES + " " + folder().string())
            .c_str());
    ASSERT_EQ(made, 0) << "Python could not save the modules";
  }
};

TEST_P(SavedModules, are_like_torch) {
  const auto script = torchscript::load(folder() / (GetParam().file + ".pt"));
  const composit::SavedCapture capture = script.capture("forward", GetParam().arguments);
  composit::verify(capture.graph);
  EXPECT_EQ(composit::parse(composit::print(capture.graph)), capture.graph);
  const Arrays inputs = inputs_of(capture);
  expect_like(composit::evaluate(capture.graph, inputs), capture.example_outputs, "reference");
  expect_like(composit::evaluate(capture.graph, inputs, cpp::backend()), capture.example_outputs,
              "C++");
}

at::Tensor floats(const std::vector<int64_t>& sizes) { return random(sizes).to(at::kFloat); }

INSTANTIATE_TEST_SUITE_P(Python, SavedModules,
                         testing::Values(Saved{"convolutions", {floats({2, 3, 4, 4})}},
                                         Saved{"convolutions_traced", {floats({2, 3, 4, 4})}},
                                         Saved{"attention", {floats({2, 5, 8})}},
                                         Saved{"attention", {floats({1, 3, 8})}},
                                         Saved{"attention_traced", {floats({2, 5, 8})}},
                                         Saved{"recurrent", {floats({3, 2, 4})}},
                                         Saved{"recurrent", {floats({20, 2, 4})}},
                                         Saved{"decisions", {floats({3, 4})}},
                                         Saved{"decisions", {floats({3, 4}), "b", 0.5}},
                                         Saved{"encoder", {floats({2, 5, 8})}}));

// The module writes the count of its calls, statistics of batch norm.
TEST_F(SavedModules, write_buffers) {
  const auto path = folder() / "decisions.pt";
  const at::Tensor x = floats({3, 4});
  const composit::SavedCapture capture = torchscript::load(path).capture("forward", {x});
  torch::jit::Module eager = torch::jit::load(path);
  eager.forward({x});
  const Arrays values = composit::evaluate(capture.graph, inputs_of(capture));
  const auto& mutations = capture.graph.mutations();
  EXPECT_EQ(mutations.size(), 4);
  for (size_t i = 0; i < mutations.size(); ++i) {
    const std::string name = composit::input_name(*mutations[i].target.node);
    const Array& written = values[capture.example_outputs.size() + i];
    bool found = false;
    for (const auto& buffer : eager.named_buffers()) {
      if (buffer.name != name) continue;
      found = true;
      EXPECT_EQ(difference(written, array_of(buffer.value)), "") << name;
    }
    EXPECT_TRUE(found) << name;
  }
}

// Errors name the line of the user's own text, and the calls that lead there.
TEST_F(SavedModules, errors_name_the_lines_of_python) {
  const auto script = torchscript::load(folder() / "convolutions.pt");
  EXPECT_THAT(composit::user_error([&] {
                script.graph("forward", {floats({2, 5, 4, 4})});
              }).value_or(""),
              testing::AllOf(testing::HasSubstr("conv.py:"), testing::HasSubstr("[aten::conv2d] "),
                             testing::HasSubstr("called from "),
                             testing::HasSubstr("save_modules.py:27:")));
}

}  // namespace
}  // namespace flashlight::test
