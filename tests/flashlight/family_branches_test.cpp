// Programs that branch on values, and loop until one says otherwise: examples of both ways are one
// family, with the bits of eager on inputs that nobody showed; an answer that nobody showed is
// refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>

#include "composit/ops/functions.h"
#include "flashlight/compiled_family.h"
#include "flashlight/family.h"
#include "tests/user_error.h"

namespace flashlight {
namespace {

using composit::user_error;
using testing::Contains;
using testing::HasSubstr;
using Tensors = std::vector<at::Tensor>;

// Sums of `positive_of` are greater than 0, those of `negative_of` less.
at::Tensor positive_of(int64_t batch, int64_t tokens) {
  return torch::rand({batch, tokens, 8}) + 0.1;
}
at::Tensor negative_of(int64_t batch, int64_t tokens) { return -positive_of(batch, tokens); }

template <class Program, class Run>
void expect_bits(const Program& program, const Run& run, const Tensors& inputs) {
  for (const at::Tensor& x : inputs)
    EXPECT_TRUE(torch::equal(run(x.clone()), program(x.clone()))) << x.sizes() << x.sum();
}

// Layers that one way needs and another does not; a write in place in one of them.
struct TwoWays {
  mutable torch::nn::Linear first{8, 8}, second{8, 8}, last{8, 3};

  at::Tensor operator()(const at::Tensor& x) const {
    at::Tensor y = first->forward(x);
    if ((x.sum() > 0).item<bool>()) {
      y = torch::relu(second->forward(y)).transpose(0, 1).contiguous().transpose(0, 1);
    } else {
      y = y * 2;
      y.select(1, 0).add_(1);
    }
    return last->forward(y);
  }
};

class Branches : public testing::Test {
 protected:
  struct Seed {
    Seed() { torch::manual_seed(3); }
  } seed_;  // before weights are made
  torch::NoGradGuard no_grad_;
  TwoWays program_;
};

TEST_F(Branches, BothWaysHaveEagersBits) {
  const auto family =
      trace_family(program_, example(positive_of(2, 4)), example(negative_of(2, 4)));
  expect_bits(program_, family,
              {positive_of(2, 4), negative_of(2, 4), positive_of(2, 4), negative_of(2, 4)});
  EXPECT_THAT(family.assumptions(), Contains(HasSubstr("reads true: case 1, false: case 2")));
  const CheckReport report = family.check(negative_of(2, 4));
  EXPECT_TRUE(report) << str(report);
}

TEST_F(Branches, AtAllSizes) {
  const auto family =
      trace_family(program_, example(positive_of(2, 16)), example(positive_of(3, 23)),
                   example(positive_of(5, 12)), example(negative_of(3, 11)),
                   example(negative_of(2, 17)), example(negative_of(6, 22)));
  for (const auto& [batch, tokens] : {std::pair{4, 21}, {2, 13}, {5, 19}})
    expect_bits(program_, family, {positive_of(batch, tokens), negative_of(batch, tokens)});
}

TEST_F(Branches, AWayIsKnownWhereItWasShown) {
  const auto family =
      trace_family(program_, example(positive_of(2, 16)), example(positive_of(3, 23)),
                   example(positive_of(5, 12)), example(negative_of(3, 16)));
  expect_bits(program_, family, {positive_of(4, 21), negative_of(3, 16), positive_of(3, 16)});
  EXPECT_THAT(user_error([&] { family(negative_of(4, 21)); }).value_or(""),
              HasSubstr("[replay] guard: "));
}

TEST_F(Branches, BackendsGoBothWays) {
  const auto family =
      trace_family(program_, example(positive_of(2, 4)), example(negative_of(2, 4)));
  for (const CompileSettings& settings :
       {CompileSettings{.backend = Cpp{}}, CompileSettings{.backend = Mosaic{}}}) {
    const auto fast = compile(family, settings);
    for (const at::Tensor& x : {positive_of(2, 4), negative_of(2, 4), negative_of(2, 4)})
      EXPECT_TRUE(torch::allclose(fast(x), program_(x), 1e-5, 1e-6));
    EXPECT_EQ(fast.programs(), 1U);
  }
}

TEST(BranchesWithGradients, AreAutograds) {
  torch::manual_seed(4);
  const TwoWays program;
  const auto family = trace_family(program, example(positive_of(2, 4)), example(negative_of(2, 4)));
  const auto compiled = compile(family, {.backend = Mosaic{}});
  for (const at::Tensor& x : {positive_of(2, 4), negative_of(2, 4)}) {
    const Tensors weights = {program.first->weight, program.last->weight};
    const Tensors expected = torch::autograd::grad({program(x).square().sum()}, weights);
    const Tensors received = torch::autograd::grad({compiled(x).square().sum()}, weights);
    for (size_t i = 0; i < weights.size(); ++i)
      EXPECT_TRUE(torch::allclose(received[i], expected[i], 1e-4, 1e-5));
  }
}

TEST_F(Branches, NestedAndEarlyReturn) {
  const auto program = [this](const at::Tensor& x) {
    const at::Tensor y = program_.first->forward(x);
    if ((x.sum() < -100).item<bool>()) return y;
    at::Tensor z = torch::tanh(y);
    if (x.select(0, 0).lt(0).any().item<bool>()) {
      z = z + 1;
      if ((z.mean() > 1).item<bool>()) z = z * y;
    }
    return z * 2;
  };
  const Tensors shown = {positive_of(2, 4), negative_of(2, 4), negative_of(2, 4) * 100,
                         torch::randn({2, 4, 8}), torch::randn({2, 4, 8})};
  const auto family = trace_family(program, example(shown[0]), example(shown[1]), example(shown[2]),
                                   example(shown[3]), example(shown[4]));
  Tensors others = {positive_of(2, 4), negative_of(2, 4) * 100};
  for (int i = 0; i < 6; ++i) others.push_back(torch::randn({2, 4, 8}));
  size_t right = 0;
  for (const at::Tensor& x : others) {
    const auto refusal = user_error([&] { EXPECT_TRUE(torch::equal(family(x), program(x))); });
    if (!refusal)
      ++right;
    else  // a pair of answers that no example gave
      EXPECT_THAT(*refusal, HasSubstr("[replay] guard: "));
  }
  EXPECT_GE(right, 5U);
}

TEST_F(Branches, AnArmMayWriteState) {
  at::Tensor total = torch::zeros({8}), count = torch::zeros({});
  const auto program = [&](const at::Tensor& x) {
    if (x.isfinite().all().item<bool>()) {
      total.add_(x.sum(0).sum(0));
      count += 1;
    }
    return total / count.clamp_min(1);
  };
  const at::Tensor broken = positive_of(2, 4) / 0;
  const auto family = trace_family(program, example(positive_of(2, 4)), example(broken));
  const at::Tensor x = positive_of(2, 4);
  const at::Tensor total_before = total.clone(), count_before = count.clone();
  const at::Tensor expected = program(x);
  const at::Tensor total_after = total.clone();
  total.copy_(total_before);
  count.copy_(count_before);
  EXPECT_TRUE(torch::equal(family(broken), total / count));
  EXPECT_TRUE(torch::equal(total, total_before));
  EXPECT_TRUE(torch::equal(family(x), expected));
  EXPECT_TRUE(torch::equal(total, total_after));
  EXPECT_TRUE(torch::equal(count, count_before + 1));
}

// As often as the values want; sizes of the loop are free, too.
TEST_F(Branches, AWhileLoopTakesAsManyTripsAsTheProgram) {
  const auto program = [this](const at::Tensor& x) {
    at::Tensor y = program_.first->forward(x), last = y;
    while ((y.abs().max() > 0.05).item<bool>()) {
      last = y;
      y = torch::matmul(y, program_.second->weight);
      y.mul_(0.9);
    }
    return program_.last->forward(y + last);
  };
  const auto input = [](int64_t batch, double size) { return torch::randn({batch, 8}) * size; };
  const auto family = trace_family(program, example(input(2, 1)), example(input(3, 0.6)),
                                   example(input(5, 30)), example(input(7, 8)));
  ASSERT_EQ(family.cases().loops.size(), 1U) << testing::PrintToString(family.assumptions());
  size_t right = 0;
  for (const double size : {0.5, 0.8, 1.0, 3.0, 10.0, 20.0}) {
    const at::Tensor x = input(4, size);
    try {
      const at::Tensor y = family(x);
      EXPECT_TRUE(torch::equal(y, program(x)));
      ++right;
    } catch (const composit::UserError&) {  // fewer or more trips than were shown
    }
  }
  EXPECT_GE(right, 4U);
  const auto fast = compile(family, {.backend = Cpp{}});
  const at::Tensor x = input(5, 4);
  EXPECT_TRUE(torch::allclose(fast(x), program(x), 1e-4, 1e-5));
}

TEST_F(Branches, AnAnswerNobodyShowedIsRefused) {
  const auto program = [](const at::Tensor& x) {
    if ((x.sum() > 0).item<bool>()) return (x.max() > 5).item<bool>() ? x * 3 : x * 2;
    return x;
  };
  auto family = trace_family(program, example(positive_of(2, 4)), example(negative_of(2, 4)));
  const at::Tensor large = positive_of(2, 4) * 100;
  EXPECT_THAT(user_error([&] { family(large); }).value_or(""), HasSubstr("[replay] guard: "));
  const CheckReport report = family.check(large);
  EXPECT_THAT(report.error, HasSubstr("the program goes a way that no example shows"));
  family.extend(large);
  expect_bits(program, family, {large, positive_of(2, 4), negative_of(2, 4)});
}

// A comparison of two tensors, and a number that only one way reads.
TEST_F(Branches, EqualIsAQuestionToo) {
  const at::Tensor mask = torch::ones({2, 4, 8});
  const auto program = [&](const at::Tensor& x) {
    const at::Tensor y = program_.first->forward(x);
    if (torch::equal(x.sign(), mask)) return y * 2;
    return y * x.le(0).all().item<int64_t>();
  };
  const auto family = trace_family(program, example(positive_of(2, 4)), example(negative_of(2, 4)));
  expect_bits(program, family, {positive_of(2, 4), negative_of(2, 4)});
  EXPECT_THAT(user_error([&] {
                family(torch::randn({2, 4, 8}));
              }).value_or(""),
              HasSubstr("[replay] guard: "));
}

TEST_F(Branches, SavedAndLoaded) {
  const auto family =
      trace_family(program_, example(positive_of(2, 4)), example(negative_of(2, 4)));
  const auto folder = std::filesystem::path(testing::TempDir()) / "family_with_branches";
  family.save(folder);
  const auto loaded = load_family(folder);
  for (const at::Tensor& x : {positive_of(2, 4), negative_of(2, 4)})
    EXPECT_TRUE(torch::equal(loaded(x).at(0), program_(x)));
}

// A program that compares numbers in C++, a loop among them, and the lines of its reads.
struct Compares {
  mutable torch::nn::Linear first{8, 8}, second{8, 8};
  mutable int sum_line = 0, most_line = 0;

  at::Tensor operator()(const at::Tensor& x) const {
    sum_line = __LINE__ + 1;
    const float sum = x.sum().item<float>();
    at::Tensor y = first->forward(x);
    if (sum > 0.1F) y = torch::relu(second->forward(y));
    most_line = __LINE__ + 1;
    while (y.abs().max().item<double>() >= 0.25) y = y * 0.5;
    return y;
  }
  std::string place(int line) const { return "family_branches_test.cpp:" + std::to_string(line); }
};

TEST_F(Branches, PredicatesOfTheUser) {
  const Compares program;
  program(positive_of(2, 4));  // the lines
  FamilySettings settings;
  settings.predicates = {composit::predicate(program.place(program.sum_line), "> 0.1"),
                         {program.place(program.most_line),
                          [](const composit::LazyTensor& most) { return most >= 0.25; }}};
  const auto family =
      trace_family(settings, program, example(positive_of(2, 4)), example(negative_of(2, 4)),
                   example(positive_of(2, 4) * 9), example(negative_of(2, 4) * 9));
  EXPECT_THAT(family.assumptions(),
              Contains("stated: the number read at " + program.place(program.sum_line) +
                       ": whether it is > 0.1"));
  size_t right = 0;
  for (const double scale : {0.5, 1.0, 2.0, 5.0, 8.0, 30.0})
    for (const at::Tensor& x : {positive_of(2, 4) * scale, negative_of(2, 4) * scale}) {
      std::optional<at::Tensor> y;
      if (user_error([&] { y = family(x); })) continue;  // more trips than were shown
      EXPECT_TRUE(torch::equal(*y, program(x)));
      ++right;
    }
  EXPECT_GT(right, 7U);
}

// Stated wrongly, and of no line.
TEST_F(Branches, WrongPredicatesAreRefused) {
  const std::string line = "family_branches_test.cpp:" + std::to_string(__LINE__ + 1);
  const auto program = [](const at::Tensor& x) { return x.sum().item<float>() > 0 ? x * 2 : x; };
  const auto family_with = [&](composit::Predicate predicate) {
    FamilySettings settings;
    settings.predicates = {std::move(predicate)};
    return user_error([&] {
             trace_family(settings, program, example(positive_of(2, 4)),
                          example(negative_of(2, 4)));
           })
        .value_or("");
  };
  EXPECT_EQ(family_with(composit::predicate(line, "> 0")), "");
  EXPECT_THAT(family_with(composit::predicate(line, "> 1000")), HasSubstr("no condition on sizes"));
  EXPECT_THAT(family_with(composit::predicate("other.cpp:1", "> 0")),
              HasSubstr("no example reads a number at other.cpp:1; they read numbers at " + line));
  EXPECT_THAT(
      user_error([] { composit::predicate("a.cpp:1", "about 3"); }).value_or(""),
      HasSubstr("expected a comparison with a number, as '> 0', or 'any', received 'about 3'"));
}

TEST_F(Branches, Refused) {
  const auto by_number = [](const at::Tensor& x) { return x.sum().item<float>() > 0 ? x * 2 : x; };
  EXPECT_THAT(user_error([&] {
                trace_family(by_number, example(positive_of(2, 4)), example(negative_of(2, 4)));
              }).value_or(""),
              HasSubstr("write the comparison that decides with operators"));
  const auto drawn = [](const at::Tensor& x) {
    return (x.sum() > 0).item<bool>() ? x * torch::rand({8}) : x;
  };
  EXPECT_THAT(user_error([&] {
                trace_family(drawn, example(positive_of(2, 4)), example(negative_of(2, 4)));
              }).value_or(""),
              HasSubstr("draws, or has another effect, in one of them only"));
}

}  // namespace
}  // namespace flashlight
