// Numbers of a program that are no sizes: learning rates under a schedule, weights of a loss,
// annealed temperatures, what is read from tensors. Calls with numbers that nobody showed have the
// bits of eager.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>

#include "flashlight/compiled_family.h"
#include "flashlight/family.h"

namespace flashlight {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using Tensors = std::vector<at::Tensor>;

// ---- training -----------------------------------------------------------------------------------

int clip_line = 0;

// A model whose training step is a program of its own: it owns its optimizer.
template <class Optimizer, class Options>
struct Training : torch::nn::Module {
  explicit Training(Options options) : optimizer(parameters_of(), options) {}

  Tensors parameters_of() {
    register_module("first", first);
    register_module("last", last);
    return parameters();
  }
  at::Tensor forward(const at::Tensor& x, const at::Tensor& y) {
    optimizer.zero_grad();
    const at::Tensor loss = torch::mse_loss(last(torch::tanh(first(x))), y);
    loss.backward();
    clip_line = __LINE__ + 1;
    torch::nn::utils::clip_grad_norm_(parameters(), 0.05);
    optimizer.step();
    return loss.detach();
  }
  double rate() { return optimizer.param_groups()[0].options().get_lr(); }
  void set_rate(double rate) { optimizer.param_groups()[0].options().set_lr(rate); }

  torch::nn::Linear first{5, 7}, last{7, 3};
  Optimizer optimizer;
};

// The norm that clipping returns is compared with nothing.
FamilySettings training_settings() {
  FamilySettings settings;
  settings.predicates = {composit::predicate("family_numbers_test.cpp:" + std::to_string(clip_line), "any")};
  return settings;
}

Tensors batch(int64_t rows) { return {torch::randn({rows, 5}), torch::randn({rows, 3})}; }

// 200 steps with a rate that falls, and batches of sizes that nobody showed.
template <class Optimizer, class Options>
void expect_training_goes_on(Options options) {
  using Model = Training<Optimizer, Options>;
  torch::manual_seed(5);
  auto eager = std::make_shared<Model>(options), traced = std::make_shared<Model>(options);
  {
    torch::NoGradGuard no_grad;
    for (size_t i = 0; i < eager->parameters().size(); ++i)
      traced->parameters()[i].copy_(eager->parameters()[i]);
  }
  torch::optim::StepLR eager_schedule(eager->optimizer, 7, 0.7),
      schedule(traced->optimizer, 7, 0.7);
  const auto both = [&](const Tensors& xy) {
    eager->forward(xy[0], xy[1]);
    traced->forward(xy[0], xy[1]);
  };
  both(batch(4));  // makes the optimizer's state
  FamilySettings settings = training_settings();
  settings.numbers = {{"lr", [&] { return traced->rate(); },
                       [&](double rate) { traced->set_rate(rate); }}};
  const std::vector<std::pair<int64_t, double>> shown = {{4, 0.1}, {6, 0.05}, {9, 0.03}};
  std::vector<Tensors> batches;
  for (const auto& [rows, rate] : shown) {
    batches.push_back(batch(rows));
    const double before = eager->rate();
    eager->set_rate(rate);
    eager->forward(batches.back()[0], batches.back()[1]);
    eager->set_rate(before);
  }
  const auto example_of = [&](size_t i) {
    return example(batches[i][0], batches[i][1]).with("lr", shown[i].second);
  };
  const auto family = trace_family(settings, *traced, example_of(0), example_of(1), example_of(2));
  for (int step = 0; step < 200; ++step) {
    const Tensors xy = batch(4 + step % 6);
    const at::Tensor expected = eager->forward(xy[0], xy[1]);
    ASSERT_TRUE(torch::equal(family(xy[0], xy[1]), expected)) << "step " << step;
    eager_schedule.step();
    schedule.step();
  }
  EXPECT_LT(eager->rate(), 1e-5);
  for (size_t i = 0; i < eager->parameters().size(); ++i)
    EXPECT_TRUE(torch::equal(eager->parameters()[i], traced->parameters()[i])) << i;
}

TEST(FamilyNumbers, AdamUnderAScheduleWithClipping) {
  expect_training_goes_on<torch::optim::Adam>(torch::optim::AdamOptions(0.1));
}

TEST(FamilyNumbers, AdamWUnderAScheduleWithClipping) {
  expect_training_goes_on<torch::optim::AdamW>(torch::optim::AdamWOptions(0.1).weight_decay(0.02));
}

TEST(FamilyNumbers, SgdUnderAScheduleWithClipping) {
  expect_training_goes_on<torch::optim::SGD>(torch::optim::SGDOptions(0.1).momentum(0.9));
}

}  // namespace
}  // namespace flashlight
