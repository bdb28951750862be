#include <torch/torch.h>

#include "examples/models/bert.h"
#include "examples/models/clip_text.h"
#include "examples/models/llama.h"
#include "examples/models/resnet.h"
#include "examples/models/stable_diffusion.h"
#include "examples/models/unet.h"
#include "examples/models/vae.h"
#include "examples/zoo/subject.h"

namespace zoo {
namespace {

using models::make_with_random_weights;

Subject small_resnet(std::string name, models::ResNetConfig::Block block, bool training) {
  models::ResNetConfig config;
  config.block = block;
  config.depths = {1, 2, 1, 1};
  config.width = 4;
  config.num_classes = 7;
  auto model = make_with_random_weights<models::ResNet>(config);
  model->train(training);
  return subject<models::ResNet>(
      std::move(name), model,
      [](models::ResNet& net, const Tensors& x) -> Tensors { return {net->forward(x[0])}; },
      [](uint64_t seed) -> Tensors {
        return {noise({2, 3, 32, 32}, seed)};
      });
}

models::ClipTextConfig small_clip_config() {
  models::ClipTextConfig config;
  config.vocab_size = 60;
  config.hidden_size = 12;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 3;
  config.intermediate_size = 24;
  config.max_position_embeddings = 9;
  return config;
}

models::UnetConfig small_unet_config() {
  models::UnetConfig config;
  config.block_out_channels = {4, 8, 8, 8};
  config.layers_per_block = 1;
  config.cross_attention_dim = 12;
  config.attention_heads = 2;
  config.norm_groups = 2;
  return config;
}

models::VaeConfig small_vae_config() {
  models::VaeConfig config;
  config.block_out_channels = {4, 4, 8, 8};
  config.layers_per_block = 1;
  config.norm_groups = 2;
  return config;
}

Subject small_bert() {
  models::BertConfig config;
  config.vocab_size = 50;
  config.hidden_size = 12;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 3;
  config.intermediate_size = 24;
  config.max_position_embeddings = 16;
  return subject<models::BertModel>(
      "bert", make_with_random_weights<models::BertModel>(config),
      [](models::BertModel& model, const Tensors& x) -> Tensors {
        const auto out = model->forward(x[0], x[1]);
        return {out.last_hidden_state, out.pooler_output};
      },
      [](uint64_t seed) -> Tensors {
        return {tokens({2, 8}, 50, seed), padding_mask(2, 8)};
      });
}

Subject small_clip_text() {
  return subject<models::ClipTextModel>(
      "clip_text", make_with_random_weights<models::ClipTextModel>(small_clip_config()),
      [](models::ClipTextModel& model, const Tensors& x) -> Tensors {
        const auto out = model->forward(x[0]);
        return {out.last_hidden_state, out.pooler_output};
      },
      [](uint64_t seed) -> Tensors {
        return {tokens({2, 9}, 60, seed)};
      });
}

// Without a cache.
Subject small_llama() {
  models::LlamaConfig config;
  config.vocab_size = 60;
  config.hidden_size = 32;
  config.intermediate_size = 48;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 4;
  config.num_key_value_heads = 2;
  using Model = models::LlamaForCausalLM;
  return subject<Model>(
      "llama", make_with_random_weights<Model>(config),
      [](Model& model, const Tensors& x) -> Tensors { return {model->forward(x[0])}; },
      [](uint64_t seed) -> Tensors {
        return {tokens({2, 9}, 60, seed)};
      });
}

Subject small_unet() {
  using Model = models::UNet2DConditionModel;
  return subject<Model>(
      "unet", make_with_random_weights<Model>(small_unet_config()),
      [](Model& model, const Tensors& x) -> Tensors { return {model->forward(x[0], x[1], x[2])}; },
      [](uint64_t seed) -> Tensors {
        return {noise({2, 4, 8, 8}, seed), torch::tensor({500}), noise({2, 5, 12}, seed + 1)};
      });
}

Subject small_vae() {
  using Model = models::AutoencoderKL;
  return subject<Model>(
      "vae", make_with_random_weights<Model>(small_vae_config()),
      [](Model& model, const Tensors& x) -> Tensors { return {model->forward(x[0])}; },
      [](uint64_t seed) -> Tensors {
        return {noise({1, 3, 16, 16}, seed)};
      });
}

// Text to image in two steps of the sampler.
Subject small_stable_diffusion() {
  using Model = models::StableDiffusion;
  models::StableDiffusionConfig config;
  config.text_encoder = small_clip_config();
  config.unet = small_unet_config();
  config.vae = small_vae_config();
  return subject<Model>(
      "stable_diffusion", make_with_random_weights<Model>(config),
      [](Model& model, const Tensors& x) -> Tensors {
        return {model->generate(x[0], x[1], x[2], {.steps = 2})};
      },
      [](uint64_t seed) -> Tensors {
        return {tokens({1, 9}, 60, seed), tokens({1, 9}, 60, seed + 1),
                noise({1, 4, 8, 8}, seed + 2)};
      });
}

}  // namespace

std::vector<Subject> small_models() {
  using Block = models::ResNetConfig::Block;
  return {small_resnet("resnet_basic", Block::kBasic, false),
          small_resnet("resnet_bottleneck", Block::kBottleneck, false),
          small_resnet("resnet_training", Block::kBottleneck, true),
          small_bert(),
          small_clip_text(),
          small_llama(),
          small_unet(),
          small_vae(),
          small_stable_diffusion()};
}

at::Tensor loss_of(const Subject& subject, const Tensors& inputs) {
  at::Tensor loss;
  for (const at::Tensor& result : subject.run(inputs)) {
    const at::Tensor part = result.square().mean();
    loss = loss.defined() ? loss + part : part;
  }
  return loss;
}

flashlight::Capture<at::Tensor(Tensors)> capture_loss(const Subject& subject,
                                                      const Tensors& inputs) {
  flashlight::TraceSettings settings;
  settings.named = subject.named;
  return flashlight::trace_with<at::Tensor(Tensors)>(
      settings, [subject](const Tensors& x) { return loss_of(subject, x); }, inputs);
}

Tensors named(const Subject& subject, const std::vector<std::string>& names) {
  Tensors result;
  for (const std::string& name : names)
    for (const flashlight::NamedTensor& tensor : subject.named)
      if (tensor.name == name) {
        result.push_back(tensor.tensor);
        break;
      }
  return result;
}

void to_double(const Subject& subject) {
  for (const flashlight::NamedTensor& named : subject.named)
    if (named.tensor.is_floating_point())
      named.tensor.set_data(named.tensor.detach().to(torch::kDouble));
}

Tensors to_double(Tensors inputs) {
  for (at::Tensor& tensor : inputs)
    if (tensor.is_floating_point()) tensor = tensor.to(torch::kDouble);
  return inputs;
}

}  // namespace zoo
