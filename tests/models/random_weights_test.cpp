// Random weights: equal on every run, different between seeds, and good for a forward pass.

#include "examples/models/random_weights.h"

#include <gtest/gtest.h>

#include "examples/models/resnet.h"
#include "examples/models/unet.h"

namespace models {
namespace {

ResNetConfig small_resnet() {
  ResNetConfig config;
  config.width = 8;
  config.num_classes = 10;
  return config;
}

torch::Tensor logits_for_seed(uint64_t seed) {
  const torch::NoGradGuard no_grad;
  auto model = make_with_random_weights<ResNet>(small_resnet(), seed);
  return model->forward(torch::ones({1, 3, 32, 32}));
}

TEST(RandomWeightsTest, DependOnTheSeedAlone) {
  torch::manual_seed(1);
  const torch::Tensor first = logits_for_seed(7);
  torch::manual_seed(2);
  EXPECT_TRUE(first.equal(logits_for_seed(7)));
  EXPECT_FALSE(first.equal(logits_for_seed(8)));
}

TEST(RandomWeightsTest, NoTensorRepeatsAnother) {
  auto model = make_with_random_weights<ResNet>(small_resnet());
  const auto first = model->layer1[1]->as<Bottleneck>()->conv2->weight;
  const auto second = model->layer1[2]->as<Bottleneck>()->conv2->weight;
  EXPECT_FALSE(first.equal(second));
}

TEST(RandomWeightsTest, FillEveryFloatingPointTensor) {
  ResNet model(small_resnet());
  const torch::NoGradGuard no_grad;
  for (auto& parameter : model->parameters()) parameter.fill_(NAN);
  for (auto& buffer : model->buffers()) {
    if (buffer.is_floating_point()) buffer.fill_(NAN);
  }
  fill_random_weights(*model);
  for (const auto& parameter : model->parameters())
    EXPECT_TRUE(parameter.isfinite().all().item<bool>());
  for (const auto& item : model->named_buffers()) {
    EXPECT_TRUE(item.value().isfinite().all().item<bool>()) << item.key();
    if (item.key().ends_with("running_var")) {
      EXPECT_GT(item.value().min().item<float>(), 0.0f);
    }
  }
}

TEST(RandomWeightsTest, GiveFiniteAndVaryingActivations) {
  const torch::NoGradGuard no_grad;
  UnetConfig config;
  config.block_out_channels = {32, 64};
  config.cross_attention_dim = 16;
  auto unet = make_with_random_weights<UNet2DConditionModel>(config);
  const torch::Tensor noise =
      unet->forward(torch::randn({1, 4, 8, 8}), torch::tensor(10), torch::randn({1, 5, 16}));
  EXPECT_TRUE(noise.isfinite().all().item<bool>());
  EXPECT_GT(noise.std().item<double>(), 0.01);
}

}  // namespace
}  // namespace models
