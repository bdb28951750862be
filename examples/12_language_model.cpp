// A language model token by token: Llama with a cache that is written in place, captured as one
// family for all positions, compiled; tokens as they come.
//
//   12_language_model [small | tinyllama | qwen] [float32 | bfloat16] [THREADS]
//
// Weights are random, so the tokens mean nothing; the compiled model gives those of LibTorch. Of
// the large models, it prints how long a token takes at some positions.
#include <flashlight/flashlight.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <string>

#include "examples/zoo/llama.h"

namespace {

zoo::LlamaOptions options_of(const std::string& name, at::ScalarType dtype) {
  zoo::LlamaOptions options;
  options.dtype = dtype;
  if (name == "qwen") options.config = models::qwen2_5_05b();
  if (name != "small") return options;
  options.config.vocab_size = 100;
  options.config.hidden_size = 64;
  options.config.intermediate_size = 96;
  options.config.num_hidden_layers = 2;
  options.config.num_attention_heads = 4;
  options.config.num_key_value_heads = 2;
  options.capacity = 64;
  options.block = 16;
  options.most_tokens = 32;
  return options;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The least time of a token at this position.
double seconds_of_token(const zoo::LlamaStep& step, int64_t position) {
  double least = 1e9;
  for (int i = 0; i < 10; ++i) {
    const auto start = std::chrono::steady_clock::now();
    step(torch::tensor({{17}}), torch::tensor({{position}}));
    least = std::min(least, seconds_since(start));
  }
  return least;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "small";
  const at::ScalarType dtype =
      argc > 2 && argv[2] == std::string("bfloat16") ? at::kBFloat16 : at::kFloat;
  const zoo::Llama llama(options_of(name, dtype));
  auto start = std::chrono::steady_clock::now();
  // [generate]
  const zoo::LlamaStep fast =
      llama.compiled({.backend = flashlight::Mosaic{.threads = argc > 3 ? std::stoi(argv[3]) : 2}});

  flashlight::Generation run(fast, {{1, 17, 4, 8, 50}},
                             {.max_tokens = 20, .capacity = llama.options().capacity});
  while (!run.done()) std::cout << *run.next()[0] << ' ' << std::flush;
  // [generate]
  std::cout << "\n"
            << name << " is compiled, and 20 tokens later: " << seconds_since(start) << " s\n";
  if (name != "small") {
    for (const int64_t position : {0, 512, 2000})
      std::cout << "a token at " << position << ": " << 1e3 * seconds_of_token(fast, position)
                << " ms\n";
    return 0;
  }
  const auto expected =
      flashlight::generate(llama.eager(), {{1, 17, 4, 8, 50}}, {.max_tokens = 20});
  std::cout << (run.sequences() == expected ? "equals eager\n" : "differs\n");
  return run.sequences() == expected ? 0 : 1;
}
