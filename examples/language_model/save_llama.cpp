// Captures a step of a small Llama whose cache is among its arguments, for a program that needs no
// LibTorch; prints the tokens that LibTorch goes on with.
//
//   save_llama FOLDER TOKENS ID…
#include <flashlight/generate.h>
#include <flashlight/trace.h>
#include <torch/torch.h>

#include <iostream>
#include <string>
#include <vector>

#include "examples/models/llama.h"
#include "examples/models/random_weights.h"

namespace {

constexpr int64_t kPositions = 64;

models::LlamaConfig small() {
  models::LlamaConfig config;
  config.vocab_size = 100;
  config.hidden_size = 64;
  config.intermediate_size = 96;
  config.num_hidden_layers = 3;
  config.num_attention_heads = 4;
  config.num_key_value_heads = 2;
  return config;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::cerr << "usage: " << argv[0] << " FOLDER TOKENS ID...\n";
    return 2;
  }
  const torch::NoGradGuard no_grad;
  auto model = models::make_with_random_weights<models::LlamaForCausalLM>(small());
  const at::Tensor slots = torch::arange(kPositions);
  // The module that holds a cache, for a cache of the caller's: keys and values of each layer.
  auto step = [model, slots](const at::Tensor& token, const at::Tensor& position,
                             const std::vector<at::Tensor>& caches) mutable {
    models::LlamaCache cache(model->config, /*batch=*/0, kPositions);
    for (size_t i = 0; i < cache->layers.size(); ++i)
      cache->layers[i] = {caches[2 * i], caches[2 * i + 1]};
    const at::Tensor hidden = model->hidden_states(token, position, slots, cache);
    return model->logits(hidden.select(1, -1));
  };
  const auto zeros = [&] {
    std::vector<at::Tensor> caches;
    for (const at::Tensor& one :
         models::LlamaCache(model->config, /*batch=*/1, kPositions)->buffers())
      caches.push_back(one);
    return caches;
  };
  flashlight::TraceSettings settings;
  settings.named = flashlight::named_tensors(model);
  settings.seen_once = true;
  flashlight::trace(settings, step, torch::tensor({{int64_t{1}}}), torch::tensor({{int64_t{0}}}),
                    zeros())
      .save(argv[1]);

  flashlight::TokenIds prompt;
  for (int i = 3; i < argc; ++i) prompt.push_back(std::stoll(argv[i]));
  const std::vector<at::Tensor> caches = zeros();
  const flashlight::DecodingStep one_by_one = [&](const at::Tensor& tokens,
                                                  const at::Tensor& positions) {
    at::Tensor logits;
    for (int64_t i = 0; i < tokens.size(1); ++i)
      logits = step(tokens.slice(1, i, i + 1), positions.slice(1, i, i + 1), caches);
    return logits;
  };
  const auto sequences =
      flashlight::generate(one_by_one, {prompt}, {.max_tokens = std::stoll(argv[2])});
  for (size_t i = prompt.size(); i < sequences[0].size(); ++i) std::cout << sequences[0][i] << '\n';
}
