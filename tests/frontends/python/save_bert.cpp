// BERT of examples/models, in the small configuration of originals.py, captured and saved for
// models_test.py: save_bert FOLDER
#include <ATen/core/grad_mode.h>

#include <iostream>

#include "examples/models/bert.h"
#include "flashlight/trace.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: " << argv[0] << " FOLDER\n";
    return 2;
  }
  const at::NoGradGuard no_grad;
  models::BertConfig config;
  config.vocab_size = 99;
  config.hidden_size = 32;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 4;
  config.intermediate_size = 64;
  config.max_position_embeddings = 32;
  models::BertModel model(config);
  model->eval();
  const torch::Tensor ids = torch::zeros({3, 10}, torch::kInt64);
  const torch::Tensor mask = torch::ones({3, 10}, torch::kInt64).tril(7);  // one is padded
  flashlight::TraceSettings settings;
  for (const auto& item : model->named_parameters())
    settings.named.push_back({item.key(), item.value(), composit::InputKind::parameter});
  for (const auto& item : model->named_buffers())
    settings.named.push_back({item.key(), item.value(), composit::InputKind::buffer});
  const auto run = [&](const at::Tensor& words, const at::Tensor& seen) {
    const models::BertOutput out = model->forward(words, seen);
    return std::vector<at::Tensor>{out.last_hidden_state, out.pooler_output};
  };
  flashlight::trace_with<std::vector<at::Tensor>(at::Tensor, at::Tensor)>(settings, run, ids, mask)
      .save(argv[1]);
}
