// check finds what no dispatcher sees, and measures what differs.
#include "flashlight/check.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "flashlight/difference.h"
#include "flashlight/trace.h"

namespace {

using flashlight::trace;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Check, EqualProgramPasses) {
  torch::nn::Sequential net(torch::nn::Linear(4, 8), torch::nn::ReLU(), torch::nn::Linear(8, 2));
  auto captured = trace(net, torch::randn({3, 4}));
  const auto report = captured.check(torch::randn({3, 4}));
  EXPECT_TRUE(report.ok()) << str(report);
  EXPECT_GE(report.compared, 3u);
}

TEST(Check, TrainingModeDrawsTheSameNumbersAndLeavesBuffersAlone) {
  torch::nn::Sequential net(torch::nn::Linear(4, 8), torch::nn::BatchNorm1d(8),
                            torch::nn::Dropout(0.5));
  net->train();
  auto captured = trace(net, torch::randn({6, 4}));
  const at::Tensor before = net->named_buffers()["1.running_mean"].clone();
  const auto report = captured.check(torch::randn({6, 4}));
  EXPECT_TRUE(report.ok()) << str(report);
  EXPECT_TRUE(torch::equal(net->named_buffers()["1.running_mean"], before));
}

// Its bytes are arbitrary in part, and only its own backward reads them.
TEST(Check, WorkspaceOfAnLstmIsNotJudged) {
  torch::nn::LSTM net(torch::nn::LSTMOptions(4, 8).num_layers(2));
  auto program = [net](const at::Tensor& x) mutable { return std::get<0>(net->forward(x)); };
  const at::Tensor x = torch::randn({3, 2, 4});
  auto captured = trace(program, x);
  ASSERT_GT(captured.statistics().calls_by_op.count("aten::mkldnn_rnn_layer"), 0u);
  for (int i = 0; i < 5; ++i) {
    const auto report = captured.check(torch::randn({3, 2, 4}));
    EXPECT_TRUE(report.ok()) << str(report);
  }
}

// A report says what it depends on beside the arguments.
TEST(Check, SaysWhichGeneratorsItBeganWith) {
  at::Generator own = at::make_generator<at::CPUGeneratorImpl>(5);
  auto captured =
      trace([own](at::Tensor x) { return torch::dropout(x, 0.5, true) + at::rand({3}, own); },
            torch::randn({3}));
  const at::Tensor x = torch::randn({3});
  const at::Tensor before = at::globalContext().defaultGenerator(at::kCPU).get_state(),
                   own_before = own.get_state();
  const auto report = captured.check(x);
  EXPECT_TRUE(report.ok()) << str(report);
  EXPECT_THAT(report.generators, ::testing::UnorderedElementsAre("default", "generator_0"));
  EXPECT_THAT(str(report), HasSubstr("every run began with the state that the generator"));
  EXPECT_TRUE(torch::equal(at::globalContext().defaultGenerator(at::kCPU).get_state(), before));
  EXPECT_TRUE(torch::equal(own.get_state(), own_before));
}

TEST(Check, SaysNothingOfGeneratorsThatAProgramSeedsOrDoesNotUse) {
  const auto quiet = trace([](at::Tensor x) { return x + 1; }, torch::randn({3}));
  EXPECT_THAT(str(quiet.check(torch::randn({3}))), Not(HasSubstr("generator")));
  const auto seeds = trace(
      [](at::Tensor x) {
        at::manual_seed(3);
        return x + at::rand({3});
      },
      torch::randn({3}));
  const auto report = seeds.check(torch::randn({3}));
  EXPECT_TRUE(report.ok()) << str(report);
  EXPECT_THAT(str(report), Not(HasSubstr("generator")));
}

TEST(Check, HostNumberThatChangesIsNamed) {
  auto calls = std::make_shared<int>(0);
  auto captured =
      trace([calls](at::Tensor x) { return x * static_cast<double>(++*calls); }, torch::randn({3}));
  const auto report = captured.check(torch::randn({3}));
  ASSERT_EQ(report.graph_differences.size(), 1u) << str(report);
  EXPECT_THAT(report.graph_differences[0], HasSubstr("aten::mul"));
  EXPECT_EQ(report.exit_code(), 1);
}

// A number that no operator read is a constant of the capture, and of each capture on other inputs
// another one; a branch on it is a branch nobody sees.
TEST(Check, RawReadIsCaughtByStrictMode) {
  struct Gate : torch::nn::Module {
    at::Tensor forward(const at::Tensor& x) {
      const at::Tensor y = gate(x);
      return y.data_ptr<float>()[0] > 0 ? y * 2 : y * 3;
    }
    torch::nn::Linear gate = register_module("gate", torch::nn::Linear(2, 2));
  };
  const at::NoGradGuard no_grad;
  auto model = std::make_shared<Gate>();
  model->gate->weight.fill_(1);
  model->gate->bias.zero_();
  auto captured = trace(model, torch::ones({1, 2}));
  EXPECT_FALSE(torch::equal(captured(-torch::ones({1, 2})), model->forward(-torch::ones({1, 2}))))
      << "a replay cannot know";
  const auto report = captured.check(torch::ones({1, 2}));
  EXPECT_EQ(report.exit_code(), 1);
  EXPECT_THAT(str(report),
              AllOf(HasSubstr("failed: [trace] strict mode: the memory of a tensor that "
                              "aten::addmm used last"),
                    HasSubstr("the last operator was aten::addmm in gate\n")));
  flashlight::CheckOptions lenient;
  lenient.strict = false;
  EXPECT_TRUE(captured.check(lenient, torch::ones({1, 2})).ok());
}

TEST(Check, RawWriteIsCaughtByStrictMode) {
  auto captured = trace(
      [](at::Tensor x) {
        at::Tensor y = x + 1;
        y.accessor<float, 1>()[0] = 7;
        return y * 2;
      },
      torch::zeros({3}));
  EXPECT_THAT(str(captured.check(torch::zeros({3}))),
              AllOf(HasSubstr("a tensor that aten::add.Scalar used last"),
                    HasSubstr("the last operator was aten::add")));
}

TEST(Check, BranchOnSizeOrHostStateIsNamed) {
  auto flip = std::make_shared<bool>(false);
  auto captured = trace([flip](at::Tensor x) { return (*flip = !*flip) ? x.sin() : x.cos(); },
                        torch::randn({3}));
  EXPECT_FALSE(captured.check(torch::randn({3})).graph_differences.empty());
}

TEST(Check, AdamsStepCountIsAHostValue) {
  torch::nn::Linear model(4, 1);
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(0.01));
  const auto step = [&](at::Tensor x) {
    optimizer.zero_grad();
    at::Tensor loss = model->forward(x).pow(2).mean();
    loss.backward();
    optimizer.step();
    return loss.detach();
  };
  const at::Tensor x = torch::rand({8, 4});
  step(x);
  auto captured = trace(step, x);
  EXPECT_FALSE(captured.check(x).graph_differences.empty());
}

TEST(Check, Float64RanksTheNodeThatAmplifies) {
  auto captured =
      trace([](at::Tensor x) { return ((x + 1000.0) - 1000.0).exp(); }, torch::rand({64}));
  flashlight::CheckOptions options;
  options.float64 = true;
  const auto report = captured.check(options, torch::rand({64}));
  ASSERT_TRUE(report.ok()) << str(report);
  ASSERT_FALSE(report.ranking.empty());
  EXPECT_THAT(report.ranking[0].place, HasSubstr("aten::sub"));
  EXPECT_GT(report.ranking[0].amplification, 10);
}

TEST(Distance, CountsUnitsInTheLastPlace) {
  const at::Tensor a = torch::tensor({1.0f, -1.0f, 0.0f}), b = a.clone();
  EXPECT_TRUE(flashlight::distance(a, b).equal);
  b[0] = std::nextafter(1.0f, 2.0f);
  EXPECT_EQ(flashlight::distance(a, b).ulp, 1u);
  b[2] = -0.0f;
  EXPECT_FALSE(flashlight::distance(a, b).equal);
  b[1] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isinf(flashlight::distance(a, b).absolute));
}

}  // namespace
