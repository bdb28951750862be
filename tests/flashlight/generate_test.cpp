// Tokens that a generation gives, beside those of a plain loop over LibTorch's operators.
#include "flashlight/generate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "examples/zoo/subject.h"
#include "tests/flashlight/small_llama.h"
#include "tests/user_error.h"

namespace flashlight {
namespace {

using composit::user_error;
using testing::HasSubstr;
using testing::Optional;

constexpr int64_t kWords = 60;

zoo::LlamaOptions small_model(int64_t batch, bool all_logits = false) {
  zoo::LlamaOptions options = test::small_llama(batch);
  options.capacity = 48;
  options.all_logits = all_logits;
  return options;
}

// The next token of each row, number by number: what may be drawn is found by sorting.
at::Tensor next_of(const at::Tensor& logits, const GenerateOptions& options) {
  if (options.temperature == 0) return logits.argmax(-1);
  at::Tensor x = (logits / options.temperature).contiguous();
  for (int64_t row = 0; row < x.size(0); ++row) {
    float* const values = x[row].data_ptr<float>();
    std::vector<size_t> order(kWords);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return values[a] > values[b]; });
    size_t count = kWords;
    if (options.top_k > 0) count = static_cast<size_t>(options.top_k);
    double total = 0, before = 0;
    for (size_t i = 0; i < count; ++i) total += std::exp(double(values[order[i]]));
    for (size_t i = 0; i < kWords; ++i) {
      const double share = std::exp(double(values[order[i]])) / total;
      if (i >= count || before >= options.top_p) values[order[i]] = -INFINITY;
      before += share;
    }
  }
  return at::multinomial(at::softmax(x, -1), 1, false, options.generator).squeeze(-1);
}

// Without a cache: all tokens again and again, each sequence alone.
std::vector<TokenIds> plain(const zoo::Llama& llama, std::vector<TokenIds> sequences,
                            const GenerateOptions& options) {
  const torch::NoGradGuard no_grad;
  models::LlamaForCausalLM model = llama.decoder()->causal;
  for (int64_t i = 0; i < options.max_tokens; ++i) {
    std::vector<at::Tensor> last;
    for (const TokenIds& sequence : sequences)
      last.push_back(model->forward(torch::tensor(sequence).unsqueeze(0)).select(1, -1)[0]);
    const at::Tensor tokens = next_of(torch::stack(last), options);
    for (size_t row = 0; row < sequences.size(); ++row)
      sequences[row].push_back(tokens[int64_t(row)].item<int64_t>());
  }
  return sequences;
}

GenerateOptions drawing(double temperature, int64_t top_k, double top_p) {
  GenerateOptions options;
  options.max_tokens = 12;
  options.temperature = temperature;
  options.top_k = top_k;
  options.top_p = top_p;
  options.generator = zoo::generator(7);
  return options;
}

TEST(GenerateTest, GivesTheTokensOfAPlainLoop) {
  const std::vector<TokenIds> prompts = {{1, 17, 4}, {9, 2, 33}};
  const zoo::Llama llama(small_model(2));
  for (const auto& [temperature, top_k, top_p] : std::vector<std::tuple<double, int64_t, double>>{
           {0, 0, 1}, {1, 0, 1}, {0.7, 5, 1}, {1.5, 0, 0.6}, {0.9, 20, 0.8}, {2, 1000, 1}}) {
    const std::vector<TokenIds> expected =
        plain(llama, prompts, drawing(temperature, std::min(top_k, kWords), top_p));
    for (const bool replays : {false, true})
      EXPECT_EQ(generate(replays ? llama.captured() : llama.eager(), prompts,
                         drawing(temperature, top_k, top_p)),
                expected)
          << temperature << " " << top_k << " " << top_p;
  }
}

TEST(GenerateTest, PromptsHaveDifferentLengths) {
  const std::vector<TokenIds> prompts = {{1, 17, 4, 8, 50}, {9, 2}, {5}};
  const zoo::Llama llama(small_model(3, /*all_logits=*/true));
  const std::vector<TokenIds> expected = plain(llama, prompts, drawing(1, 0, 0.9));
  EXPECT_EQ(generate(llama.eager(), prompts, drawing(1, 0, 0.9)), expected);
  const zoo::Llama last_only(small_model(3));
  EXPECT_THAT(
      user_error([&] { generate(last_only.eager(), prompts, drawing(1, 0, 0.9)); }),
      Optional(HasSubstr("expected logits of all tokens, [3, 5, vocabulary], since prompts have "
                         "different lengths, received [3, 60]")));
}

TEST(GenerateTest, GoesOnFromAState) {
  const zoo::Llama llama(small_model(2, true));
  const std::vector<TokenIds> prompts = {{1, 17, 4}, {9, 2}};
  const std::vector<TokenIds> expected = plain(llama, prompts, drawing(1, 10, 1));
  Generation first(llama.eager(), prompts, drawing(1, 10, 1));
  for (int i = 0; i < 5; ++i) first.next();
  const GenerationState state = first.state();
  first.next();  // what happens behind the state does not count
  GenerateOptions options = drawing(1, 10, 1);
  options.generator = zoo::generator(99);
  Generation second(llama.captured(), state, options);
  while (!second.done()) second.next();
  EXPECT_EQ(second.sequences(), expected);

  GenerationState elsewhere = state;  // another cache
  elsewhere.cached = false;
  const zoo::Llama other(small_model(2, true));
  Generation third(other.eager(), elsewhere, options);
  while (!third.done()) third.next();
  EXPECT_EQ(third.sequences(), expected);
}

TEST(GenerateTest, IsInterruptedWithoutLoss) {
  const zoo::Llama llama(small_model(1));
  const std::vector<TokenIds> prompts = {{1, 17, 4}};
  const std::vector<TokenIds> expected = plain(llama, prompts, drawing(1, 0, 1));
  int calls = 0;
  const zoo::LlamaStep eager = llama.eager();
  const DecodingStep step = [&](const at::Tensor& tokens, const at::Tensor& positions) {
    at::Tensor logits = eager(tokens, positions);
    if (++calls % 3 == 0) throw std::runtime_error("interrupted");
    return logits;
  };
  Generation run(step, prompts, drawing(1, 0, 1));
  size_t interruptions = 0;
  while (!run.done()) {
    try {
      run.next();
    } catch (const std::runtime_error&) {
      ++interruptions;
    }
  }
  EXPECT_EQ(interruptions, 5);
  EXPECT_EQ(run.sequences(), expected);

  TokenIds streamed;
  const auto stopped = generate(eager, prompts, drawing(1, 0, 1), [&](const auto& tokens) {
    streamed.push_back(*tokens[0]);
    return streamed.size() < 4;
  });
  EXPECT_EQ(stopped[0], TokenIds(expected[0].begin(), expected[0].begin() + 7));
  EXPECT_EQ(streamed, TokenIds(expected[0].begin() + 3, expected[0].begin() + 7));
}

TEST(GenerateTest, SequencesStop) {
  const zoo::Llama llama(small_model(2));
  const std::vector<TokenIds> prompts = {{1, 17, 4}, {9, 2, 33}};
  const std::vector<TokenIds> whole = plain(llama, prompts, drawing(1, 0, 1));
  const auto generated = [&](size_t row, size_t count) {
    return TokenIds(whole[row].begin(), whole[row].begin() + 3 + static_cast<int64_t>(count));
  };
  GenerateOptions options = drawing(1, 0, 1);
  options.stop_sequences = {{whole[0][6], whole[0][7]}};
  options.stop_tokens = {whole[1][5]};
  Generation run(llama.eager(), prompts, options);
  while (!run.done()) run.next();
  // The first place in a sequence where one of them is.
  const auto stops = [&](size_t row) {
    for (size_t i = 3; i < whole[row].size(); ++i) {
      if (whole[row][i] == options.stop_tokens[0]) return std::pair(i - 2, Stop::token);
      if (i > 3 && whole[row][i - 1] == whole[0][6] && whole[row][i] == whole[0][7])
        return std::pair(i - 2, Stop::sequence);
    }
    return std::pair(size_t{12}, Stop::max_tokens);
  };
  for (const size_t row : {0, 1}) {
    EXPECT_EQ(run.sequences()[row], generated(row, stops(row).first)) << row;
    EXPECT_EQ(run.stop(row), stops(row).second) << row;
  }
  EXPECT_NE(run.stop(0), Stop::max_tokens);
  EXPECT_THAT(user_error([&] { run.next(); }), Optional(HasSubstr("all have stopped")));
}

TEST(GenerateTest, StopsWhereTheCacheIsFull) {
  const zoo::Llama llama(small_model(1));
  GenerateOptions options;
  options.max_tokens = 100;
  options.capacity = 48;
  Generation run(llama.eager(), {TokenIds(40, 3)}, options);
  while (!run.done()) run.next();
  EXPECT_EQ(run.sequences()[0].size(), 49) << "the last one is in no cache";
  EXPECT_EQ(run.stop(0), Stop::capacity);
  options.capacity = 0;
  Generation beyond(llama.eager(), {TokenIds(40, 3)}, options);
  EXPECT_THAT(user_error([&] {
                while (!beyond.done()) beyond.next();
              }),
              Optional(HasSubstr("expected positions from 0 to 47")));
  EXPECT_EQ(beyond.sequences(), run.sequences());
}

TEST(GenerateTest, RefusesWrongUse) {
  const DecodingStep step = [](const at::Tensor& tokens, const at::Tensor&) {
    return torch::zeros({tokens.size(0), 7});
  };
  const auto expect = [&](const DecodingStep& by, const std::vector<TokenIds>& prompts,
                          GenerateOptions options, const std::string& text) {
    if (options.max_tokens == 0) options.max_tokens = 1;
    EXPECT_THAT(user_error([&] { generate(by, prompts, options); }), Optional(HasSubstr(text)));
  };
  EXPECT_THAT(user_error([&] { generate(step, {{1}}, {}); }),
              Optional(HasSubstr("max_tokens: expected at least 1, received 0")));
  expect(step, {{1}}, {.temperature = -1}, "temperature: expected a number from 0 on");
  expect(step, {{1}}, {.temperature = NAN}, "temperature: expected");
  expect(step, {{1}}, {.top_k = -1}, "top_k: expected");
  expect(step, {{1}}, {.top_p = 0}, "top_p: expected a probability above 0, received 0");
  expect(step, {{1}}, {.top_p = 1.5}, "top_p: expected");
  expect(step, {{1}}, {.capacity = -3}, "capacity: expected");
  expect(step, {{1}}, {.stop_sequences = {{}}}, "stop_sequences: expected tokens");
  expect(step, {}, {}, "expected a prompt at least");
  expect(step, {{1}, {}}, {}, "sequence 1: expected a prompt of a token at least");
  expect(step, {{1, -4}}, {}, "sequence 0: expected token numbers, received -4");
  expect(step, {{1, 2, 3}}, {.capacity = 2}, "expected at most 2 tokens");
  const auto giving = [](const at::Tensor& logits) {
    return [logits](const at::Tensor&, const at::Tensor&) { return logits; };
  };
  for (const at::Tensor& wrong :
       {at::Tensor(), torch::zeros({7}), torch::zeros({2, 7}), torch::zeros({1, 2, 7}),
        torch::zeros({1, 7}, torch::kLong), torch::zeros({1, 0})})
    expect(giving(wrong), {{1}}, {}, "expected logits of a step");
  expect(giving(torch::full({1, 7}, NAN)), {{1}}, {}, "received NaN for sequence 0");
  expect(giving(torch::full({1, 7}, -INFINITY)), {{1}}, {}, "-inf for all tokens for sequence 0");
  expect(giving(torch::arange(7.0).unsqueeze(0)), {{1}}, {.temperature = 1e-40},
         "infinite at a temperature of 1e-40 for sequence 0");
}

// A sequence that has stopped may come to where its model gives no numbers.
TEST(GenerateTest, WhatBelongsToNobodyIsNotLookedAt) {
  for (const double temperature : {0.0, 1.0}) {
    GenerateOptions options;
    options.max_tokens = 4;
    options.temperature = temperature;
    options.stop_tokens = {3};
    const DecodingStep stops_first = [&](const at::Tensor& tokens, const at::Tensor& positions) {
      at::Tensor logits = torch::zeros({tokens.size(0), 7});
      logits[0][3] = logits[1][4] = 1e9;
      if (positions.max().item<int64_t>() > 0) logits[0].fill_(NAN);
      return logits;
    };
    EXPECT_THAT(
        generate(stops_first, {{1}, {1}}, options),
        testing::ElementsAre(testing::ElementsAre(1, 3), testing::ElementsAre(1, 4, 4, 4, 4)));
  }
}

}  // namespace
}  // namespace flashlight
