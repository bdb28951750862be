// Gradients of captures against autograd's.
#include "flashlight/gradient.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn.h>

#include "composit/ir/error.h"
#include "flashlight/trace.h"
#include "tests/user_error.h"

namespace flashlight {
namespace {

using testing::HasSubstr;

// Largest difference between our gradients and autograd's, relative to the largest element of all:
// those of a bias in front of a batch norm are zero but for rounding.
double difference(const Gradient& gradient, const std::vector<at::Tensor>& arguments,
                  const at::Tensor& loss, const std::vector<NamedTensor>& named) {
  std::vector<at::Tensor> leaves;
  for (const std::string& name : gradient.names())
    for (const NamedTensor& tensor : named)
      if (tensor.name == name) leaves.push_back(tensor.tensor);
  EXPECT_EQ(leaves.size(), gradient.names().size());
  // First: our run writes batch norm's statistics, which autograd's graph holds.
  const auto expected = torch::autograd::grad({loss}, leaves, {}, {}, false, true);
  const auto ours = gradient(arguments);
  EXPECT_TRUE(at::allclose(ours.loss, loss));
  double worst = 0, scale = 0;
  for (size_t i = 0; i < leaves.size(); ++i) {
    const at::Tensor& g = ours.gradients[i];
    EXPECT_EQ(g.sizes(), leaves[i].sizes()) << gradient.names()[i];
    const at::Tensor e = expected[i].defined() ? expected[i] : at::zeros_like(leaves[i]);
    scale = std::max(scale, e.abs().max().item<double>());
    worst = std::max(worst, (g - e).abs().max().item<double>());
  }
  EXPECT_GT(scale, 0);
  return worst / scale;
}

TEST(Gradient, OfAPerceptron) {
  torch::nn::Sequential model(torch::nn::Linear(5, 7), torch::nn::Tanh(), torch::nn::Linear(7, 1));
  model->to(torch::kDouble);
  const at::Tensor x = torch::randn({4, 5}, torch::kDouble);
  const auto run = [&](at::Tensor input) { return model->forward(input).pow(2).mean(); };
  TraceSettings settings;
  settings.named = named_tensors(*model);
  const auto captured = trace(settings, run, x);
  const at::Tensor other = torch::randn({4, 5}, torch::kDouble);
  EXPECT_LT(difference(captured.grad(), {other}, run(other), settings.named), 1e-12);
}

TEST(Gradient, OfAConvolutionalNetworkInTraining) {
  torch::nn::Sequential model(
      torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 8, 3).stride(2).padding(1)),
      torch::nn::BatchNorm2d(8), torch::nn::ReLU(), torch::nn::MaxPool2d(2),
      torch::nn::Conv2d(torch::nn::Conv2dOptions(8, 6, 3).padding(1).groups(2).bias(false)),
      torch::nn::AdaptiveAvgPool2d(1), torch::nn::Flatten(), torch::nn::Linear(6, 3));
  model->to(torch::kDouble);
  const at::Tensor x = torch::randn({4, 3, 16, 16}, torch::kDouble);
  const at::Tensor target = torch::tensor({0, 2, 1, 1});
  const auto run = [&](at::Tensor input, at::Tensor labels) {
    return torch::nn::functional::cross_entropy(model->forward(input), labels);
  };
  TraceSettings settings;
  settings.named = named_tensors(*model);
  const auto captured = trace(settings, run, x, target);
  EXPECT_LT(difference(captured.grad(), {x, target}, run(x, target), settings.named), 1e-10);
}

TEST(Gradient, ByAnArgumentByName) {
  const at::Tensor x = torch::rand({3}, torch::kDouble);
  const auto captured = trace([](at::Tensor v) { return (v * v).sum(); }, x);
  const auto gradient = captured.grad(0, {"input_0"});
  EXPECT_TRUE(at::allclose(gradient({x}).gradients[0], 2 * x));
}

TEST(Gradient, DetachedAndNoGradPartsPassNothing) {
  const at::Tensor x = torch::rand({3}, torch::kDouble).requires_grad_(true);
  const auto run = [](at::Tensor v) {
    at::Tensor constant;
    {
      torch::NoGradGuard guard;
      constant = v * 3;
    }
    return (v * v.detach() * constant).sum();
  };
  const auto captured = trace(run, x);
  const auto ours = captured.grad(0, {"input_0"})({x}).gradients[0];
  EXPECT_TRUE(at::allclose(ours, torch::autograd::grad({run(x)}, {x})[0]));
}

TEST(Gradient, SaysWhatIsWrong) {
  const at::Tensor x = torch::rand({3});
  const auto captured = trace([](at::Tensor v) { return v * v; }, x);
  const auto message = [&](const std::vector<std::string>& wrt, size_t loss) {
    return composit::user_error([&] { captured.grad(loss, wrt); }).value_or("");
  };
  EXPECT_THAT(message({"input_0"}, 0), HasSubstr("a loss of one element, received float32[3]"));
  EXPECT_THAT(message({"weight"}, 0), HasSubstr("no input 'weight'; it has 'input_0'"));
  EXPECT_THAT(message({}, 0), HasSubstr("has no parameter"));
  EXPECT_THAT(message({"input_0"}, 3), HasSubstr("there is no result 3"));
}

}  // namespace
}  // namespace flashlight
