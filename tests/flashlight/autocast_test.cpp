// A training step under autocast in bfloat16: replayed with eager's bits, compiled with float32
// master weights.
#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "flashlight/compile.h"
#include "flashlight/trace.h"

namespace {

using flashlight::compile;
using flashlight::Mosaic;
using flashlight::trace;

struct Autocast {
  Autocast() {
    at::autocast::set_autocast_enabled(at::kCPU, true);
    at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
    at::autocast::increment_nesting();
  }
  ~Autocast() {
    at::autocast::decrement_nesting();
    at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, false);
  }
  Autocast(const Autocast&) = delete;
};

struct Training {
  Training() {
    torch::manual_seed(5);
    model = torch::nn::Sequential(torch::nn::Linear(48, 96), torch::nn::GELU(),
                                  torch::nn::LayerNorm(torch::nn::LayerNormOptions({96})),
                                  torch::nn::Linear(96, 7));
    optimizer = std::make_shared<torch::optim::SGD>(model->parameters(),
                                                    torch::optim::SGDOptions(0.05).momentum(0.9));
  }
  at::Tensor step(const at::Tensor& x, const at::Tensor& target) {
    optimizer->zero_grad();
    at::Tensor loss;
    {
      const Autocast autocast;
      loss = torch::cross_entropy_loss(model->forward(x), target);
    }
    loss.backward();
    optimizer->step();
    return loss.detach();
  }

  torch::nn::Sequential model{nullptr};
  std::shared_ptr<torch::optim::SGD> optimizer;
};

std::pair<at::Tensor, at::Tensor> batch(int64_t number) {
  torch::manual_seed(static_cast<uint64_t>(100 + number));
  const at::Tensor target = torch::randint(7, {16});
  return {torch::one_hot(target, 48).to(at::kFloat) * 3 + torch::randn({16, 48}), target};
}

TEST(AutocastTraining, ReplaysHaveEagersBitsAndCompiledLossesFollow) {
  Training ours, eager;
  for (int i = 0; i < 2; ++i)
    for (Training* one : {&ours, &eager}) one->step(batch(i).first, batch(i).second);
  const auto captured = trace([&](at::Tensor x, at::Tensor y) { return ours.step(x, y); },
                              batch(2).first, batch(2).second);
  eager.step(batch(2).first, batch(2).second);
  for (int i = 3; i < 8; ++i) {
    const auto [x, y] = batch(i);
    ASSERT_TRUE(torch::equal(captured(x, y), eager.step(x, y))) << i;
  }
  for (size_t i = 0; i < ours.model->parameters().size(); ++i)
    EXPECT_TRUE(torch::equal(ours.model->parameters()[i], eager.model->parameters()[i]));

  const auto fast = compile(captured, {.backend = Mosaic{.threads = 1}});
  double first = 0, last = 0;
  for (int i = 8; i < 108; ++i) {
    const auto [x, y] = batch(i);
    const at::Tensor received = fast(x, y), expected = eager.step(x, y);
    // A bfloat16 has 8 bits.
    ASSERT_NEAR(received.item<double>(), expected.item<double>(), 0.02) << i;
    (i < 18 ? first : last) = received.item<double>();
  }
  EXPECT_LT(last, first);
  for (const at::Tensor& parameter : ours.model->parameters()) {
    EXPECT_EQ(parameter.scalar_type(), at::kFloat);
    EXPECT_FALSE(torch::equal(parameter, parameter.to(at::kBFloat16).to(at::kFloat)));
  }
}

}  // namespace
