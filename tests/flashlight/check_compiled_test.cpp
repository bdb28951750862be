// The errors of compiled code, and what products in lower formats cost: against errors that are
// computed here, and code in which one product alone is lowered.
#include "flashlight/check_compiled.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "composit/eval/evaluate.h"
#include "composit/ir/error.h"
#include "composit/ops/native.h"
#include "flashlight/backends/registry.h"
#include "flashlight/compile.h"
#include "flashlight/trace.h"

namespace {

using flashlight::check_compiled;
using flashlight::CheckedValue;
using flashlight::compile;
using flashlight::CompiledReport;
using flashlight::Mosaic;
using flashlight::trace;
using ::testing::HasSubstr;

struct Model : torch::nn::Module {
  Model() {
    torch::manual_seed(3);
    first = register_module("first", torch::nn::Linear(64, 128));
    second = register_module("second", torch::nn::Linear(128, 96));
    third = register_module("third", torch::nn::Linear(96, 40));
  }
  at::Tensor forward(const at::Tensor& x) {
    return third->forward(torch::relu(second->forward(torch::tanh(first->forward(x)))));
  }
  torch::nn::Linear first{nullptr}, second{nullptr}, third{nullptr};
};

at::Tensor example() {
  torch::manual_seed(4);
  return torch::randn({35, 64});
}

// The root of the mean square of the differences over the standard deviation of `exact`.
double rms(const at::Tensor& value, const at::Tensor& exact) {
  const at::Tensor apart = value.to(torch::kDouble) - exact;
  return (apart.square().mean().sqrt() / exact.std(/*unbiased=*/false)).item<double>();
}

at::Tensor in_double(const std::shared_ptr<Model>& model, const at::Tensor& x) {
  Model wide;
  wide.to(torch::kDouble);
  const auto from = model->parameters();
  auto to = wide.parameters();
  for (size_t i = 0; i < from.size(); ++i) to[i].copy_(from[i]);
  return wide.forward(x.to(torch::kDouble));
}

std::vector<CheckedValue> lowered(const CompiledReport& report) {
  std::vector<CheckedValue> values;
  for (const CheckedValue& value : report.values)
    if (value.lowered) values.push_back(value);
  return values;
}

// Within a part of `expected`.
#define EXPECT_WITHIN(actual, expected, part) EXPECT_NEAR(actual, expected, (part) * (expected))

TEST(CheckCompiled, ErrorsOfResultsAreThoseOfTheCode) {
  const torch::NoGradGuard no_grad;
  const auto model = std::make_shared<Model>();
  const at::Tensor x = example(), exact = in_double(model, x);
  auto captured = trace(model, torch::randn({35, 64}));
  captured(x);
  const Mosaic options{.threads = 1, .products = "bfloat16"};
  const CompiledReport report = check_compiled(captured, {.backend = options}, x);
  ASSERT_EQ(report.error, "");
  ASSERT_EQ(report.results.size(), 1u);
  const at::Tensor y = compile(captured, {.backend = options})(x);
  EXPECT_WITHIN(report.results[0].compiled.rms, rms(y, exact), 1e-6);
  EXPECT_WITHIN(report.results[0].eager.rms, rms(model->forward(x), exact), 1e-6);
  EXPECT_WITHIN(report.results[0].compiled.largest,
                ((y.to(torch::kDouble) - exact).abs().max() / exact.std(false)).item<double>(),
                1e-6);
  EXPECT_TRUE(report.ok());
}

// A row per product, with the values of its layer in the program: here what is fused behind it.
TEST(CheckCompiled, RowsAreLayersWithTheirNodes) {
  const torch::NoGradGuard no_grad;
  const auto model = std::make_shared<Model>();
  const at::Tensor x = example();
  auto captured = trace(model, torch::randn({35, 64}));
  captured(x);
  const CompiledReport report =
      check_compiled(captured, {.backend = Mosaic{.threads = 1, .products = "bfloat16"}}, x);
  EXPECT_EQ(report.products, 3u);
  EXPECT_EQ(report.lowered, 3u);
  const auto rows = lowered(report);
  ASSERT_EQ(rows.size(), 3u) << str(report);
  const auto row = [&](const std::string& text) {
    return *std::find_if(rows.begin(), rows.end(), [&](const CheckedValue& value) {
      return value.place.find(text) != std::string::npos;
    });
  };
  const at::Tensor wide = x.to(torch::kBFloat16).to(torch::kDouble);
  const at::Tensor hidden = [&](const at::Tensor& in, const at::Tensor& weight) {
    return torch::tanh(torch::linear(in, weight, model->first->bias.to(torch::kDouble)));
  }(wide, model->first->weight.to(torch::kBFloat16).to(torch::kDouble));
  const at::Tensor exact =
      torch::tanh(torch::linear(x.to(torch::kDouble), model->first->weight.to(torch::kDouble),
                                model->first->bias.to(torch::kDouble)));
  // The first layer reads what the program reads, so that its error is that of its own rounding.
  EXPECT_WITHIN(row("aten::tanh").compiled.rms, rms(hidden, exact), 0.01);
  EXPECT_EQ(row("aten::tanh").product, "bfloat16");
}

// The cost alone, found by rounding in float64, is that of code where this product alone is
// lowered; and with the lines that the report gives, results are off by what it says.
TEST(CheckCompiled, CostsAloneAreThoseOfCodeThatLowersOneProduct) {
  const torch::NoGradGuard no_grad;
  const auto model = std::make_shared<Model>();
  const at::Tensor x = example(), exact = in_double(model, x);
  auto captured = trace(model, torch::randn({35, 64}));
  captured(x);
  const CompiledReport report =
      check_compiled(captured, {.backend = Mosaic{.threads = 1, .products = "bfloat16"}}, x);
  const auto rows = lowered(report);
  ASSERT_EQ(rows.size(), 3u) << str(report);
  double before = HUGE_VAL;
  for (const CheckedValue& value : rows) {
    const auto one =
        compile(captured, {.backend = Mosaic{.threads = 1, .choices = value.name + ": bfloat16"}});
    ASSERT_TRUE(value.alone) << str(report);
    EXPECT_WITHIN(value.alone->rms, rms(one(x), exact), 0.02) << value.name;
    EXPECT_LE(value.alone->rms, before);  // worst first
    before = value.alone->rms;
  }
  std::string lines;
  for (const std::string& line : choices_of(report, 2)) {
    lines += line + "\n";
    const auto better = compile(
        captured, {.backend = Mosaic{.threads = 1, .products = "bfloat16", .choices = lines}});
    const double estimate = std::stod(line.substr(line.find("about ") + 6));
    EXPECT_WITHIN(estimate, rms(better(x), exact), 0.15) << lines;
  }
  EXPECT_THAT(str(report), HasSubstr(choices_of(report)[0]));
}

TEST(CheckCompiled, ProgramsOfBfloat16HaveBothErrors) {
  const torch::NoGradGuard no_grad;
  const auto model = std::make_shared<Model>();
  const at::Tensor x = example().to(torch::kBFloat16);
  model->to(torch::kBFloat16);
  auto captured = trace(model, torch::randn({35, 64}).to(torch::kBFloat16));
  captured(x);
  const at::Tensor exact = in_double(model, x), y = model->forward(x);
  for (const bool every : {false, true}) {
    const CompiledReport report = check_compiled_flat(captured, {.backend = Mosaic{.threads = 1}},
                                                      {x}, {.every_node = every});
    ASSERT_EQ(report.error, "");
    EXPECT_TRUE(report.ok()) << str(report);
    EXPECT_EQ(report.lowered, 0u);
    EXPECT_WITHIN(report.results[0].eager.rms, rms(y, exact), 1e-6);
    EXPECT_WITHIN(report.results[0].rounding, rms(exact.to(torch::kBFloat16), exact), 1e-6);
    EXPECT_EQ(report.values.size() == report.nodes, every) << str(report);
  }
}

// A backend that computes less well than the program, which is one for this test.
class Crude : public composit::Backend {
 public:
  std::string name() const override { return "crude"; }

 protected:
  composit::Compiled make(const composit::Graph& graph,
                          const composit::CompileOptions& options) const override {
    return composit::code_of(graph, options.name, [graph](const auto& inputs) {
      std::vector<composit::Array> results;
      for (const composit::Array& one : composit::evaluate(graph, inputs)) {
        std::vector<double> numbers = composit::elements<double>(one);
        for (double& number : numbers) number *= 1 + 1e-4;
        results.push_back(composit::array_of(one.type(), numbers));
      }
      return results;
    });
  }
};

TEST(CheckCompiled, LargerErrorsThanTheProgramsAreMarked) {
  static const Crude crude;
  static const flashlight::BackendRegistration registration(crude);
  const auto captured = trace([](at::Tensor x) { return (x * 3).exp(); }, torch::randn({9}));
  const CompiledReport report = check_compiled(captured, {.backend = "crude"}, torch::randn({9}));
  EXPECT_FALSE(report.ok());
  EXPECT_EQ(report.exit_code(), 1);
  EXPECT_EQ(report.values.size(), 2u);  // of a backend that does not tell, every node
  EXPECT_THAT(str(report), HasSubstr("WORSE than the program"));
}

TEST(CheckCompiled, WritesOfATrainingStepAreResults) {
  const auto model = std::make_shared<Model>();
  const auto step = [model](const at::Tensor& x) {
    model->zero_grad();
    const at::Tensor loss = model->forward(x).square().mean();
    loss.backward();
    const torch::NoGradGuard no_grad;
    for (at::Tensor& parameter : model->parameters()) parameter.sub_(parameter.grad(), 0.01);
    return loss.detach();
  };
  step(example());
  const auto captured = trace(step, example());
  const at::Tensor before = model->first->weight.detach().clone();
  const CompiledReport report = check_compiled(
      captured, {.backend = Mosaic{.threads = 1, .products = "bfloat16"}}, example());
  ASSERT_EQ(report.error, "");
  EXPECT_EQ(report.results.size(), 7u);  // the loss and six parameters
  EXPECT_TRUE(torch::equal(before, model->first->weight));
}

TEST(CheckCompiled, WhatCannotBeIsSaid) {
  const auto draws =
      trace([](at::Tensor x) { return torch::dropout(x, 0.5, true); }, torch::randn({3}));
  EXPECT_THAT([&] { check_compiled(draws, {.backend = "mosaic"}, torch::randn({3})); },
              ::testing::ThrowsMessage<composit::UserError>(HasSubstr("draws random numbers")));
  const auto captured = trace([](at::Tensor x) { return x + 1; }, torch::randn({3}));
  const CompiledReport report = check_compiled(
      captured, {.backend = Mosaic{.choices = "nobody: float32"}}, torch::randn({3}));
  EXPECT_FALSE(report.ok());
  EXPECT_THAT(str(report), HasSubstr("no value is called 'nobody'"));
}

}  // namespace
