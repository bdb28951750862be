// Every architecture of examples/models as a family: the bits of eager, and autograd's gradients,
// at sizes that nobody showed.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "examples/zoo/subject.h"
#include "flashlight/family.h"
#include "tests/flashlight/small_models.h"

namespace flashlight {
namespace {

using ModelSizes = std::vector<int64_t>;
using zoo::Tensors;

// Inputs of a model of these sizes.
Tensors inputs_of(const std::string& model, const ModelSizes& s, uint64_t seed) {
  if (model == "bert") {
    at::Tensor seen = torch::ones({s[0], s[1]}, torch::kInt64);
    seen[-1].slice(0, s[1] - 1).zero_();
    return {zoo::tokens({s[0], s[1]}, 50, seed), seen};
  }
  if (model == "clip_text" || model == "llama") return {zoo::tokens({s[0], s[1]}, 60, seed)};
  if (model == "unet")
    return {zoo::noise({s[0], 4, s[1], s[2]}, seed), torch::tensor({500}),
            zoo::noise({s[0], s[3], 12}, seed + 1)};
  if (model == "stable_diffusion")
    return {zoo::tokens({1, 9}, 60, seed), zoo::tokens({1, 9}, 60, seed + 1),
            zoo::noise({1, 4, s[0], s[1]}, seed + 2)};
  return {zoo::noise({s[0], 3, s[1], s[2]}, seed)};
}

// Three examples or more, then sizes that are held out.
struct Shown {
  std::vector<ModelSizes> examples, held_out;
};
Shown shown_of(const std::string& model) {
  if (model == "bert") return {{{2, 8}, {3, 13}, {5, 6}}, {{4, 11}, {3, 7}}};
  if (model == "clip_text" || model == "llama") return {{{2, 8}, {3, 5}, {5, 4}}, {{4, 7}, {2, 6}}};
  if (model == "unet")
    return {{{2, 8, 24, 5}, {3, 16, 8, 7}, {5, 24, 16, 4}}, {{4, 16, 24, 6}, {2, 24, 8, 7}}};
  if (model == "stable_diffusion") return {{{8, 24}, {16, 8}, {24, 16}}, {{16, 24}, {24, 8}}};
  if (model == "vae")
    return {{{2, 16, 24}, {3, 24, 40}, {5, 40, 16}, {5, 24, 24}}, {{4, 32, 32}, {2, 24, 16}}};
  return {{{2, 32, 43}, {3, 37, 32}, {5, 50, 39}}, {{4, 41, 35}, {3, 33, 42}}};
}

class FamilyOfModel : public testing::TestWithParam<zoo::Subject> {
 protected:
  // `program` of lists of tensors.
  Family<Tensors(Tensors)> family_of(const std::function<Tensors(const Tensors&)>& program) const {
    TraceSettings settings;
    settings.named = GetParam().named;
    settings.seen_once = true;
    std::vector<CaptureBase> captures;
    const Shown shown = shown_of(GetParam().name);
    for (const ModelSizes& sizes : shown.examples)
      captures.push_back(
          trace_with<Tensors(Tensors)>(settings, program, inputs_of(GetParam().name, sizes, 1)));
    return Family<Tensors(Tensors)>(std::move(captures), {});
  }
};

TEST_P(FamilyOfModel, HasEagersBits) {
  const zoo::Subject& model = GetParam();
  if (model.name == "resnet_training") GTEST_SKIP() << "each run changes the statistics";
  const c10::AutoGradMode grad(model.grad);
  const auto family = family_of(model.run);
  const Shown shown = shown_of(model.name);
  for (const ModelSizes& sizes : shown.held_out) {
    const Tensors inputs = inputs_of(model.name, sizes, 5);
    const Tensors expected = model.run(inputs), results = family(inputs);
    ASSERT_EQ(results.size(), expected.size());
    for (size_t i = 0; i < results.size(); ++i)
      EXPECT_TRUE(torch::equal(results[i], expected[i])) << testing::PrintToString(sizes);
    const CheckReport report = family.check(inputs);
    EXPECT_TRUE(report) << str(report);
  }
}

TEST_P(FamilyOfModel, HasAutogradsGradients) {
  const zoo::Subject& model = GetParam();
  zoo::to_double(model);
  const auto family =
      family_of([&](const Tensors& x) { return Tensors{zoo::loss_of(model, zoo::to_double(x))}; });
  const ModelSizes sizes = shown_of(model.name).held_out[0];
  const Tensors inputs = inputs_of(model.name, sizes, 5);
  const GradientReport report = family.at(family.sizes_of(inputs)).check_grad(inputs);
  EXPECT_TRUE(report) << str(report);
}

INSTANTIATE_TEST_SUITE_P(Models, FamilyOfModel, testing::ValuesIn(zoo::small_models()),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace flashlight
