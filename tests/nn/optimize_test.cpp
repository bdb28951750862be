// Training: torch's parameters after each of ten steps; graphs that stay the same.
#include "composit/nn/optimize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "composit/ad/chain_rule.h"
#include "composit/nn/functional.h"
#include "composit/nn/initializer.h"
#include "composit/ops/native.h"
#include "tests/agreement.h"
#include "tests/counting_backend.h"
#include "tests/nn/torch_file.h"
#include "tests/test_name.h"
#include "tests/user_error.h"

namespace composit::test {
namespace {

using nn::Optimizer;
using testing::HasSubstr;

const std::map<std::string, Optimizer>& optimizers() {
  static const std::map<std::string, Optimizer> all = {
      {"sgd", nn::sgd({.learning_rate = 1e-1})},
      {"sgd weight decay", nn::sgd({.learning_rate = 1e-1, .weight_decay = 0.1})},
      {"sgd momentum", nn::sgd({.learning_rate = 1e-1, .momentum = 0.9})},
      {"sgd dampening", nn::sgd({.learning_rate = 1e-1, .momentum = 0.9, .dampening = 0.3})},
      {"sgd nesterov",
       nn::sgd({.learning_rate = 1e-1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true})},
      {"adam", nn::adam({.learning_rate = 1e-2})},
      {"adam options",
       nn::adam(
           {.learning_rate = 1e-2, .beta1 = 0.8, .beta2 = 0.99, .eps = 1e-3, .weight_decay = 0.1})},
      {"adam amsgrad",
       nn::adam({.learning_rate = 1e-1, .beta1 = 0.5, .beta2 = 0.6, .amsgrad = true})},
      {"adamw", nn::adamw({.learning_rate = 1e-2})},
      {"adamw options", nn::adamw({.learning_rate = 1e-1, .weight_decay = 0.3, .amsgrad = true})}};
  return all;
}

// The network of torch_cases.py.
struct Network {
  explicit Network(const Parts& parts)
      : weights{held_input("w", parts.at("w")), held_input("b", parts.at("b"))},
        x(held_input("x", parts.at("x"))),
        y(held_input("y", parts.at("y"))) {}
  LazyTensor loss() const { return nn::mse_loss(tanh(nn::linear(x, weights[0], weights[1])), y); }
  LazyTensors gradients() const { return grad(loss(), weights); }

  LazyTensors weights;
  LazyTensor x, y;
};

const Parts& parts_of(const std::string& optimizer, const char* dtype) {
  return torch_cases().at("optimizer " + optimizer + "|" + dtype);
}

// Errors of ten steps add up.
constexpr double kTimes = 10;

class OptimizerTest : public testing::TestWithParam<std::string> {
  void SetUp() override {
    if (torch_cases().empty()) GTEST_SKIP() << FLASHLIGHT_PYTHON << " has no torch";
  }
};

TEST_P(OptimizerTest, ten_steps_are_torchs) {
  for (const char* dtype : {"float32", "float64"}) {
    const Parts& parts = parts_of(GetParam(), dtype);
    const Network network(parts);
    const nn::TrainingStep step(network.weights, network.gradients(), optimizers().at(GetParam()),
                                {.observed = {network.loss()}});
    Values values;
    for (int i = 0; i < 10; ++i) {
      const Array loss = step(values)[0];
      const std::string name = "step." + std::to_string(i) + ".";
      SCOPED_TRACE(name + dtype);
      EXPECT_EQ(difference(loss, parts.at(name + "loss"), kTimes), "");
      EXPECT_EQ(difference(values[network.weights[0]], parts.at(name + "w"), kTimes), "");
      EXPECT_EQ(difference(values[network.weights[1]], parts.at(name + "b"), kTimes), "");
    }
  }
}

TEST_P(OptimizerTest, as_a_function_it_does_the_same_on_one_graph) {
  const Parts& parts = parts_of(GetParam(), "float64");
  const Optimizer& optimizer = optimizers().at(GetParam());
  Network network(parts);
  Values state;
  std::vector<Hash> graphs;
  for (int i = 0; i < 3; ++i) {
    const auto gradients = network.gradients();
    graphs.push_back(nn::TrainingStep(network.weights, gradients, optimizer).graph().hash());
    network.weights = nn::optimize(network.weights, gradients, optimizer, state);
    EXPECT_EQ(input_name(*network.weights[0].node), "w");
  }
  EXPECT_EQ(difference(network.weights[0].node->held(), parts.at("step.2.w"), kTimes), "");
  EXPECT_EQ(graphs[0], graphs[1]);
  EXPECT_EQ(graphs[1], graphs[2]);
}

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const auto& [name, optimizer] : optimizers()) names.push_back(name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(all, OptimizerTest, testing::ValuesIn(optimizer_names()),
                         [](const auto& one) { return test_name(one.param); });

// ---- what torch has no word on ------------------------------------------------------------------

LazyTensor vector(const std::string& name, const std::vector<double>& values) {
  const Type type = tensor_type(DType::float64, {static_cast<int64_t>(values.size())});
  return held_input(name, array_of(type, values), InputKind::parameter);
}
std::vector<double> held(const LazyTensor& tensor) { return elements<double>(tensor.node->held()); }

TEST(Optimize, takes_an_optimizer_of_ones_own) {
  const LazyTensor w = vector("w", {1, 2});
  const Optimizer halve{.update = [](const LazyTensor& parameter, const LazyTensor&,
                                     const LazyTensors&) { return LazyTensors{parameter / 2}; }};
  const auto updated = nn::optimize({w}, grad(sum(w), {w}), halve);
  EXPECT_EQ(held(updated[0]), (std::vector<double>{0.5, 1}));
  EXPECT_EQ(input_kind(*updated[0].node), InputKind::parameter);
}

TEST(Optimize, the_learning_rate_may_be_an_input) {
  const LazyTensor w = vector("w", {1, 2});
  const LazyTensor rate = input("rate", tensor_type(DType::float64, {}));
  const nn::TrainingStep step({w}, grad(sum(w), {w}), nn::sgd({.learning_rate = rate}));
  Values values;
  for (double now : {0.5, 0.25}) {
    values.set(rate, array_of<double>(rate.type(), {now}));
    step(values);
  }
  EXPECT_EQ(elements<double>(values[w]), (std::vector<double>{0.25, 1.25}));
}

TEST(Optimize, evaluates_with_the_given_backend) {
  const LazyTensor w = vector("w", {1, 2});
  const CountingBackend backend;
  const nn::TrainingStep step({w}, grad(sum(w), {w}), nn::adam(), {.backend = &backend});
  Values values;
  for (int i = 0; i < 3; ++i) step(values);
  EXPECT_EQ(backend.compiled, 1u);
  EXPECT_EQ(backend.run, 3u);
  nn::optimize({w}, {w}, nn::sgd(), backend);
  EXPECT_EQ(backend.run, 4u);
}

TEST(Optimize, says_what_is_wrong) {
  const LazyTensor w = vector("w", {1, 2}), other = vector("v", {1, 2, 3});
  const auto message = [](auto work) { return user_error(work).value_or("no error"); };
  EXPECT_THAT(message([&] { nn::optimize({w}, {w}, nn::adam()); }),
              HasSubstr("keeps 'step' between steps"));
  EXPECT_THAT(message([&] { nn::optimize({w}, {other}, nn::sgd()); }),
              HasSubstr("a gradient of float64[2] for 'w', received float64[3]"));
  EXPECT_THAT(message([&] { nn::optimize({w}, {}, nn::sgd()); }), HasSubstr("each of 1"));
  EXPECT_THAT(message([&] { nn::optimize({w + 1}, {w}, nn::sgd()); }),
              HasSubstr("parameters that are inputs, received a result of 'aten::add.Tensor'"));
  EXPECT_THAT(message([] { nn::sgd({.nesterov = true}); }), HasSubstr("dampening with nesterov"));
  EXPECT_THAT(message([] { nn::adam({.learning_rate = -1}); }),
              HasSubstr("[adam] expected a learning_rate of at least 0, received -1"));
  EXPECT_THAT(message([] { nn::adam({.beta2 = 1}); }), HasSubstr("[adam] expected a beta"));
}

// ---- first values -------------------------------------------------------------------------------

double variance(const LazyTensor& tensor) {
  double squares = 0, total = 0;
  const auto values = held(tensor);
  for (double x : values) {
    squares += x * x;
    total += x;
  }
  const auto n = static_cast<double>(values.size());
  return squares / n - (total / n) * (total / n);
}

TEST(Initializer, has_the_variance_it_promises) {
  nn::Initializer init(7, DType::float64);
  const Ints sizes{64, 32, 3, 3};  // 288 in, 576 out; 18,432 numbers: 3 % is about 3 deviations
  EXPECT_NEAR(variance(init.kaiming_uniform("a", sizes)) * 288 / 2, 1, 0.03);
  EXPECT_NEAR(variance(init.kaiming_normal("b", sizes, 1)) * 288, 1, 0.03);
  EXPECT_NEAR(variance(init.xavier_uniform("c", sizes)) * (288 + 576) / 2, 1, 0.03);
  EXPECT_NEAR(variance(init.xavier_normal("d", sizes)) * (288 + 576) / 2, 1, 0.03);
  EXPECT_EQ(init.parameters().size(), 4u);
}

TEST(Initializer, the_same_seed_gives_the_same_values) {
  const auto values = [](uint64_t seed) {
    return held(nn::Initializer(seed).normal("w", {5}, 1, 2));
  };
  EXPECT_EQ(values(3), values(3));
  EXPECT_NE(values(3), values(4));
}

TEST(Initializer, says_what_is_wrong) {
  nn::Initializer init(1);
  init.zeros("w", {2});
  EXPECT_THAT(user_error([&] { init.ones("w", {2}); }).value_or(""), HasSubstr("'w' already"));
  EXPECT_THAT(user_error([&] { init.ones("v", {-2}); }).value_or(""), HasSubstr("received [-2]"));
  EXPECT_THAT(user_error([&] { init.xavier_normal("v", {2}); }).value_or(""),
              HasSubstr("2 axes at least"));
}

}  // namespace
}  // namespace composit::test
