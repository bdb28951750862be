// Captures steps of a small Llama whose cache is among its arguments, as a family for several
// tokens and positions, for a program that needs no LibTorch; prints the tokens that LibTorch goes
// on with.
//
//   save_llama FOLDER TOKENS ID…
#include <flashlight/family.h>
#include <flashlight/generate.h>
#include <flashlight/trace.h>
#include <torch/torch.h>

#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "examples/models/llama.h"
#include "examples/models/random_weights.h"

namespace {

// A call takes up to kMostTokens tokens, and reads a multiple of kBlock positions of the cache.
constexpr int64_t kPositions = 64, kBlock = 16, kMostTokens = 16;

using Tensors = std::vector<at::Tensor>;
using Family = flashlight::Family<at::Tensor(at::Tensor, at::Tensor, at::Tensor, Tensors)>;

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

// Keys and values of each layer. One position is never used: so all that are read are a slice,
// which LibTorch leaves out of a whole cache.
Tensors zeros(const models::LlamaConfig& config) {
  return models::LlamaCache(config, /*batch=*/1, kPositions + 1)->buffers();
}

// The module that holds a cache, for a cache of the caller's.
struct Step {
  models::LlamaForCausalLM model;

  at::Tensor operator()(const at::Tensor& tokens, const at::Tensor& positions,
                        const at::Tensor& slots, const Tensors& caches) {
    models::LlamaCache cache(model->config, /*batch=*/0, kPositions + 1);
    for (size_t i = 0; i < cache->layers.size(); ++i)
      cache->layers[i] = {caches[2 * i], caches[2 * i + 1]};
    return model->logits(model->hidden_states(tokens, positions, slots, cache).select(1, -1));
  }
};

Family family_of(Step step) {
  flashlight::TraceSettings settings;
  settings.named = flashlight::named_tensors(step.model);
  settings.seen_once = true;  // examples are each other's second looks
  const at::Tensor slots = torch::arange(kPositions);
  const auto tokens = [&](int64_t count) { return slots.slice(0, 0, count).unsqueeze(0).clone(); };
  std::vector<flashlight::CaptureBase> captures;
  for (const auto& [count, length] :
       {std::pair<int64_t, int64_t>{2, kBlock}, {3, 2 * kBlock}, {kMostTokens, kPositions}})
    captures.push_back(flashlight::trace(settings, step, tokens(count), tokens(count),
                                         slots.slice(0, 0, length).clone(),
                                         zeros(step.model->config)));
  Family family(std::move(captures), {.names = {"tokens", "length"}});
  // LibTorch leaves out operators where a size is 1, so that is never fitted.
  for (const int64_t length : {kBlock, kPositions}) {
    const flashlight::CheckReport report = family.check(
        tokens(1), tokens(1), slots.slice(0, 0, length).clone(), zeros(step.model->config));
    if (!report) throw std::runtime_error(flashlight::str(report));
  }
  return family;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 4) {
    std::cerr << "usage: " << argv[0] << " FOLDER TOKENS ID...\n";
    return 2;
  }
  const torch::NoGradGuard no_grad;
  Step step{models::make_with_random_weights<models::LlamaForCausalLM>(small())};
  for (at::Tensor& parameter : step.model->parameters())
    parameter.mul_(6);  // so that tokens depend on those before
  family_of(step).save(argv[1]);

  flashlight::TokenIds prompt;
  for (int i = 3; i < argc; ++i) prompt.push_back(std::stoll(argv[i]));
  const Tensors caches = zeros(step.model->config);
  const at::Tensor slots = torch::arange(kPositions);
  const flashlight::DecodingStep all = [&](const at::Tensor& tokens, const at::Tensor& positions) {
    return step(tokens, positions, slots, caches);
  };
  const auto sequences = flashlight::generate(all, {prompt}, {.max_tokens = std::stoll(argv[2])});
  for (size_t i = prompt.size(); i < sequences[0].size(); ++i) std::cout << sequences[0][i] << '\n';
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
