#include "examples/models/resnet.h"

namespace models {
namespace {

namespace F = torch::nn::functional;
using torch::nn::BatchNorm2d;
using torch::nn::Conv2d;
using torch::nn::Conv2dOptions;
using torch::nn::Sequential;

/// A convolution without bias that keeps the resolution up to its stride.
Conv2d convolution(int64_t in_channels, int64_t out_channels, int64_t kernel, int64_t stride = 1) {
  Conv2d conv(Conv2dOptions(in_channels, out_channels, kernel)
                  .stride(stride)
                  .padding(kernel / 2)
                  .bias(false));
  torch::nn::init::kaiming_normal_(conv->weight, 0.0, torch::kFanOut, torch::kReLU);
  return conv;
}

/// The projection that makes `x` fit the block's output, or null where it fits already.
Sequential projection(int64_t in_channels, int64_t out_channels, int64_t stride) {
  if (stride == 1 && in_channels == out_channels) return nullptr;
  return Sequential(convolution(in_channels, out_channels, 1, stride), BatchNorm2d(out_channels));
}

template <typename Block>
Sequential make_stage(int64_t in_channels, int64_t width, int64_t depth, int64_t stride) {
  Sequential stage(Block(in_channels, width, stride));
  for (int64_t i = 1; i < depth; ++i) {
    stage->push_back(Block(width * Block::Impl::kExpansion, width, 1));
  }
  return stage;
}

int64_t stage_width(const ResNetConfig& config, int64_t stage) { return config.width << stage; }

int64_t output_channels(const ResNetConfig& config, int64_t stage) {
  const bool basic = config.block == ResNetConfig::Block::kBasic;
  const int64_t expansion = basic ? BasicBlockImpl::kExpansion : BottleneckImpl::kExpansion;
  return stage_width(config, stage) * expansion;
}

/// Stage 0 to 3 of a network. All but the first halve the resolution.
Sequential make_stage(const ResNetConfig& config, int64_t stage) {
  const int64_t in_channels = stage == 0 ? config.width : output_channels(config, stage - 1);
  const int64_t width = stage_width(config, stage);
  const int64_t depth = config.depths[stage];
  const int64_t stride = stage == 0 ? 1 : 2;
  return config.block == ResNetConfig::Block::kBasic
             ? make_stage<BasicBlock>(in_channels, width, depth, stride)
             : make_stage<Bottleneck>(in_channels, width, depth, stride);
}

ResNet make_resnet(ResNetConfig::Block block, std::array<int64_t, 4> depths, int64_t num_classes) {
  ResNetConfig config;
  config.block = block;
  config.depths = depths;
  config.num_classes = num_classes;
  return ResNet(config);
}

}  // namespace

BasicBlockImpl::BasicBlockImpl(int64_t in_channels, int64_t width, int64_t stride)
    : conv1(register_module("conv1", convolution(in_channels, width, 3, stride))),
      bn1(register_module("bn1", BatchNorm2d(width))),
      conv2(register_module("conv2", convolution(width, width, 3))),
      bn2(register_module("bn2", BatchNorm2d(width))),
      downsample(projection(in_channels, width, stride)) {
  if (downsample) register_module("downsample", downsample);
}

torch::Tensor BasicBlockImpl::forward(const torch::Tensor& x) {
  torch::Tensor out = bn1(conv1(x)).relu_();
  out = bn2(conv2(out));
  out += downsample ? downsample->forward(x) : x;
  return out.relu_();
}

BottleneckImpl::BottleneckImpl(int64_t in_channels, int64_t width, int64_t stride)
    : conv1(register_module("conv1", convolution(in_channels, width, 1))),
      bn1(register_module("bn1", BatchNorm2d(width))),
      conv2(register_module("conv2", convolution(width, width, 3, stride))),
      bn2(register_module("bn2", BatchNorm2d(width))),
      conv3(register_module("conv3", convolution(width, width * kExpansion, 1))),
      bn3(register_module("bn3", BatchNorm2d(width * kExpansion))),
      downsample(projection(in_channels, width * kExpansion, stride)) {
  if (downsample) register_module("downsample", downsample);
}

torch::Tensor BottleneckImpl::forward(const torch::Tensor& x) {
  torch::Tensor out = bn1(conv1(x)).relu_();
  out = bn2(conv2(out)).relu_();
  out = bn3(conv3(out));
  out += downsample ? downsample->forward(x) : x;
  return out.relu_();
}

ResNetImpl::ResNetImpl(const ResNetConfig& config)
    : conv1(register_module("conv1", convolution(3, config.width, 7, 2))),
      bn1(register_module("bn1", BatchNorm2d(config.width))),
      layer1(register_module("layer1", make_stage(config, 0))),
      layer2(register_module("layer2", make_stage(config, 1))),
      layer3(register_module("layer3", make_stage(config, 2))),
      layer4(register_module("layer4", make_stage(config, 3))),
      fc(register_module("fc", torch::nn::Linear(output_channels(config, 3), config.num_classes))) {
}

torch::Tensor ResNetImpl::forward(const torch::Tensor& images) {
  torch::Tensor x = bn1(conv1(images)).relu_();                           // (N, w, H/2, W/2)
  x = F::max_pool2d(x, F::MaxPool2dFuncOptions(3).stride(2).padding(1));  // (N, w, H/4, W/4)
  x = layer1->forward(x);
  x = layer2->forward(x);  // (N, ., H/8, W/8)
  x = layer3->forward(x);  // (N, ., H/16, W/16)
  x = layer4->forward(x);  // (N, ., H/32, W/32)
  x = F::adaptive_avg_pool2d(x, F::AdaptiveAvgPool2dFuncOptions(1)).flatten(1);
  return fc(x);
}

ResNet resnet18(int64_t num_classes) {
  return make_resnet(ResNetConfig::Block::kBasic, {2, 2, 2, 2}, num_classes);
}

ResNet resnet34(int64_t num_classes) {
  return make_resnet(ResNetConfig::Block::kBasic, {3, 4, 6, 3}, num_classes);
}

ResNet resnet50(int64_t num_classes) {
  return make_resnet(ResNetConfig::Block::kBottleneck, {3, 4, 6, 3}, num_classes);
}

ResNet resnet101(int64_t num_classes) {
  return make_resnet(ResNetConfig::Block::kBottleneck, {3, 4, 23, 3}, num_classes);
}

}  // namespace models
