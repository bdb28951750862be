// A Llama of random weights that runs in milliseconds.
//
//   const zoo::Llama llama(test::small_llama(2));
#pragma once

#include "examples/zoo/llama.h"

namespace flashlight::test {

inline zoo::LlamaOptions small_llama(int64_t batch = 1) {
  zoo::LlamaOptions options;
  options.config.vocab_size = 60;
  options.config.hidden_size = 64;
  options.config.intermediate_size = 96;
  options.config.num_hidden_layers = 3;
  options.config.num_attention_heads = 4;
  options.config.num_key_value_heads = 2;
  options.batch = batch;
  options.capacity = 64;
  options.block = 16;
  options.most_tokens = 32;
  return options;
}

}  // namespace flashlight::test
