// A guard that fails says what the program read, where, and how to write it without.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "flashlight/trace.h"
#include "tests/user_error.h"

namespace flashlight {
namespace {

using composit::user_error;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::Optional;
using Clip = std::function<void(const std::vector<at::Tensor>&)>;

// A training step whose gradients are clipped by `clip`, from equal weights.
struct Step {
  explicit Step(Clip clip_) : clip(std::move(clip_)) {
    torch::manual_seed(1);
    model =
        torch::nn::Sequential(torch::nn::Linear(3, 4), torch::nn::Tanh(), torch::nn::Linear(4, 1));
  }
  at::Tensor operator()(const at::Tensor& x) {
    model->zero_grad();
    const at::Tensor loss = model->forward(x).square().mean();
    loss.backward();
    clip(model->parameters());
    const torch::NoGradGuard no_grad;
    for (const at::Tensor& parameter : model->parameters()) parameter.sub_(parameter.grad());
    return loss.detach();
  }

  Clip clip;
  torch::nn::Sequential model{nullptr};
};

void by_number(const std::vector<at::Tensor>& parameters) {
  torch::nn::utils::clip_grad_norm_(parameters, 0.1);
}

// As docs/errors.md and examples/02_training_step.cpp have it.
void by_tensor(const std::vector<at::Tensor>& parameters) {
  std::vector<at::Tensor> norms;
  for (const at::Tensor& parameter : parameters)
    if (parameter.grad().defined()) norms.push_back(parameter.grad().data().norm(2.0));
  const at::Tensor norm = torch::stack(norms).norm(2.0);
  const at::Tensor factor = torch::clamp_max(0.1 / (norm + 1e-6), 1.0);
  for (const at::Tensor& parameter : parameters)
    if (parameter.grad().defined()) parameter.grad().data().mul_(factor);
}

auto traced(Step& step, bool source_lines, const at::Tensor& x) {
  TraceSettings settings;
  settings.named = named_tensors(step.model);
  settings.source_lines = source_lines;
  return trace(
      settings, [&step](const at::Tensor& input) { return step(input); }, x);
}

TEST(GuardMessage, OfClipGradNormSaysHowToWriteIt) {
  Step step(by_number);
  const auto captured = traced(step, true, torch::randn({5, 3}));
  EXPECT_THAT(
      user_error([&] {
        captured(torch::randn({5, 3}));
      }),
      Optional(AllOf(HasSubstr("[replay] guard: aten::_local_scalar_dense"), HasSubstr("norm"),
                     HasSubstr("guard_messages_test.cpp:"), HasSubstr("keep it in a tensor"),
                     HasSubstr("docs/errors.md shows for clip_grad_norm_"))));
}

TEST(GuardMessage, AsItSaysTheStepIsCapturedWithTheSameBits) {
  Step eager(by_number), step(by_tensor);
  const at::Tensor first = torch::randn({5, 3});
  const auto captured = traced(step, false, first);
  eager(first);
  for (int call = 0; call < 5; ++call) {
    const at::Tensor x = torch::randn({5, 3}) * call;
    EXPECT_TRUE(at::equal(captured(x), eager(x))) << call;
    for (size_t i = 0; i < 4; ++i)
      EXPECT_TRUE(at::equal(step.model->parameters()[i], eager.model->parameters()[i])) << call;
  }
}

TEST(GuardMessage, OfABranchNamesWhatWasRead) {
  const auto captured = trace(
      [](at::Tensor x) { return x.sum().item<float>() > 0 ? x.sin() : x.cos(); }, torch::ones({3}));
  EXPECT_THAT(user_error([&] { captured(torch::zeros({3})); }),
              Optional(AllOf(HasSubstr("of aten::sum"), HasSubstr("where"),
                             Not(HasSubstr("clip_grad_norm_")), HasSubstr("capture again"))));
}

TEST(GuardMessage, OfANumberThatIsAnArgumentNamesIt) {
  const auto captured = trace([](at::Tensor x, at::Tensor n) { return x * n.item<float>(); },
                              torch::ones({3}), torch::ones({}));
  EXPECT_THAT(user_error([&] { captured(torch::ones({3}), torch::zeros({})); }),
              Optional(HasSubstr("of the input 'input_1'")));
}

TEST(GuardMessage, OfASizeSpeaksOfMasks) {
  const auto captured = trace([](at::Tensor x) { return x.masked_select(x > 0).sum(); },
                              torch::tensor({1.0, -1.0, 2.0}));
  EXPECT_THAT(user_error([&] {
                captured(torch::tensor({1.0, 1.0, 2.0}));
              }),
              Optional(AllOf(HasSubstr("sizes are part of the capture"), HasSubstr("mask"))));
}

}  // namespace
}  // namespace flashlight
