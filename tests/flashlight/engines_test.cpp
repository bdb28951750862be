// Training steps and gradients whose parts run on several devices, compared with LibTorch's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>

#include "examples/zoo/zoo.h"
#include "flashlight/backends/devices.h"
#include "flashlight/compile.h"
#include "tests/flashlight/small_models.h"
#include "tests/user_error.h"

namespace flashlight {
namespace {

using testing::HasSubstr;
using testing::Optional;
using zoo::Subject;
using zoo::Tensors;

struct Case {
  std::string name;
  Subject (*subject)();
  std::string choices;
};
void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

Tensors state_of(const Subject& subject) {
  Tensors copies;
  for (const NamedTensor& one : subject.named) copies.push_back(one.tensor.detach().clone());
  return copies;
}
void set_state(const Subject& subject, const Tensors& state) {
  const torch::NoGradGuard no_grad;
  for (size_t i = 0; i < state.size(); ++i) at::Tensor(subject.named[i].tensor).copy_(state[i]);
}

// Rounding in another order, which steps carry on.
bool close(const at::Tensor& a, const at::Tensor& b) {
  return at::allclose(a, b, /*rtol=*/2e-3, /*atol=*/2e-4);
}

Capture<Tensors(Tensors)> captured(const Subject& subject) {
  TraceSettings settings;
  settings.named = subject.named;
  return trace(
      settings, [&](Tensors x) { return subject.run(x); }, subject.inputs(1));
}

class Engines : public testing::TestWithParam<Case> {};

TEST_P(Engines, train_as_libtorch_does) {
  const Case& one = GetParam();
  const Subject subject = one.subject();
  const auto step = captured(subject);
  const auto compiled = compile(step, {.backend = Devices{.choices = one.choices}});
  const Tensors before = state_of(subject);
  Tensors losses;
  torch::manual_seed(5);
  for (uint64_t i = 2; i < 5; ++i) losses.push_back(compiled(subject.inputs(i))[0]);
  const Tensors after = state_of(subject);
  set_state(subject, before);
  torch::manual_seed(5);
  for (uint64_t i = 2; i < 5; ++i)
    EXPECT_TRUE(close(losses[i - 2], subject.run(subject.inputs(i))[0])) << i;
  for (size_t i = 0; i < after.size(); ++i)
    EXPECT_TRUE(close(after[i], subject.named[i].tensor)) << subject.named[i].name;
}

const char* const kBert =
    "device small: mosaic, threads 1, memory far\n"
    "encoder.layer.0: on mosaic\n"
    "encoder.layer.1: on cpp\n"
    "encoder.layer.2: on small\n"
    "pooler: on aten\n"
    "*: on mosaic\n";
const char* const kResnet =
    "layer1: on aten\n"
    "layer2: on cpp\n"
    "fc: on aten\n"
    "*: on mosaic\n";

INSTANTIATE_TEST_SUITE_P(Steps, Engines,
                         testing::Values(Case{"bert", zoo::bert_step, kBert},
                                         Case{"resnet", zoo::resnet18_step, kResnet}),
                         [](const auto& one) { return one.param.name; });

// ---- gradients ----------------------------------------------------------------------------------

struct GradientCase {
  std::string name;  // of zoo::small_models
  std::string choices;
};
void PrintTo(const GradientCase& one, std::ostream* out) { *out << one.name; }

class GradientsOfEngines : public testing::TestWithParam<GradientCase> {};

// In float64, where only the order of sums differs: by 1e-9 of the largest element, so that a
// gradient of any parameter that is wrong by more than that shows.
TEST_P(GradientsOfEngines, are_autograds) {
  const GradientCase& one = GetParam();
  const std::vector<Subject> all = zoo::small_models();
  const Subject subject = *std::find_if(
      all.begin(), all.end(), [&](const Subject& other) { return other.name == one.name; });
  zoo::to_double(subject);
  const Gradient gradient = zoo::capture_loss(subject, zoo::to_double(subject.inputs(1))).grad();
  const Tensors inputs = zoo::to_double(subject.inputs(2));
  const Tensors leaves = zoo::named(subject, gradient.names());
  const at::Tensor loss = zoo::loss_of(subject, inputs);
  const Tensors expected = torch::autograd::grad({loss}, leaves, {}, {}, false, true);
  const auto received =
      compile(gradient, {.backend = Devices{.choices = one.choices, .lenient = true}})(inputs);
  EXPECT_NEAR(received.loss.item<double>(), loss.item<double>(), 1e-9 * loss.item<double>());
  EXPECT_LT(test::difference(received.gradients, expected), 1e-9);
}

INSTANTIATE_TEST_SUITE_P(
    Small, GradientsOfEngines,
    testing::Values(GradientCase{"bert",
                                 "device small: mosaic, threads 1, memory far\n"
                                 "encoder.layer.1: on small\n"
                                 "pooler: on aten\n"
                                 "*: on cpp\n"},
                    GradientCase{"resnet_training",
                                 "layer1: on aten\n"
                                 "layer2: on mosaic\n"
                                 "fc: on aten\n"
                                 "*: on cpp\n"}),
    [](const auto& one) { return one.param.name; });

// ---- order --------------------------------------------------------------------------------------

// Parts of two branches run at the same time or one after the other: the same bits.
TEST(Engines, give_the_same_bits_without_overlap) {
  const auto step = trace(
      [](const at::Tensor& x) {
        const at::Tensor a = at::tanh(at::mm(x, x)), b = at::softmax(x, 1);
        return Tensors{a + b, a, b};
      },
      at::ones({9, 9}));
  const at::Tensor x = at::rand({9, 9});
  const std::string choices = "mm: on mosaic\ntanh: on mosaic\nsoftmax: on cpp\n*: on aten\n";
  Tensors results[2];
  for (const bool overlap : {false, true})
    results[overlap ? 1 : 0] =
        compile(step, {.backend = Devices{.choices = choices, .overlap = overlap}})(x);
  for (size_t i = 0; i < results[0].size(); ++i)
    EXPECT_TRUE(at::equal(results[0][i], results[1][i])) << i;
  EXPECT_TRUE(at::allclose(results[0][1], at::tanh(at::mm(x, x))));
  EXPECT_TRUE(at::allclose(results[0][2], at::softmax(x, 1)));
}

// ---- draws --------------------------------------------------------------------------------------

// Draws in parts on LibTorch and on compiled code are one sequence, that of the program: the same
// bits as eager draws after torch.manual_seed, and eager draws go on from there.
TEST(Engines, draw_one_sequence_on_several_devices) {
  const auto program = [](const at::Tensor& x) {
    const at::Tensor a = at::rand_like(x), b = at::empty_like(x).normal_(1, 2),
                     c = at::randn({5, 40}), d = at::empty_like(x).bernoulli_(.25),
                     e = at::randperm(40);
    return Tensors{a, b, c, d, e, at::rand({3}, at::kDouble)};
  };
  const at::Tensor x = at::ones({7, 6});
  const auto step = trace(program, x);
  torch::manual_seed(11);
  const Tensors expected = program(x);
  const at::Tensor expected_next = at::rand({4});
  for (const char* choices :
       {"*: on aten", "rand_like: on aten\n*: on cpp", "randn: on aten\n*: on mosaic",
        "bernoulli: on cpp\nrandperm: on mosaic\n*: on aten"}) {
    const auto compiled = compile(step, {.backend = Devices{.choices = choices, .lenient = true}});
    torch::manual_seed(11);
    const Tensors received = compiled(x);
    EXPECT_TRUE(at::equal(at::rand({4}), expected_next)) << choices;
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_TRUE(at::equal(received[i], expected[i])) << choices << ", result " << i;
  }
}

// A mask that LibTorch draws by no generator that it could be given would be of another sequence.
TEST(Engines, say_who_runs_an_operator_without_a_row) {
  const auto f =
      trace([](const at::Tensor& x) { return std::get<0>(at::linalg_eig(x)); }, at::eye(2));
  const auto refused = [&](const std::string& choices) {
    return composit::user_error([&] { compile(f, {.backend = Devices{.choices = choices}}); });
  };
  EXPECT_THAT(refused("*: on cpp"), Optional(HasSubstr("\n  aten::linalg_eig: aten could run it")));
  EXPECT_EQ(refused("*: on aten"), std::nullopt);
  EXPECT_THAT(refused("*: on cuda"),
              Optional(AllOf(HasSubstr("of a backend that runs code, one of aten, cpp, mosaic"),
                             HasSubstr("received 'cuda': cuda writes text alone"))));
}

TEST(Engines, refuse_draws_that_take_no_generator) {
  const auto step =
      trace([](const at::Tensor& x) { return std::get<0>(at::native_dropout(x, .5, true)); },
            at::ones({7, 6}));
  EXPECT_THAT(composit::user_error([&] {
                compile(step, {.backend = Devices{.choices = "*: on aten"}})(at::ones({7, 6}));
              }),
              Optional(HasSubstr("part 0 on 'aten' draws random numbers (aten::native_dropout)")));
}

}  // namespace
}  // namespace flashlight
