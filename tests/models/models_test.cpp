// Every model against its Python original: equal names, shapes and types of all weights (they are
// loaded strictly), and outputs as close to float64 as the original's own (see reference.h).

#include <gtest/gtest.h>

#include "examples/models/bert.h"
#include "examples/models/clip_text.h"
#include "examples/models/ddim.h"
#include "examples/models/resnet.h"
#include "examples/models/safetensors.h"
#include "examples/models/stable_diffusion.h"
#include "examples/models/unet.h"
#include "examples/models/vae.h"
#include "tests/models/reference.h"

namespace models {
namespace {

// The reduced configurations of make_reference.py.

BertConfig small_bert() {
  BertConfig config;
  config.vocab_size = 1000;
  config.hidden_size = 192;
  config.intermediate_size = 768;
  config.max_position_embeddings = 64;
  return config;
}

ClipTextConfig small_clip() {
  ClipTextConfig config;
  config.vocab_size = 1000;
  config.hidden_size = 96;
  config.intermediate_size = 384;
  return config;
}

UnetConfig small_unet() {
  UnetConfig config;
  config.block_out_channels = {32, 64, 128, 128};
  config.cross_attention_dim = 96;
  config.norm_groups = 16;
  return config;
}

VaeConfig small_vae() {
  VaeConfig config;
  config.block_out_channels = {32, 64, 128, 128};
  config.norm_groups = 16;
  return config;
}

void expect_resnet_agrees(const std::string& name, ResNet model) {
  const Reference reference(name);
  load_safetensors(*model, reference.weights());
  expect_agrees(reference, *model, [&](const Tensors& in) -> Tensors {
    return {{"logits", model->forward(in.at("images"))}};
  });
}

TEST(ModelsTest, ResNet18) { expect_resnet_agrees("resnet18", resnet18()); }
TEST(ModelsTest, ResNet34) { expect_resnet_agrees("resnet34", resnet34()); }
TEST(ModelsTest, ResNet50) { expect_resnet_agrees("resnet50", resnet50()); }
TEST(ModelsTest, ResNet101) { expect_resnet_agrees("resnet101", resnet101()); }

TEST(ModelsTest, BertWithAndWithoutPadding) {
  const Reference reference("bert");
  BertModel model(small_bert());
  load_safetensors(*model, reference.weights());
  expect_agrees(reference, *model, [&](const Tensors& in) -> Tensors {
    const BertOutput padded =
        model->forward(in.at("input_ids"), in.at("attention_mask"), in.at("token_type_ids"));
    const BertOutput plain = model->forward(in.at("input_ids"));
    return {{"padded", padded.last_hidden_state},
            {"padded_pooled", padded.pooler_output},
            {"plain", plain.last_hidden_state},
            {"plain_pooled", plain.pooler_output}};
  });
}

TEST(ModelsTest, ClipText) {
  const Reference reference("clip_text");
  ClipTextModel model(small_clip());
  load_safetensors(*model, reference.weights());
  expect_agrees(reference, *model, [&](const Tensors& in) -> Tensors {
    const ClipTextOutput out = model->forward(in.at("input_ids"));
    return {{"hidden", out.last_hidden_state}, {"pooled", out.pooler_output}};
  });
}

TEST(ModelsTest, UnetWithEvenAndOddSizes) {
  const Reference reference("unet");
  UNet2DConditionModel model(small_unet());
  load_safetensors(*model, reference.weights());
  expect_agrees(reference, *model, [&](const Tensors& in) -> Tensors {
    return {{"noise", model->forward(in.at("sample"), in.at("timesteps"), in.at("text"))},
            {"odd_noise", model->forward(in.at("odd_sample"), in.at("timestep"), in.at("text"))}};
  });
}

TEST(ModelsTest, VaeEncodesAndDecodes) {
  const Reference reference("vae");
  AutoencoderKL model(small_vae());
  load_safetensors(*model, reference.weights());
  expect_agrees(reference, *model, [&](const Tensors& in) -> Tensors {
    const LatentDistribution latents = model->encode(in.at("images"));
    return {{"mean", latents.mean},
            {"standard_deviation", latents.standard_deviation},
            {"decoded", model->decode(in.at("latents"))}};
  });
}

TEST(ModelsTest, DdimTrajectory) {
  const Reference reference("ddim");
  expect_agrees(reference, [](const Tensors& in) -> Tensors {
    const torch::Tensor noise = in.at("noise");  // one tensor per step
    const DdimScheduler scheduler(noise.size(0));
    EXPECT_TRUE(torch::tensor(scheduler.timesteps()).equal(in.at("timesteps")));
    std::vector<torch::Tensor> samples = {in.at("sample")};
    for (int64_t i = 0; i < noise.size(0); ++i) {
      samples.push_back(scheduler.step(noise[i], scheduler.timesteps()[i], samples.back()));
    }
    return {{"samples", torch::stack(samples)}};
  });
}

TEST(ModelsTest, StableDiffusionFromPromptToImage) {
  const Reference reference("stable_diffusion");
  StableDiffusion model(StableDiffusionConfig{small_clip(), small_unet(), small_vae(), {}});
  load_stable_diffusion(*model, reference.folder());
  expect_agrees(reference, *model, [&](const Tensors& in) -> Tensors {
    const SamplingOptions options{/*steps=*/4, /*guidance=*/7.5};
    const torch::Tensor text =
        model->encode_prompts(in.at("prompt_ids"), in.at("negative_prompt_ids"));
    return {{"latents", model->denoise(in.at("noise"), text, options)},
            {"image", model->generate(in.at("prompt_ids"), in.at("negative_prompt_ids"),
                                      in.at("noise"), options)},
            {"image_latents", model->encode_images(in.at("images"))}};
  });
}

}  // namespace
}  // namespace models
