#pragma once

// ResNet-18, -34, -50 and -101 for image classification (He et al., "Deep Residual Learning for
// Image Recognition", 2015), with the architecture and the parameter names of torchvision. As
// there, the stride of a bottleneck sits in its 3x3 convolution (the "v1.5" layout).
//
//   models::ResNet model = models::resnet50();
//   models::load_safetensors(*model, "resnet50.safetensors");
//   model->eval();
//   torch::Tensor logits = model->forward(images);  // (N, 3, H, W) -> (N, 1000)

#include <torch/torch.h>

#include <array>
#include <cstdint>

namespace models {

/// Two 3x3 convolutions, the first with stride s, and a skip connection.
/// (N, in_channels, H, W) -> (N, width, H/s, W/s).
struct BasicBlockImpl : torch::nn::Module {
  static constexpr int64_t kExpansion = 1;

  BasicBlockImpl(int64_t in_channels, int64_t width, int64_t stride);
  torch::Tensor forward(const torch::Tensor& x);

  torch::nn::Conv2d conv1;
  torch::nn::BatchNorm2d bn1;
  torch::nn::Conv2d conv2;
  torch::nn::BatchNorm2d bn2;
  torch::nn::Sequential downsample;  // null where the skip connection is the identity
};
TORCH_MODULE(BasicBlock);

/// 1x1, 3x3 and 1x1 convolutions, the second with stride s, and a skip connection.
/// (N, in_channels, H, W) -> (N, 4 width, H/s, W/s).
struct BottleneckImpl : torch::nn::Module {
  static constexpr int64_t kExpansion = 4;

  BottleneckImpl(int64_t in_channels, int64_t width, int64_t stride);
  torch::Tensor forward(const torch::Tensor& x);

  torch::nn::Conv2d conv1;
  torch::nn::BatchNorm2d bn1;
  torch::nn::Conv2d conv2;
  torch::nn::BatchNorm2d bn2;
  torch::nn::Conv2d conv3;
  torch::nn::BatchNorm2d bn3;
  torch::nn::Sequential downsample;  // null where the skip connection is the identity
};
TORCH_MODULE(Bottleneck);

struct ResNetConfig {
  enum class Block { kBasic, kBottleneck };

  Block block = Block::kBottleneck;
  std::array<int64_t, 4> depths = {3, 4, 6, 3};  // residual blocks per stage
  int64_t width = 64;                            // channels of the stem; doubles with every stage
  int64_t num_classes = 1000;
};

struct ResNetImpl : torch::nn::Module {
  explicit ResNetImpl(const ResNetConfig& config = {});

  /// Images (N, 3, H, W), normalised as in training, to logits (N, num_classes).
  torch::Tensor forward(const torch::Tensor& images);

  torch::nn::Conv2d conv1;
  torch::nn::BatchNorm2d bn1;
  torch::nn::Sequential layer1;
  torch::nn::Sequential layer2;
  torch::nn::Sequential layer3;
  torch::nn::Sequential layer4;
  torch::nn::Linear fc;
};
TORCH_MODULE(ResNet);

ResNet resnet18(int64_t num_classes = 1000);
ResNet resnet34(int64_t num_classes = 1000);
ResNet resnet50(int64_t num_classes = 1000);
ResNet resnet101(int64_t num_classes = 1000);

}  // namespace models
