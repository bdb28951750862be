// Without a configuration, every model has the size of the published one. (models_test.cpp compares
// the architecture with the original, but mostly at a reduced width.)

#include <gtest/gtest.h>

#include "examples/models/bert.h"
#include "examples/models/clip_text.h"
#include "examples/models/resnet.h"
#include "examples/models/unet.h"
#include "examples/models/vae.h"

namespace models {
namespace {

template <typename Model>
int64_t parameter_count(const Model& model) {
  int64_t count = 0;
  for (const auto& parameter : model->parameters()) count += parameter.numel();
  return count;
}

// torchvision.models, table of all weights.
TEST(ModelSizesTest, ResNets) {
  EXPECT_EQ(parameter_count(resnet18()), 11'689'512);
  EXPECT_EQ(parameter_count(resnet34()), 21'797'672);
  EXPECT_EQ(parameter_count(resnet50()), 25'557'032);
  EXPECT_EQ(parameter_count(resnet101()), 44'549'160);
}

// BertModel(BertConfig()) of transformers.
TEST(ModelSizesTest, Bert) { EXPECT_EQ(parameter_count(BertModel()), 109'482'240); }

// The parts of runwayml/stable-diffusion-v1-5.
TEST(ModelSizesTest, StableDiffusion) {
  EXPECT_EQ(parameter_count(ClipTextModel()), 123'060'480);
  EXPECT_EQ(parameter_count(UNet2DConditionModel()), 859'520'964);
  EXPECT_EQ(parameter_count(AutoencoderKL()), 83'653'863);
}

}  // namespace
}  // namespace models
