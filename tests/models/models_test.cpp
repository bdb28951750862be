// Every model against its Python original: equal names, shapes and types of all weights (they are
// loaded strictly), and outputs as close to float64 as the original's own (see reference.h).

#include <gtest/gtest.h>

#include "examples/models/bert.h"
#include "examples/models/clip_text.h"
#include "examples/models/ddim.h"
#include "examples/models/llama.h"
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

LlamaConfig small_llama() {
  LlamaConfig config;
  config.vocab_size = 1000;
  config.hidden_size = 96;
  config.intermediate_size = 160;
  config.num_hidden_layers = 3;
  config.num_attention_heads = 6;
  config.num_key_value_heads = 2;
  return config;
}

// A decoder computes the logits of all tokens as the original does: in one call without a cache,
// and by a prompt, a single token, and the rest in one call.
void expect_llama_agrees(const std::string& name, const LlamaConfig& config) {
  const Reference reference(name);
  LlamaForCausalLM model(config);
  load_safetensors(*model, reference.weights());
  expect_agrees(reference, *model, [&](const Tensors& in) -> Tensors {
    const torch::Tensor& tokens = in.at("input_ids");
    const int64_t batch = tokens.size(0), count = tokens.size(1);
    LlamaDecoder decoder(model, batch, /*capacity=*/count + 3, /*all_logits=*/true);
    const torch::Tensor slots = torch::arange(count + 3);
    const auto part = [&](int64_t first, int64_t end) {
      const torch::Tensor positions = slots.slice(0, first, end).expand({batch, -1});
      return decoder->forward(tokens.slice(1, first, end), positions, slots.slice(0, 0, end + 2));
    };
    const torch::Tensor prompt = part(0, 9), token = part(9, 10), rest = part(10, count);
    return {{"logits", model->forward(tokens)}, {"decoded", torch::cat({prompt, token, rest}, 1)}};
  });
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

TEST(ModelsTest, Llama) { expect_llama_agrees("llama", small_llama()); }

TEST(ModelsTest, LlamaWithASlidingWindow) {
  LlamaConfig config = small_llama();
  config.sliding_window = 7;
  expect_llama_agrees("mistral", config);
}

TEST(ModelsTest, LlamaWithBiasesAndTiedEmbeddings) {
  LlamaConfig config = small_llama();
  config.attention_bias = config.tie_word_embeddings = true;
  config.rope_theta = 1e6;
  config.rms_norm_eps = 1e-6;
  expect_llama_agrees("qwen2", config);
}

// Each sequence of a batch is where it is; nothing is written where one would be outside.
TEST(ModelsTest, LlamaWithSequencesOfDifferentLengths) {
  LlamaForCausalLM model(small_llama());
  const torch::NoGradGuard no_grad;
  const torch::Tensor tokens = torch::randint(0, 1000, {2, 12});
  const torch::Tensor slots = torch::arange(12);
  const torch::Tensor expected = model->forward(tokens);
  LlamaDecoder decoder(model, /*batch=*/2, /*capacity=*/12);
  decoder->forward(tokens.slice(1, 0, 6), slots.slice(0, 0, 6).expand({2, -1}), slots);
  for (const int64_t ahead : {0, 1, 2, 3, 4}) {  // the second sequence again and again, one further
    const torch::Tensor positions = torch::tensor({{int64_t{6}}, {6 + ahead}});
    const torch::Tensor logits = decoder->forward(tokens.gather(1, positions), positions, slots);
    for (const int64_t row : {0, 1})
      EXPECT_TRUE(
          torch::allclose(logits[row], expected[row][positions[row].item<int64_t>()], 1e-4, 1e-5))
          << ahead;
  }
  const torch::Tensor before = decoder->cache->layers[0].keys.clone();
  for (const int64_t outside : {12, -1})
    EXPECT_THROW(
        decoder->forward(tokens.slice(1, 0, 1), torch::tensor({{int64_t{3}}, {outside}}), slots),
        c10::Error);
  EXPECT_TRUE(decoder->cache->layers[0].keys.equal(before));
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
