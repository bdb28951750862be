// Llama as a step of decoding: logits = step(tokens, positions), over a cache that is written in
// place. One family holds for all positions and numbers of tokens.
//
//   zoo::Llama llama({.config = models::qwen2_5_05b()});     // random weights
//   zoo::LlamaStep step = llama.compiled({.backend = flashlight::Mosaic{}});
//   at::Tensor logits = step(prompt, positions);             // (batch, vocabulary)
//   logits = step(token, position);
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>

#include "examples/models/llama.h"
#include "flashlight/compile.h"
#include "flashlight/compiled_family.h"
#include "flashlight/family.h"

namespace zoo {

// Options of `Llama`.
struct LlamaOptions {
  models::LlamaConfig config = {};
  int64_t batch = 1;                  // sequences
  int64_t capacity = 2048;            // positions of the cache: a multiple of `block`
  at::ScalarType dtype = at::kFloat;  // of weights and cache
  bool all_logits = false;            // (batch, T, vocabulary) instead of the last token's
  int64_t block = 64;                 // attention reads a multiple of so many positions
  int64_t most_tokens = 512;          // of a call of the model; longer prompts are several calls
  uint64_t seed = 0;                  // of the weights
};

// `tokens` and `positions` (batch, T) of int64 -> logits. Writes the cache. UserError where a
// position lies beyond it, before anything is written.
using LlamaStep = std::function<at::Tensor(const at::Tensor& tokens, const at::Tensor& positions)>;

// A model of random weights and its cache. Its steps share both.
class Llama {
 public:
  explicit Llama(LlamaOptions options);

  LlamaStep eager() const;
  LlamaStep captured() const;  // replays
  LlamaStep compiled(flashlight::CompileSettings settings) const;

  using Family = flashlight::Family<at::Tensor(at::Tensor, at::Tensor, at::Tensor)>;
  // (tokens, positions, slots) to logits, for 1 to `most_tokens` tokens and each number of blocks.
  // Runs the model, at the first call, and leaves the cache as it was.
  const Family& family() const;
  const models::LlamaDecoder& decoder() const;
  const LlamaOptions& options() const;
  // The arguments of the model for tokens at these positions. UserError as of a step.
  at::Tensor slots(const at::Tensor& positions) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace zoo
