// Every architecture of examples/models in float64: values by our own definitions, gradients by
// composit/ad, both against LibTorch.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "composit/eval/evaluate.h"
#include "composit/passes/pass.h"
#include "examples/zoo/zoo.h"
#include "flashlight/aten_backend.h"
#include "flashlight/cpp/backend.h"
#include "tests/flashlight/small_models.h"
#include "tracer/convert.h"

namespace flashlight {
namespace {

using test::compiled_tolerance;
using test::difference;
using test::reference_tolerance;
using test::tensors_of;
using zoo::Subject;
using zoo::Tensors;

at::Tensor run(const composit::Backend& backend, const composit::Graph& graph,
               const Tensors& inputs) {
  std::vector<composit::Array> arrays;
  for (const at::Tensor& input : inputs) arrays.push_back(tracer::to_array(input));
  return tracer::to_tensor(composit::evaluate(graph, arrays, backend)[0]);
}

class Models : public testing::TestWithParam<Subject> {
 protected:
  void SetUp() override { zoo::to_double(GetParam()); }
  Tensors inputs(uint64_t seed) const { return zoo::to_double(GetParam().inputs(seed)); }
};

TEST_P(Models, values_by_definitions_are_torchs) {
  const Subject& subject = GetParam();
  const auto captured = zoo::capture_loss(subject, inputs(1));
  const Tensors actual = captured.evaluate(inputs(2), composit::reference());
  EXPECT_LT(difference(actual, {zoo::loss_of(subject, inputs(2))}), reference_tolerance(subject));
}

TEST_P(Models, values_as_cpp_are_torchs) {
  const Subject& subject = GetParam();
  const auto captured = zoo::capture_loss(subject, inputs(1));
  const Tensors actual = captured.evaluate(inputs(2), cpp::backend());
  EXPECT_LT(difference(actual, {zoo::loss_of(subject, inputs(2))}), compiled_tolerance(subject));
}

TEST_P(Models, gradients_as_cpp_are_autograds) {
  const Subject& subject = GetParam();
  for (const char* large : {"unet", "vae", "stable_diffusion"})
    if (subject.name == large) GTEST_SKIP() << "minutes of compiling, and no operation of its own";
  const Gradient gradient = zoo::capture_loss(subject, inputs(1)).grad();
  EXPECT_LT(difference(gradient.evaluate(inputs(2), cpp::backend()).gradients,
                       gradient(inputs(2)).gradients),
            compiled_tolerance(subject));
}

TEST_P(Models, gradients_by_all_parameters_are_autograds) {
  const Subject& subject = GetParam();
  const Gradient gradient = zoo::capture_loss(subject, inputs(1)).grad();
  const Tensors leaves = zoo::named(subject, gradient.names());
  size_t parameters = 0;  // but for those of parts that do not run
  for (const NamedTensor& tensor : subject.named)
    parameters += tensor.tensor.requires_grad() && !tensor.name.starts_with("vae.encoder.") &&
                  !tensor.name.starts_with("vae.quant_conv.");
  EXPECT_EQ(leaves.size(), parameters);
  const Tensors expected =
      torch::autograd::grad({zoo::loss_of(subject, inputs(2))}, leaves, {}, {}, false, true);
  const auto by_definitions = gradient.evaluate(inputs(2), composit::reference());
  EXPECT_LT(difference(gradient(inputs(2)).gradients, expected), 1e-10);
  EXPECT_LT(difference(by_definitions.gradients, expected), compiled_tolerance(subject));
}

// Equal layers become calls of one region; LibTorch and the definitions run these, too.
TEST_P(Models, passes_keep_values) {
  const Subject& subject = GetParam();
  const auto captured = zoo::capture_loss(subject, inputs(1));
  composit::Passes passes = composit::default_passes();
  passes.push_back(composit::find_pass("outline_repeats"));
  const composit::Graph graph = composit::run_passes(captured.graph(), passes);
  const auto calls = std::count_if(
      graph.nodes().begin(), graph.nodes().end(),
      [](const composit::NodePtr& node) { return node->op().str() == "composit::call"; });
  EXPECT_GE(calls, subject.name == "bert" ? 2 : 0);  // two encoder layers
  const Tensors bound = tensors_of(captured, captured.graph(), inputs(2));
  const at::Tensor expected = zoo::loss_of(subject, inputs(2)).detach();
  for (const composit::Backend* backend : {&composit::reference(), &aten()}) {
    const Tensors actual = {run(*backend, graph, bound)};
    EXPECT_LT(difference(actual, {expected}),
              backend == &aten() ? 1e-12 : reference_tolerance(subject))
        << backend->name();
  }
}

INSTANTIATE_TEST_SUITE_P(Small, Models, testing::ValuesIn(zoo::small_models()),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace flashlight
