// Compiled families whose sizes are data: few texts serve all sizes, weights are packed once and
// anew when they are written, gradients and threads included. Values are those of the program.
#include "flashlight/family_programs.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <random>
#include <set>
#include <thread>

#include "composit/ir/print.h"
#include "examples/models/bert.h"
#include "flashlight/compiled_family.h"
#include "tests/user_error.h"

namespace flashlight {
namespace {

constexpr double kRelative = 1e-4, kAbsolute = 1e-5;

CompileSettings by_mosaic(int threads = 2) {
  return {.flags = {"-O1"}, .backend = Mosaic{.threads = threads}};
}

// A sum over pixels and a mean over channels, so that kernels of several forms see both sizes.
struct NetImpl : torch::nn::Module {
  NetImpl() {
    torch::manual_seed(3);
    first = register_module("first", torch::nn::Linear(24, 40));
    norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({40})));
    last = register_module("last", torch::nn::Linear(40, 7));
  }
  at::Tensor forward(const at::Tensor& x) {  // batch x steps x 24
    const at::Tensor h = torch::gelu(norm(first(x)));
    const at::Tensor weights = torch::softmax(torch::matmul(h, h.transpose(1, 2)) / 6.0, -1);
    return last(torch::matmul(weights, h)).log_softmax(-1).mean(1);
  }
  torch::nn::Linear first{nullptr}, last{nullptr};
  torch::nn::LayerNorm norm{nullptr};
};
TORCH_MODULE(Net);

at::Tensor steps(int64_t batch, int64_t count) { return torch::randn({batch, count, 24}); }

auto net_family(Net& net) {
  return trace_family(
      FamilySettings{.names = {"batch", "steps"}, .trace = {{}, named_tensors(net)}},
      [net = net.ptr()](const at::Tensor& x) { return net->forward(x); }, example(steps(2, 9)),
      example(steps(7, 30)), example(steps(4, 17)), example(steps(5, 25)));
}

class CompiledFamilies : public testing::Test {
 protected:
  Net net_;
  Family<at::Tensor(at::Tensor)> family_ = net_family(net_);

  void expect_right(const CompiledFamily<at::Tensor(at::Tensor)>& fast, int64_t batch,
                    int64_t count) {
    const torch::NoGradGuard no_grad;
    const at::Tensor x = steps(batch, count);
    EXPECT_TRUE(torch::allclose(fast(x), net_->forward(x), kRelative, kAbsolute))
        << batch << " x " << count;
  }
};

TEST_F(CompiledFamilies, FewTextsServeAllSizes) {
  const auto fast = compile(family_, by_mosaic());
  std::mt19937 random(1);
  for (int i = 0; i < 40; ++i)
    expect_right(fast, 2 + static_cast<int64_t>(random() % 6),
                 9 + static_cast<int64_t>(random() % 22));
  EXPECT_GT(fast.programs(), 20U);
  EXPECT_LE(fast.compilations(), 6U);
}

TEST_F(CompiledFamilies, WrittenWeightsArePackedAnewAtAllSizes) {
  const auto fast = compile(family_, by_mosaic());
  for (const auto& [batch, count] : {std::pair{3, 11}, {6, 28}}) expect_right(fast, batch, count);
  const size_t texts = fast.compilations();
  {
    const torch::NoGradGuard no_grad;
    for (at::Tensor& weight : net_->parameters()) weight.mul_(1.25);
  }
  for (const auto& [batch, count] : {std::pair{6, 28}, {3, 11}, {5, 20}})
    expect_right(fast, batch, count);
  EXPECT_EQ(fast.compilations(), texts);
}

TEST_F(CompiledFamilies, GradientsAreThoseOfAutograd) {
  const auto fast = compile(family_, by_mosaic());
  for (const auto& [batch, count] : {std::pair{3, 11}, {6, 28}, {5, 20}, {4, 29}}) {
    const at::Tensor x = steps(batch, count), seed = torch::randn({batch, 7});
    const std::vector<at::Tensor> weights = net_->parameters(),
                                  expected =
                                      torch::autograd::grad({net_->forward(x)}, weights, {seed}),
                                  actual = torch::autograd::grad({fast(x)}, weights, {seed});
    for (size_t i = 0; i < weights.size(); ++i)
      EXPECT_TRUE(torch::allclose(actual[i], expected[i], 1e-3, kAbsolute)) << i;
  }
  EXPECT_LE(fast.compilations(), 8U);
}

TEST_F(CompiledFamilies, SeveralThreadsCall) {
  const auto fast = compile(family_, by_mosaic(1));
  std::vector<std::thread> callers;
  for (int64_t caller = 0; caller < 4; ++caller)
    callers.emplace_back([&, caller] {
      for (int64_t i = 0; i < 12; ++i) expect_right(fast, 2 + (caller + i) % 6, 9 + 5 * i % 22);
    });
  for (std::thread& caller : callers) caller.join();
}

TEST_F(CompiledFamilies, PreparedSizesAreReadyBeforeTheyAreCalled) {
  const auto fast = compile(family_, by_mosaic());
  constexpr size_t kSizes = 6 * 22;
  EXPECT_EQ(fast.prepare(), kSizes);
  EXPECT_EQ(fast.programs(), kSizes);
  const size_t texts = fast.compilations();
  for (const auto& [batch, count] : {std::pair{2, 9}, {7, 30}, {3, 11}, {6, 28}})
    expect_right(fast, batch, count);
  {
    const torch::NoGradGuard no_grad;
    for (at::Tensor& weight : net_->parameters()) weight.mul_(1.25);
  }
  for (const auto& [batch, count] : {std::pair{3, 11}, {5, 20}}) expect_right(fast, batch, count);
  EXPECT_EQ(fast.programs(), kSizes);
  EXPECT_EQ(fast.compilations(), texts);
}

TEST_F(CompiledFamilies, ThreadsCallWhileSizesArePrepared) {
  const auto fast = compile(family_, by_mosaic(1));
  std::thread preparing([&] { fast.prepare(); });
  std::vector<std::thread> callers;
  for (int64_t caller = 0; caller < 3; ++caller)
    callers.emplace_back([&, caller] {
      for (int64_t i = 0; i < 12; ++i) expect_right(fast, 2 + (caller + i) % 6, 9 + 5 * i % 22);
    });
  for (std::thread& caller : callers) caller.join();
  preparing.join();
}

TEST_F(CompiledFamilies, OfTooManySizesThosePreparedAreSpread) {
  const std::vector<composit::SizeValues> ahead =
      FamilyPrograms(family_, by_mosaic(1), 10).sizes_ahead();
  ASSERT_EQ(ahead.size(), 10U);
  std::set<int64_t> counts;
  for (const composit::SizeValues& sizes : ahead) counts.insert(sizes.at("steps"));
  EXPECT_LE(*counts.begin(), 14);
  EXPECT_GE(*counts.rbegin(), 25);
}

TEST_F(CompiledFamilies, SizesOutsideAreNotPrepared) {
  FamilyPrograms programs(family_, by_mosaic(1));
  EXPECT_EQ(programs.prepare_sizes({{{"batch", 3}, {"steps", 11}}, {{"batch", 8}, {"steps", 11}}}),
            1U);
}

TEST(FamilyPrograms, WhatCannotBeCompiledIsNotPrepared) {
  const auto counts = [](const at::Tensor& x) { return std::get<0>(at::histogram(x, 10)); };
  const auto family = trace_family(counts, example(torch::randn({3, 4})),
                                   example(torch::randn({5, 4})), example(torch::randn({8, 4})));
  const auto fast = compile(family, by_mosaic(1));
  EXPECT_NE(composit::user_error([&] { fast.prepare(); })
                .value_or("")
                .find("no code for 'aten::histogram.bin_ct'"),
            std::string::npos);
}

// A program of a family does not keep its graph.
TEST_F(CompiledFamilies, TheGraphOfAProgramIsThatOfTheFamily) {
  FamilyPrograms programs(family_, by_mosaic(1));
  const composit::SizeValues sizes = {{"batch", 3}, {"steps", 11}};
  EXPECT_EQ(composit::print(programs.at(sizes)->compiled().graph()),
            composit::print(family_.at(sizes).graph()));
}

TEST_F(CompiledFamilies, SizesOutsideAreRefused) {
  const auto fast = compile(family_, by_mosaic());
  EXPECT_EQ(composit::user_error([&] { fast(steps(8, 20)); }).value_or(""),
            "[bind] batch = 8: shown from 2 to 7; add an example there");
}

TEST_F(CompiledFamilies, TheProgramAskedForLongestAgoGoes) {
  FamilyPrograms programs(family_, by_mosaic(1), 2);
  const composit::SizeValues first = {{"batch", 3}, {"steps", 11}};
  for (const int64_t count : {11, 12, 13})
    programs.at({{"batch", 3}, {"steps", count}})->run({steps(3, count)});
  EXPECT_EQ(programs.size(), 2U);
  const at::Tensor x = steps(3, 11);
  const torch::NoGradGuard no_grad;
  EXPECT_TRUE(
      torch::allclose(programs.at(first)->run({x})[0], net_->forward(x), kRelative, kAbsolute));
}

}  // namespace
}  // namespace flashlight
