// State that a program makes anew in each call, as a cache that grows: a family over its size,
// which goes on from what the last example left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "flashlight/compiled_family.h"
#include "flashlight/family.h"

namespace flashlight {
namespace {

using testing::HasSubstr;

// Attention over all tokens so far, whose keys and values are put together anew for each.
struct Decoder {
  mutable torch::nn::Linear query{6, 6}, key{6, 6}, value{6, 6};
  mutable at::Tensor keys, values;

  void reset() const { keys = values = at::Tensor(); }
  at::Tensor operator()(const at::Tensor& token) const {
    const at::Tensor k = key->forward(token), v = value->forward(token);
    keys = keys.defined() ? torch::cat({keys, k}, 1) : k;
    values = values.defined() ? torch::cat({values, v}, 1) : v;
    const at::Tensor scores = torch::matmul(query->forward(token), keys.transpose(1, 2)) / 2.5;
    return torch::matmul(torch::softmax(scores, -1), values);
  }
  // As many tokens, from the first one.
  void decode(int64_t tokens) const {
    reset();
    for (int64_t t = 0; t < tokens; ++t) (*this)(torch::randn({2, 1, 6}));
  }
};

auto decoder_family(const Decoder& decoder) {
  const auto token = [] { return torch::randn({2, 1, 6}); };
  return trace_family(
      {.names = {"past"}}, [&decoder](const at::Tensor& x) { return decoder(x); },
      example(token()).after([&] { decoder.decode(111); }),
      example(token()).after([&] { decoder.decode(2); }), example(token()), example(token()));
}

TEST(FamilyState, ACacheThatGrowsIsAFamilyOverItsSize) {
  torch::NoGradGuard no_grad;
  const Decoder decoder;
  const auto family = decoder_family(decoder);
  Decoder eager = decoder;  // the same layers, and the same tokens so far
  for (int step = 0; step < 100; ++step) {
    const at::Tensor x = torch::randn({2, 1, 6});
    ASSERT_TRUE(torch::equal(family(x), eager(x))) << "token " << step;
  }
  EXPECT_EQ(eager.keys.size(1), 105);
  EXPECT_EQ(decoder.keys.size(1), 5);  // the program's own stays as it was
}

TEST(FamilyState, AProgramThatIsResetIsRefused) {
  torch::NoGradGuard no_grad;
  const Decoder decoder;
  const auto family = decoder_family(decoder);
  family(torch::randn({2, 1, 6}));
  decoder.reset();
  try {
    family(torch::randn({2, 1, 6}));
    FAIL();
  } catch (const composit::UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the program was reset, or went on by itself"));
  }
}

TEST(FamilyState, StateThatGrowsIsNotCompiled) {
  torch::NoGradGuard no_grad;
  const Decoder decoder;
  const auto family = decoder_family(decoder);
  try {
    compile(family, {.backend = Mosaic{}});
    FAIL();
  } catch (const composit::UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("which grows from call to call"));
  }
}

TEST(FamilyState, BeyondWhatWasShownIsRefused) {
  torch::NoGradGuard no_grad;
  const Decoder decoder;
  const auto token = [] { return torch::randn({2, 1, 6}); };
  const auto family = trace_family(
      {.names = {"past"}}, [&decoder](const at::Tensor& x) { return decoder(x); },
      example(token()).after([&] { decoder.decode(8); }),
      example(token()).after([&] { decoder.decode(2); }), example(token()), example(token()));
  for (int step = 0; step < 4; ++step) family(token());
  try {
    family(token());
    FAIL();
  } catch (const composit::UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("past = 9: shown from 2 to 8"));
  }
}

// A list of past values: each call appends its mean to those of the calls before.
TEST(FamilyState, AListOfPastValues) {
  torch::NoGradGuard no_grad;
  at::Tensor past = torch::rand({2});
  const auto program = [&past](const at::Tensor& x) {
    past = torch::cat({past, x.mean().reshape({1})});
    return x * past.mean() + past.std();
  };
  const auto run = [&] {
    for (int i = 0; i < 60; ++i) program(torch::rand({3}));
  };
  const auto x = [] { return torch::rand({3}); };
  const auto family = trace_family({.names = {"past"}}, program, example(x()).after(run),
                                   example(x()).after([&] { past = torch::rand({2}); }),
                                   example(x()), example(x()));
  at::Tensor expected = past;
  for (int i = 0; i < 50; ++i) {
    const at::Tensor now = x();
    expected = torch::cat({expected, now.mean().reshape({1})});
    ASSERT_TRUE(torch::equal(family(now), now * expected.mean() + expected.std())) << i;
  }
}

}  // namespace
}  // namespace flashlight
