// Programs that become faster while they are called: every answer is the program's.
#include "flashlight/adaptive.h"

#include <gmock/gmock.h>
#include <torch/nn.h>
#include <torch/optim.h>

#include <atomic>
#include <random>
#include <thread>

#include "flashlight/adaptive_costs.h"
#include "tests/flashlight/by_backend.h"
#include "tests/user_error.h"

namespace flashlight {
namespace {

using test::close;
using test::doubles;
using test::leaf;
using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::Field;
using testing::HasSubstr;

torch::nn::Sequential network() {
  torch::nn::Sequential model(torch::nn::Linear(5, 7), torch::nn::BatchNorm1d(7), torch::nn::Tanh(),
                              torch::nn::Linear(7, 2));
  model->to(torch::kDouble);
  model->eval();
  return model;
}

// Whatever recordings cost: how long these programs take is chance.
AdaptiveSettings at_any_cost() {
  AdaptiveSettings settings;
  settings.overhead = AdaptiveSettings::kNoLimit;
  return settings;
}
AdaptiveSettings readable() {
  AdaptiveSettings settings = at_any_cost();
  settings.compile = {.backend = Cpp{}};
  return settings;
}

AdaptiveCombination last_of(const AdaptiveReport& report) { return report.combinations.back(); }

TEST(Adaptive, TheSecondCallConfirmsAndLaterOnesAreCompiled) {
  const torch::NoGradGuard no_grad;
  auto model = network();
  const auto fast = adaptive(model, readable());
  for (int call = 0; call < 5; ++call) {
    const at::Tensor x = doubles({4, 5});
    EXPECT_TRUE(close(fast(x), model->forward(x)));
    fast.wait();
  }
  const AdaptiveReport report = fast.report();
  EXPECT_EQ(report.calls, 5U);
  EXPECT_EQ(report.recorded, 2U);
  EXPECT_EQ(report.compiled, 3U);
  EXPECT_EQ(last_of(report).state, "compiled");
  EXPECT_THAT(str(report), HasSubstr("float64[4, 5]: 3 of 5 compiled; compiled"));
}

TEST(Adaptive, RecordsNothingMoreWhereNothingMayBeLost) {
  const torch::NoGradGuard no_grad;
  auto model = network();
  AdaptiveSettings settings;
  settings.free_seconds = 0;
  settings.overhead = -1e9;  // the first one is free: nothing is known of its cost
  const auto fast = adaptive(model, settings);
  for (int64_t call = 0; call < 20; ++call) {
    const at::Tensor x = doubles({4 + call % 2, 5});
    EXPECT_TRUE(close(fast(x), model->forward(x)));
  }
  EXPECT_LE(fast.report().recorded, 1U) << str(fast.report());
}

TEST(RunCosts, CountWhatRecordingsTakeLonger) {
  RunCosts costs;
  EXPECT_EQ(costs.lost(), 0);
  costs.add(RunKind::recorded, 8);
  EXPECT_EQ(costs.lost(), 4 + 4) << "a recording is taken for twice as long as the program";
  costs.add(RunKind::program, 2);
  costs.add(RunKind::program, 4);
  EXPECT_EQ(costs.lost(), (8 - 3) + 5) << "three is the mean of the program";
  costs.add(RunKind::recorded, 4);
  EXPECT_EQ(costs.lost(), (12 - 2 * 3) + 3);
  costs.add(RunKind::compiled, 1);
  EXPECT_EQ(costs.lost(), (12 - 2 * 3) + 3 - (3 - 1));
  EXPECT_EQ(costs.total(), 8 + 2 + 4 + 4 + 1);
}

TEST(Adaptive, MosaicIsTheDefault) {
  const torch::NoGradGuard no_grad;
  auto model = network();
  const auto fast = adaptive(model, at_any_cost());
  const at::Tensor x = doubles({4, 5});
  for (int call = 0; call < 7; ++call) {
    EXPECT_TRUE(close(fast(x), model->forward(x)));
    fast.wait();
  }
  EXPECT_GT(fast.report().compiled, 0U) << str(fast.report());
}

TEST(Adaptive, SizesOfAFamilyAreCompiledAtTheirSecondCall) {
  const torch::NoGradGuard no_grad;
  auto model = network();
  AdaptiveSettings settings = at_any_cost();
  settings.compile.backend = composit::BackendChoice{"reference"};  // makes each size for itself
  settings.checked_sizes = 1;
  const auto fast = adaptive(model, settings);
  const auto call = [&](int64_t rows) {
    const at::Tensor x = doubles({rows, 5});
    EXPECT_TRUE(close(fast(x), model->forward(x)));
    fast.wait();
  };
  for (const int64_t rows : {2, 9, 5}) call(rows);
  EXPECT_THAT(fast.report().families, Contains(HasSubstr("a family of ")));
  for (int times = 0; times < 3; ++times) call(6);  // checked, ready, compiled
  AdaptiveReport report = fast.report();
  EXPECT_TRUE(last_of(report).of_family);
  EXPECT_TRUE(last_of(report).checked);
  EXPECT_EQ(last_of(report).compiled, 1U) << str(report);
  EXPECT_EQ(report.fitted, 0U);
  for (int times = 0; times < 3; ++times) call(7);  // not checked any more
  report = fast.report();
  EXPECT_FALSE(last_of(report).checked);
  EXPECT_EQ(report.fitted, 1U) << str(report);
  call(20);  // outside of what was shown
  EXPECT_FALSE(last_of(fast.report()).of_family);
}

// Mosaic and cpp have sizes as data: no call at them has to come before.
TEST(Adaptive, WhereSizesAreDataTheFirstCallAtASizeIsCompiled) {
  const torch::NoGradGuard no_grad;
  for (AdaptiveSettings settings : {at_any_cost(), readable()}) {
    SCOPED_TRACE(settings.compile.backend.name);
    auto model = network();
    settings.checked_sizes = 0;
    settings.sample_every = 4;
    const auto fast = adaptive(model, settings);
    const auto call = [&](int64_t rows) {
      const at::Tensor x = doubles({rows, 5});
      EXPECT_TRUE(close(fast(x), model->forward(x)));
      fast.wait();
    };
    for (const int64_t rows : {2, 40, 11}) call(rows);
    for (int64_t rows = 20; rows < 32; ++rows) call(rows);
    const AdaptiveReport report = fast.report();
    EXPECT_GE(report.compiled, 7U) << str(report);  // of 12: three are samples
    EXPECT_EQ(report.recorded + report.samples, 6U) << str(report);
    EXPECT_EQ(report.fitted, report.compiled);
  }
}

TEST(Adaptive, NumbersOfStepsAreCompiledEachForItself) {
  const torch::NoGradGuard no_grad;
  torch::nn::GRUCell cell(3, 4);
  const auto program = [&](const at::Tensor& x) {
    at::Tensor h = torch::zeros({x.size(0), 4});
    for (int64_t t = 0; t < x.size(1); ++t) h = cell->forward(x.select(1, t), h);
    return h;
  };
  const auto fast = adaptive(program, readable());
  for (int round = 0; round < 3; ++round)
    for (const int64_t steps : {3, 5, 8, 6}) {
      const at::Tensor x = torch::randn({2, steps, 3});
      EXPECT_TRUE(torch::allclose(fast(x), program(x), 1e-5, 1e-6)) << steps;
      fast.wait();
    }
  EXPECT_EQ(fast.report().compiled, 4U) << str(fast.report());
  EXPECT_THAT(str(fast.report()), HasSubstr("each number of them is compiled for itself"));
}

TEST(Adaptive, AnotherPathIsLeftToTheProgram) {
  const torch::NoGradGuard no_grad;
  const auto program = [](const at::Tensor& x) {
    return x.sum().item<double>() > 0 ? x * 2 : x - 1;
  };
  const auto fast = adaptive(program, readable());
  const at::Tensor up = at::full({3}, 1.5, torch::kDouble), down = -up;
  for (int call = 0; call < 40; ++call) {
    const at::Tensor& x = call % 5 == 4 ? down : up;
    EXPECT_TRUE(close(fast(x), program(x))) << call;
    fast.wait();
  }
}

TEST(Adaptive, ANumberThatFollowsTheCallsIsNeverFrozen) {
  const torch::NoGradGuard no_grad;
  int count = 0;
  const auto program = [&count](const at::Tensor& x) { return x * (++count); };
  const auto fast = adaptive(program, readable());
  for (int call = 1; call <= 12; ++call) {
    const at::Tensor x = doubles({3});
    EXPECT_TRUE(close(fast(x), x * call)) << call << "\n" << str(fast.report());
    fast.wait();
  }
  EXPECT_EQ(count, 12);
  EXPECT_EQ(fast.report().compiled, 0U);
}

// What two runs do not show, a sample does.
TEST(Adaptive, SamplesFindWhatChangesLater) {
  const torch::NoGradGuard no_grad;
  double factor = 2;
  const auto program = [&factor](const at::Tensor& x) { return x * factor; };
  AdaptiveSettings settings = readable();
  settings.sample_every = 3;
  const auto fast = adaptive(program, settings);
  const at::Tensor x = doubles({3});
  const auto call = [&] {
    const at::Tensor y = fast(x + factor);
    fast.wait();
    return close(y, (x + factor) * factor);
  };
  for (int i = 0; i < 6; ++i) {
    EXPECT_TRUE(fast(doubles({3})).defined());
    fast.wait();
  }
  factor = 3;
  for (int i = 0; i < 3; ++i) call();
  EXPECT_THAT(last_of(fast.report()).state, HasSubstr("the program differs"));
  EXPECT_TRUE(call());
}

TEST(Adaptive, TrainingIsACombinationOfItsOwn) {
  const torch::NoGradGuard no_grad;
  auto model = network();
  auto twin = std::dynamic_pointer_cast<torch::nn::SequentialImpl>(model->clone());
  const auto fast = adaptive(model, readable());
  for (int call = 0; call < 12; ++call) {
    const bool training = call % 4 == 3;
    model->train(training);
    twin->train(training);
    const at::Tensor x = doubles({4, 5});
    EXPECT_TRUE(close(fast(x), twin->forward(x))) << call;  // twin's statistics move with model's
    fast.wait();
  }
  EXPECT_EQ(fast.report().combinations.size(), 2U);
}

TEST(Adaptive, GradientsReachTheModel) {
  auto model = network();
  auto twin = std::dynamic_pointer_cast<torch::nn::SequentialImpl>(model->clone());
  torch::optim::SGD ours(model->parameters(), 0.1), theirs(twin->parameters(), 0.1);
  const auto fast = adaptive(model, readable());
  for (int step = 0; step < 6; ++step) {
    const at::Tensor x = doubles({4, 5}), target = doubles({4, 2});
    ours.zero_grad();
    theirs.zero_grad();
    torch::mse_loss(fast(x), target).backward();
    torch::mse_loss(twin->forward(x), target).backward();
    ours.step();
    theirs.step();
    fast.wait();
  }
  for (size_t i = 0; i < model->parameters().size(); ++i)
    EXPECT_TRUE(close(model->parameters()[i], twin->parameters()[i]));
  EXPECT_GT(fast.report().compiled, 0U) << str(fast.report());
}

TEST(Adaptive, AStepThatLeavesGradientsIsLeftToTheProgram) {
  auto model = network();
  const auto step = [&model](const at::Tensor& x) {
    model->zero_grad();
    const at::Tensor loss = model->forward(x).sum();
    loss.backward();
    return loss.detach();
  };
  const auto fast = adaptive(step, readable());
  for (int call = 0; call < 5; ++call) {
    const at::Tensor x = doubles({4, 5});
    fast(x);
    fast.wait();
    EXPECT_TRUE(model->parameters()[0].grad().defined());
  }
  EXPECT_EQ(fast.report().compiled, 0U);
  EXPECT_THAT(last_of(fast.report()).state, HasSubstr(".grad"));
}

TEST(Adaptive, ResultsAreTheCallersOwn) {
  const torch::NoGradGuard no_grad;
  const auto fast = adaptive([](const at::Tensor& x) { return x * 2; }, readable());
  for (int64_t rows : {2, 5, 9, 2, 5, 9, 4, 4, 4}) {
    const at::Tensor x = doubles({rows});
    at::Tensor y = fast(x);
    EXPECT_TRUE(close(y, x * 2));
    y.zero_();  // recordings keep copies
    fast.wait();
  }
}

TEST(Adaptive, ExceptionsOfTheProgramPassThrough) {
  const torch::NoGradGuard no_grad;
  const auto program = [](const at::Tensor& x) {
    if (x.size(0) == 3) throw std::runtime_error("three");
    return x + 1;
  };
  const auto fast = adaptive(program, readable());
  EXPECT_THROW(fast(doubles({3})), std::runtime_error);
  EXPECT_THROW(fast(doubles({3})), std::runtime_error);
  const at::Tensor x = doubles({4});
  for (int call = 0; call < 4; ++call) EXPECT_TRUE(close(fast(x), x + 1));
}

// An operator that no recording takes: the program's results all the same.
TEST(Adaptive, WhatCannotBeRecordedRuns) {
  const torch::NoGradGuard no_grad;
  const auto program = [](const at::Tensor& x) { return x.to_sparse().to_dense() * 2; };
  const auto fast = adaptive(program, readable());
  for (int call = 0; call < 4; ++call) {
    const at::Tensor x = doubles({4, 4});
    EXPECT_TRUE(close(fast(x), x * 2));
    fast.wait();
  }
}

TEST(Adaptive, OldProgramsMakeRoom) {
  const torch::NoGradGuard no_grad;
  AdaptiveSettings settings = readable();
  settings.most_programs = 1;
  const auto fast = adaptive([](const at::Tensor& x) { return x.tanh(); }, settings);
  for (int round = 0; round < 4; ++round)
    for (const int64_t size : {2, 3}) {
      for (int call = 0; call < 3; ++call) {
        const at::Tensor x = doubles({size});
        EXPECT_TRUE(close(fast(x), x.tanh()));
        fast.wait();
      }
    }
  size_t compiled = 0;
  for (const AdaptiveCombination& one : fast.report().combinations)
    compiled += one.state == "compiled" ? 1 : 0;
  EXPECT_EQ(compiled, 1U);
}

TEST(Adaptive, ManyThreadsCall) {
  const torch::NoGradGuard no_grad;
  auto model = network();
  const auto fast = adaptive(model, readable());
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed)
    threads.emplace_back([&, seed] {
      const torch::NoGradGuard no_grad_here;
      std::mt19937 random(seed);
      for (int call = 0; call < 60; ++call) {
        const at::Tensor x = doubles({static_cast<int64_t>(random() % 6 + 2), 5});
        if (!close(fast(x), model->forward(x))) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(fast.report().calls, 240U);
}

TEST(Adaptive, SeveralArgumentsAndNumbers) {
  const torch::NoGradGuard no_grad;
  const auto program = [](const at::Tensor& x, const std::vector<at::Tensor>& more, double factor) {
    return std::make_pair(x * factor + more[0], more[1].sum());
  };
  const auto fast = adaptive(program, readable());
  for (int call = 0; call < 8; ++call) {
    const at::Tensor x = doubles({3}), y = doubles({3}), z = doubles({2});
    const double factor = call % 2 == 0 ? 2.0 : 3.0;  // each is a combination of its own
    const auto [first, second] = fast(x, std::vector<at::Tensor>{y, z}, factor);
    EXPECT_TRUE(close(first, x * factor + y));
    EXPECT_TRUE(close(second, z.sum()));
    fast.wait();
  }
  EXPECT_EQ(fast.report().combinations.size(), 2U);
}

}  // namespace
}  // namespace flashlight
