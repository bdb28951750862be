#include <torch/torch.h>

#include "examples/models/bert.h"
#include "examples/models/clip_text.h"
#include "examples/models/random_weights.h"
#include "examples/models/resnet.h"
#include "examples/models/unet.h"
#include "examples/models/vae.h"
#include "examples/zoo/subject.h"

namespace zoo {
namespace {

using models::make_with_random_weights;

models::BertConfig small_bert_config() {
  models::BertConfig config;
  config.vocab_size = 1000;
  config.hidden_size = 256;
  config.num_hidden_layers = 4;
  config.num_attention_heads = 4;
  config.intermediate_size = 1024;
  return config;
}

Tensors image_batch(uint64_t seed) {
  return {noise({4, 3, 64, 64}, seed), tokens({4}, 1000, seed + 1)};
}

Tensors token_batch(uint64_t seed) {
  return {tokens({2, 32}, 1000, seed), padding_mask(2, 32), noise({2, 256}, seed + 1)};
}

// A model with an optimizer that has made its first step: momentum buffers exist, as in the middle
// of a training.
template <class Model>
Subject training_step(std::string name, Model model,
                      std::function<at::Tensor(Model&, const Tensors&)> loss,
                      std::function<Tensors(uint64_t)> inputs) {
  auto optimizer = std::make_shared<torch::optim::SGD>(
      model->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9));
  const auto step = [optimizer, loss](Model& trained, const Tensors& tensors) -> Tensors {
    optimizer->zero_grad();
    at::Tensor value = loss(trained, tensors);
    value.backward();
    optimizer->step();
    return {value.detach()};
  };
  model->train();
  step(model, inputs(0));
  Subject result = subject<Model>(std::move(name), model, step, inputs, true);
  for (const auto& parameter : model->named_parameters()) {
    const auto& state = optimizer->state().at(parameter.value().unsafeGetTensorImpl());
    const auto& momentum =
        static_cast<const torch::optim::SGDParamState&>(*state).momentum_buffer();
    result.named.push_back({parameter.key() + ".momentum", momentum, composit::InputKind::buffer});
  }
  return result;
}

}  // namespace

namespace {

Subject resnet(std::string name, models::ResNet model) {
  return subject<models::ResNet>(
      std::move(name), std::move(model),
      [](models::ResNet& net, const Tensors& x) -> Tensors { return {net->forward(x[0])}; },
      [](uint64_t seed) -> Tensors {
        return {noise({1, 3, 224, 224}, seed)};
      });
}

}  // namespace

Subject resnet50() {
  return resnet("resnet50", make_with_random_weights<models::ResNet>(models::ResNetConfig()));
}

Subject resnet18() {
  auto model = models::resnet18();
  models::fill_random_weights(*model);
  model->eval();
  return resnet("resnet18", std::move(model));
}

Subject bert_base() {
  return subject<models::BertModel>(
      "bert_base", make_with_random_weights<models::BertModel>(models::BertConfig()),
      [](models::BertModel& model, const Tensors& x) -> Tensors {
        const auto out = model->forward(x[0], x[1]);
        return {out.last_hidden_state, out.pooler_output};
      },
      [](uint64_t seed) -> Tensors {
        return {tokens({1, 128}, 30522, seed), padding_mask(1, 128)};
      });
}

Subject unet() { return unet(32); }

Subject unet(int64_t latents) {
  using Model = models::UNet2DConditionModel;
  return subject<Model>(
      "sd_unet", make_with_random_weights<Model>(models::UnetConfig()),
      [](Model& model, const Tensors& x) -> Tensors { return {model->forward(x[0], x[1], x[2])}; },
      [latents](uint64_t seed) -> Tensors {
        return {noise({1, 4, latents, latents}, seed), torch::tensor({500}),
                noise({1, 77, 768}, seed + 1)};
      });
}

Subject vae_decoder() {
  using Model = models::AutoencoderKL;
  return subject<Model>(
      "sd_vae_decoder", make_with_random_weights<Model>(models::VaeConfig()),
      [](Model& model, const Tensors& x) -> Tensors { return {model->decode(x[0])}; },
      [](uint64_t seed) -> Tensors {
        return {noise({1, 4, 32, 32}, seed)};
      });
}

Subject clip_text() {
  using Model = models::ClipTextModel;
  return subject<Model>(
      "clip_text", make_with_random_weights<Model>(models::ClipTextConfig()),
      [](Model& model, const Tensors& x) -> Tensors {
        return {model->forward(x[0]).last_hidden_state};
      },
      [](uint64_t seed) -> Tensors {
        return {tokens({1, 77}, 49408, seed)};
      });
}

Subject small_encoder() {
  models::BertConfig config = small_bert_config();
  config.hidden_size = 64;
  config.intermediate_size = 256;
  config.num_hidden_layers = 2;
  return subject<models::BertModel>(
      "small_encoder", make_with_random_weights<models::BertModel>(config),
      [](models::BertModel& model, const Tensors& x) -> Tensors {
        return {model->forward(x[0], x[1]).pooler_output};
      },
      [](uint64_t seed) -> Tensors {
        return {tokens({1, 16}, 1000, seed), padding_mask(1, 16)};
      });
}

Subject resnet18_train() {
  auto model = models::resnet18();
  models::fill_random_weights(*model);
  model->train();
  return subject<models::ResNet>(
      "resnet18_train", model,
      [](models::ResNet& resnet, const Tensors& x) -> Tensors { return {resnet->forward(x[0])}; },
      image_batch);
}

Subject bert_train() {
  auto model = models::BertModel(small_bert_config());
  models::fill_random_weights(*model);
  model->train();
  return subject<models::BertModel>(
      "bert_train", model,
      [](models::BertModel& bert, const Tensors& x) -> Tensors {
        return {bert->forward(x[0], x[1]).pooler_output};
      },
      token_batch);
}

Subject resnet18_step() {
  auto model = models::resnet18();
  models::fill_random_weights(*model);
  return training_step<models::ResNet>(
      "resnet18_step", model,
      [](models::ResNet& resnet, const Tensors& x) {
        return torch::nn::functional::cross_entropy(resnet->forward(x[0]), x[1]);
      },
      image_batch);
}

Subject bert_step() {
  auto model = models::BertModel(small_bert_config());
  models::fill_random_weights(*model);
  return training_step<models::BertModel>(
      "bert_step", model,
      [](models::BertModel& bert, const Tensors& x) {
        return torch::mse_loss(bert->forward(x[0], x[1]).pooler_output, x[2]);
      },
      token_batch);
}

}  // namespace zoo
