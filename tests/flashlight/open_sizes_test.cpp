// BERT of examples/models, captured at two numbers of tokens, lowered to one program with a named
// size, and interpreted at these and a third, against LibTorch.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "examples/models/bert.h"
#include "flashlight/loops/interpret.h"
#include "flashlight/loops/lower.h"
#include "flashlight/loops/program_text.h"
#include "flashlight/loops/sizes.h"
#include "flashlight/loops/unify.h"
#include "flashlight/loops/verify.h"
#include "flashlight/trace.h"
#include "tracer/convert.h"

namespace flashlight {
namespace {

using loops::Program;
using Tensors = std::vector<at::Tensor>;

class SmallBert {
 public:
  SmallBert() : model_(config()) {
    model_->eval();
    for (const auto& item : model_->named_parameters())
      settings_.named.push_back({item.key(), item.value(), composit::InputKind::parameter});
    for (const auto& item : model_->named_buffers())
      settings_.named.push_back({item.key(), item.value(), composit::InputKind::buffer});
  }

  // Words, and which of them are seen: of the last text, all but two.
  static Tensors words(int64_t batch, int64_t tokens) {
    const at::Tensor ids = (torch::arange(batch * tokens) * 7 % 99).reshape({batch, tokens});
    at::Tensor seen = torch::ones({batch, tokens}, torch::kInt64);
    seen[-1].slice(0, tokens - 2).zero_();
    return {ids, seen};
  }
  Tensors operator()(const Tensors& words) {
    const models::BertOutput out = model_->forward(words[0], words[1]);
    return {out.last_hidden_state, out.pooler_output};
  }
  auto captured(const Tensors& words) {
    const auto run = [&](const at::Tensor& ids, const at::Tensor& seen) {
      return (*this)({ids, seen});
    };
    return trace_with<Tensors(at::Tensor, at::Tensor)>(settings_, run, words[0], words[1]);
  }

 private:
  static models::BertConfig config() {
    models::BertConfig config;
    config.vocab_size = 99;
    config.hidden_size = 32;
    config.num_hidden_layers = 2;
    config.num_attention_heads = 4;
    config.intermediate_size = 64;
    config.max_position_embeddings = 64;
    return config;
  }

  models::BertModel model_;
  TraceSettings settings_;
};

Program lowered(SmallBert& bert, const Tensors& words) {
  return loops::lower(bert.captured(words).graph());
}

// At these sizes, results are those of LibTorch, and the bound program is what is lowered there.
void expect_right(SmallBert& bert, const Program& open, const Tensors& words) {
  const auto captured = bert.captured(words);
  std::vector<composit::Array> inputs;
  for (const at::Tensor& input : captured.bind(words)) inputs.push_back(tracer::to_array(input));
  EXPECT_EQ(loops::print(loops::bind_sizes(open, loops::sizes_given(open, inputs))),
            loops::print(loops::lower(captured.graph())));
  const std::vector<composit::Array> results = loops::interpret(open, inputs);
  const Tensors expected = bert(words);
  ASSERT_EQ(results.size(), expected.size());
  for (size_t i = 0; i < results.size(); ++i) {
    const at::Tensor ours = tracer::to_tensor(results[i]);
    ASSERT_EQ(ours.sizes(), expected[i].sizes());
    EXPECT_LT((ours - expected[i]).abs().max().item<double>(), 1e-5) << "result " << i;
  }
}

TEST(OpenSizes, TwoBindingsOfBertAreOneProgram) {
  const at::NoGradGuard no_grad;
  SmallBert bert;
  const Program open = loops::unify(
      {lowered(bert, bert.words(1, 17)), lowered(bert, bert.words(1, 24))}, {.names = {"tokens"}});
  EXPECT_EQ(loops::fault_of(open), std::nullopt);
  EXPECT_EQ(loops::print(loops::parse_program(loops::print(open))), loops::print(open));
  for (const int64_t tokens : {17, 24, 20}) {
    SCOPED_TRACE(tokens);
    expect_right(bert, open, bert.words(1, tokens));
  }
}

TEST(OpenSizes, TwoSizesOfBertVaryAtOnce) {
  const at::NoGradGuard no_grad;
  SmallBert bert;
  const Program open =
      loops::unify({lowered(bert, bert.words(2, 17)), lowered(bert, bert.words(4, 24))},
                   {.names = {"batch", "tokens"}});
  for (const auto& [batch, tokens] : {std::pair(2, 17), std::pair(4, 24), std::pair(3, 20)}) {
    SCOPED_TRACE(tokens);
    expect_right(bert, open, bert.words(batch, tokens));
  }
}

}  // namespace
}  // namespace flashlight
