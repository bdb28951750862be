// Numbers of a program that are no sizes: learning rates under a schedule, weights of a loss,
// annealed temperatures, what is read from tensors. Calls with numbers that nobody showed have the
// bits of eager.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <array>
#include <filesystem>

#include "flashlight/compiled_family.h"
#include "flashlight/family.h"

namespace flashlight {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using Tensors = std::vector<at::Tensor>;

// ---- training -----------------------------------------------------------------------------------

int clip_line = 0;

// A model whose training step is a program of its own: it owns its optimizer.
template <class Optimizer, class Options>
struct Training : torch::nn::Module {
  explicit Training(Options options) : optimizer(parameters_of(), options) {}

  Tensors parameters_of() {
    register_module("first", first);
    register_module("last", last);
    return parameters();
  }
  at::Tensor forward(const at::Tensor& x, const at::Tensor& y) {
    optimizer.zero_grad();
    const at::Tensor loss = torch::mse_loss(last(torch::tanh(first(x))), y);
    loss.backward();
    clip_line = __LINE__ + 1;
    torch::nn::utils::clip_grad_norm_(parameters(), 0.05);
    optimizer.step();
    return loss.detach();
  }
  double rate() { return optimizer.param_groups()[0].options().get_lr(); }
  void set_rate(double rate) { optimizer.param_groups()[0].options().set_lr(rate); }

  torch::nn::Linear first{5, 7}, last{7, 3};
  Optimizer optimizer;
};

// Two models with equal parameters.
template <class Model, class Options>
std::array<std::shared_ptr<Model>, 2> two_of(const Options& options) {
  const torch::NoGradGuard no_grad;
  const auto one = std::make_shared<Model>(options), other = std::make_shared<Model>(options);
  for (size_t i = 0; i < one->parameters().size(); ++i)
    other->parameters()[i].copy_(one->parameters()[i]);
  return {one, other};
}

// The norm that clipping returns is compared with nothing.
FamilySettings training_settings() {
  FamilySettings settings;
  settings.predicates = {
      composit::predicate("family_numbers_test.cpp:" + std::to_string(clip_line), "any")};
  return settings;
}

Tensors batch(int64_t rows) { return {torch::randn({rows, 5}), torch::randn({rows, 3})}; }

// 200 steps with a rate that falls, and batches of sizes that nobody showed.
template <class Optimizer, class Options>
void expect_training_goes_on(Options options) {
  using Model = Training<Optimizer, Options>;
  torch::manual_seed(5);
  const auto models = two_of<Model>(options);
  const std::shared_ptr<Model>&eager = models[0], &traced = models[1];
  torch::optim::StepLR eager_schedule(eager->optimizer, 7, 0.7),
      schedule(traced->optimizer, 7, 0.7);
  const auto both = [&](const Tensors& xy) {
    eager->forward(xy[0], xy[1]);
    traced->forward(xy[0], xy[1]);
  };
  both(batch(4));  // makes the optimizer's state
  FamilySettings settings = training_settings();
  settings.numbers = {
      {"lr", [&] { return traced->rate(); }, [&](double rate) { traced->set_rate(rate); }}};
  const std::vector<std::pair<int64_t, double>> shown = {{4, 0.1}, {6, 0.05}, {9, 0.03}};
  std::vector<Tensors> batches;
  for (const auto& [rows, rate] : shown) {
    batches.push_back(batch(rows));
    const double before = eager->rate();
    eager->set_rate(rate);
    eager->forward(batches.back()[0], batches.back()[1]);
    eager->set_rate(before);
  }
  const auto example_of = [&](size_t i) {
    return example(batches[i][0], batches[i][1]).with("lr", shown[i].second);
  };
  const auto family = trace_family(settings, *traced, example_of(0), example_of(1), example_of(2));
  for (int step = 0; step < 200; ++step) {
    const Tensors xy = batch(4 + step % 6);
    const at::Tensor expected = eager->forward(xy[0], xy[1]);
    ASSERT_TRUE(torch::equal(family(xy[0], xy[1]), expected)) << "step " << step;
    eager_schedule.step();
    schedule.step();
  }
  EXPECT_LT(eager->rate(), 1e-5);
  for (size_t i = 0; i < eager->parameters().size(); ++i)
    EXPECT_TRUE(torch::equal(eager->parameters()[i], traced->parameters()[i])) << i;
}

TEST(FamilyNumbers, AdamUnderAScheduleWithClipping) {
  expect_training_goes_on<torch::optim::Adam>(torch::optim::AdamOptions(0.1));
}

TEST(FamilyNumbers, AdamWUnderAScheduleWithClipping) {
  expect_training_goes_on<torch::optim::AdamW>(torch::optim::AdamWOptions(0.1).weight_decay(0.02));
}

// A step that counts its calls in its numbers.
struct Counting {
  mutable int64_t calls = 0;
  at::Tensor operator()(const at::Tensor& x) const {
    ++calls;
    if ((x.sum() > 100).item<bool>()) return x;  // a guard
    return x / (1 - std::pow(0.9, static_cast<double>(calls))) * 0.9;
  }
};

TEST(FamilyNumbers, CallsThatAreRefusedDoNotCount) {
  torch::NoGradGuard no_grad;
  const Counting program;
  const auto x = [](int64_t rows) { return torch::rand({rows, 2}); };
  const auto family = trace_family([&program](const at::Tensor& y) { return program(y); },
                                   example(x(3)), example(x(4)), example(x(6)));
  const auto expect_call = [&](const auto& call, int64_t number) {
    const at::Tensor y = x(5);
    const Counting eager{number};
    EXPECT_TRUE(torch::equal(call(y), eager(y))) << number;
  };
  expect_call(family, 3);
  EXPECT_THROW(family(x(4) + 100), composit::UserError);
  EXPECT_THROW(family(x(9)), composit::UserError);
  expect_call(family, 4);
  expect_call(family.with({{"calls", 11.0}}), 11);
  expect_call(family, 5);
  const auto folder = std::filesystem::path(::testing::TempDir()) / "counting_family";
  std::filesystem::remove_all(folder);
  family.save(folder);
  const auto loaded = load_family(folder);
  expect_call([&](const at::Tensor& y) { return loaded(y).at(0); }, 6);
  expect_call([&](const at::Tensor& y) { return loaded.with({{"calls", 2.0}})(y).at(0); }, 2);
  EXPECT_EQ(composit::print(loaded.family()), composit::print(family.family()));
}

TEST(FamilyNumbers, SgdUnderAScheduleWithClipping) {
  expect_training_goes_on<torch::optim::SGD>(torch::optim::SGDOptions(0.1).momentum(0.9));
}

// Compiled once: neither the rate nor the step count needs a compiler again.
template <class Optimizer, class Options>
void expect_compiled_training(Options options, const CompileSettings& settings) {
  using Model = Training<Optimizer, Options>;
  torch::manual_seed(5);
  const auto models = two_of<Model>(options);
  const std::shared_ptr<Model>&eager = models[0], &traced = models[1];
  const auto step = [&](const std::shared_ptr<Model>& model, const Tensors& xy, double rate) {
    model->set_rate(rate);
    return model->forward(xy[0], xy[1]);
  };
  Tensors xy = batch(6);
  step(eager, xy, 0.1);
  step(traced, xy, 0.1);
  FamilySettings family_settings = training_settings();
  family_settings.numbers = {
      {"lr", [&] { return traced->rate(); }, [&](double rate) { traced->set_rate(rate); }}};
  const auto example_at = [&](double rate) {
    step(eager, xy, rate);
    return example(xy[0], xy[1]).with("lr", rate);
  };
  const auto first = example_at(0.1), second = example_at(0.05), third = example_at(0.03);
  const auto family = trace_family(family_settings, *traced, first, second, third);
  const auto fast = compile(family, settings);
  double rate = 0.1;
  for (int i = 0; i < 50; ++i) {
    xy = batch(6);
    traced->set_rate(rate *= 0.97);
    const at::Tensor expected = step(eager, xy, rate), received = fast(xy[0], xy[1]);
    ASSERT_TRUE(torch::allclose(received, expected, 1e-4, 1e-6)) << "step " << i;
  }
  for (size_t i = 0; i < eager->parameters().size(); ++i)
    EXPECT_TRUE(torch::allclose(eager->parameters()[i], traced->parameters()[i], 1e-3, 1e-5)) << i;
  EXPECT_LE(fast.programs(), 1U);
}

TEST(FamilyNumbers, CompiledTrainingTakesTheRateOfEachCall) {
  for (const bool mosaic : {true, false}) {
    const CompileSettings settings{.backend = mosaic ? "mosaic" : "cpp"};
    expect_compiled_training<torch::optim::AdamW>(
        torch::optim::AdamWOptions(0.1).weight_decay(0.02), settings);
    expect_compiled_training<torch::optim::SGD>(torch::optim::SGDOptions(0.1).momentum(0.9),
                                                settings);
  }
}

// ---- numbers among arguments --------------------------------------------------------------------

// A temperature that is annealed, and the weight of a loss.
struct Annealed {
  mutable torch::nn::Linear layer{4, 6};

  std::tuple<at::Tensor, at::Tensor> operator()(const at::Tensor& x, double temperature,
                                                float weight) const {
    const at::Tensor y = torch::softmax(layer->forward(x) / temperature, -1);
    return {y, y.pow(2).mean() * weight + (1 - weight) * y.abs().sum()};
  }
};

auto annealed_family(const Annealed& program) {
  return trace_family({.names = {"rows"}}, program, example(torch::randn({3, 4}), 2.0, 0.25F),
                      example(torch::randn({5, 4}), 1.5, 0.1F),
                      example(torch::randn({8, 4}), 0.3, 0.8F));
}

TEST(FamilyNumbers, ArgumentsAreTheirOwnNames) {
  torch::NoGradGuard no_grad;
  const Annealed program;
  const auto family = annealed_family(program);
  for (const double temperature : {0.7, 1e-3, 5.0}) {
    const at::Tensor x = torch::randn({6, 4});
    const auto expected = program(x, temperature, 0.6F), received = family(x, temperature, 0.6F);
    EXPECT_TRUE(torch::equal(std::get<0>(received), std::get<0>(expected))) << temperature;
    EXPECT_TRUE(torch::equal(std::get<1>(received), std::get<1>(expected))) << temperature;
  }
  const CheckReport report = family.check(torch::randn({4, 4}), 0.01, 0.1F);
  EXPECT_TRUE(report) << str(report);
  EXPECT_THAT(family.assumptions(), Contains(HasSubstr("input_1: a number that callers give")));
  EXPECT_THAT(family.assumptions(), Contains(HasSubstr("is float(1.0 - input_2)")));
}

// In double and in single precision 1 - 0.25, 1 - 0.375 and 1 - 0.5 are the same.
TEST(FamilyNumbers, FormulasThatDifferElsewhereAreAskedFor) {
  const Annealed program;
  try {
    trace_family(program, example(torch::randn({3, 4}), 2.0, 0.25F),
                 example(torch::randn({5, 4}), 1.5, 0.375F),
                 example(torch::randn({8, 4}), 0.3, 0.5F));
    FAIL();
  } catch (const composit::UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("may be 1.0 - input_2 or float(1.0 - input_2)"));
  }
}

TEST(FamilyNumbers, ACaptureHasTheNumbersOfItsCall) {
  torch::NoGradGuard no_grad;
  const Annealed program;
  const auto family = annealed_family(program);
  for (const bool mosaic : {true, false}) {
    const auto fast = compile(family, {.backend = mosaic ? "mosaic" : "cpp"});
    if (mosaic) {
      EXPECT_EQ(fast.prepare(), 6U) << "rows from 3 to 8";
    }
    const at::Tensor x = torch::randn({6, 4});
    const auto expected = program(x, 0.9, 0.3F), received = fast(x, 0.9, 0.3F);
    EXPECT_TRUE(torch::allclose(std::get<0>(received), std::get<0>(expected), 1e-5, 1e-6));
    EXPECT_TRUE(torch::allclose(std::get<1>(received), std::get<1>(expected), 1e-5, 1e-6));
  }
  const auto captured = family.with({{"input_1", 0.7}, {"input_2", 0.5}}).at({{"rows", 4}});
  const at::Tensor x = torch::randn({4, 4});
  EXPECT_TRUE(torch::equal(captured.call({x}).tensors[1], std::get<1>(program(x, 0.7, 0.5F))));
  EXPECT_THROW(family.with({{"input_3", 1.0}}), composit::UserError);
}

// A number that nothing follows from decides something that nobody sees.
TEST(FamilyNumbers, AnArgumentThatNothingUsesIsRefused) {
  const auto program = [](const at::Tensor& x, double unused) {
    return unused > 0 ? x * 2 : x * 2;
  };
  try {
    trace_family(program, example(torch::randn({3, 4}), 1.0), example(torch::randn({4, 4}), 2.0),
                 example(torch::randn({5, 4}), 3.0));
    FAIL();
  } catch (const composit::UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("'input_1' differs between examples"));
  }
}

// ---- numbers that nobody declared ---------------------------------------------------------------

TEST(FamilyNumbers, ANumberIsCalledByItsLine) {
  double scale = 0.5;
  const int line = __LINE__ + 1;
  const auto program = [&scale](const at::Tensor& x) { return torch::relu(x) * scale + x; };
  std::vector<CaptureBase> examples;
  TraceSettings settings;
  settings.source_lines = true;
  settings.seen_once = true;
  for (const auto& [rows, number] :
       std::vector<std::pair<int64_t, double>>{{3, 0.5}, {4, 0.1}, {5, 0.3}, {5, 0.7}}) {
    scale = number;
    examples.push_back(trace(settings, program, torch::randn({rows, 4})));
  }
  const FamilyBase family(examples, {});
  const std::string name = "family_numbers_test.cpp:" + std::to_string(line);
  scale = 0.11;
  const at::Tensor x = torch::randn({4, 4});
  EXPECT_TRUE(torch::equal(family.with({{name, 0.11}}).call({x}).tensors[0], program(x)));
  try {
    family.call({x});
    FAIL();
  } catch (const composit::UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("expected the number '" + name + "'"));
  }
}

// At each size one number: it may follow from the size.
TEST(FamilyNumbers, ANumberForEachSizeIsRefused) {
  const auto program = [](const at::Tensor& x) {
    return x * std::sqrt(static_cast<double>(x.size(0)));
  };
  try {
    trace_family(program, example(torch::randn({3, 4})), example(torch::randn({4, 4})),
                 example(torch::randn({5, 4})));
    FAIL();
  } catch (const composit::UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("is shown with two values at one size"));
  }
}

// Sizes and numbers that rise by one from example to example are no counts of calls.
TEST(FamilyNumbers, WhatRisesByOneIsNoCountOfCalls) {
  torch::NoGradGuard no_grad;
  const auto by_size = [](const at::Tensor& x) {
    return x.sum(0) / static_cast<double>(x.size(0)) + x.slice(0, 0, x.size(0) - 1).sum(0);
  };
  const auto x = [](int64_t rows) { return torch::rand({rows, 3}); };
  EXPECT_THROW(trace_family(by_size, example(x(2)), example(x(3)), example(x(4)), example(x(5)),
                            example(x(6))),
               composit::UserError);
  const auto sliced = [](const at::Tensor& y) { return y.slice(0, 0, y.size(0) - 1).sum(0); };
  const auto family = trace_family(sliced, example(x(2)), example(x(3)), example(x(4)));
  EXPECT_TRUE(family.number_names().empty());
  const at::Tensor y = x(2);
  EXPECT_TRUE(torch::equal(family(y), sliced(y)));
  double scale = 0;
  const auto scaled = [&scale](const at::Tensor& z) { return z * ++scale; };
  const auto three = trace_family(scaled, example(x(2)), example(x(2)), example(x(2)));
  EXPECT_EQ(three.family().numbers.at(0).origin, composit::NumberOrigin::source);
  scale = 0;
  const auto five = trace_family(scaled, example(x(2)), example(x(2)), example(x(2)), example(x(2)),
                                 example(x(2)));
  const at::Tensor z = x(2);
  EXPECT_TRUE(torch::equal(five(z), z * 6));
}

// A number that callers give and a size were the same in all examples.
TEST(FamilyNumbers, ANumberThatMayBeASizeIsAskedFor) {
  const auto program = [](const at::Tensor& x, double by) { return x.sum(0) / by; };
  const auto x = [](int64_t rows) { return torch::rand({rows, 3}); };
  try {
    trace_family({.names = {"rows"}}, program, example(x(2), 2.0), example(x(3), 3.0),
                 example(x(5), 5.0));
    FAIL();
  } catch (const composit::UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("may be input_1 or rows"));
  }
}

// An integer that is no size: a power, a step.
TEST(FamilyNumbers, IntegersThatAreNoSizes) {
  torch::NoGradGuard no_grad;
  const auto program = [](const at::Tensor& x, int64_t power) {
    return x.pow(power) * (power + 1);
  };
  const auto x = [](int64_t rows) { return torch::rand({rows, 3}); };
  const auto family = trace_family(program, example(x(2), int64_t{3}), example(x(4), int64_t{7}),
                                   example(x(7), int64_t{5}));
  const at::Tensor y = x(5);
  EXPECT_TRUE(torch::equal(family(y, int64_t{4}), program(y, 4)));
}

// In which precision a program adds 1 to a fraction, whole numbers do not show.
TEST(FamilyNumbers, AFractionWhereAllExamplesAreWholeIsRefused) {
  torch::NoGradGuard no_grad;
  const auto program = [](const at::Tensor& x, float by) { return x * (by + 1); };
  const auto x = [](int64_t rows) { return torch::rand({rows, 3}); };
  const auto family =
      trace_family(program, example(x(2), 3.0F), example(x(4), 7.0F), example(x(7), 5.0F));
  const at::Tensor y = x(5);
  EXPECT_TRUE(torch::equal(family(y, 4.0F), program(y, 4)));
  try {
    family(y, 4.3F);
    FAIL();
  } catch (const composit::UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("all examples have whole numbers there"));
  }
}

// ---- numbers that the program reads -------------------------------------------------------------

// Clipping as programs write it themselves: the norm is read and comes back as a factor.
TEST(FamilyNumbers, ANumberThatIsReadComesBackAsAFactor) {
  torch::NoGradGuard no_grad;
  int line = 0;
  const auto program = [&line](const at::Tensor& x) {
    line = __LINE__ + 1;
    const double norm = x.norm().item<double>();
    return torch::tanh(x * (0.5 / (norm + 1e-6)));
  };
  program(torch::randn({2, 4}));
  FamilySettings settings{.names = {"rows"}};
  const auto family_of = [&] {
    return trace_family(settings, program, example(torch::randn({3, 4})),
                        example(torch::randn({4, 4})), example(torch::randn({6, 4})));
  };
  EXPECT_THROW(family_of(), composit::UserError);  // nobody says what the program asks of the norm
  settings.predicates = {
      composit::predicate("family_numbers_test.cpp:" + std::to_string(line), "any")};
  const auto family = family_of();
  for (const int64_t rows : {3, 5, 6}) {
    const at::Tensor x = torch::randn({rows, 4}) * static_cast<double>(rows);
    EXPECT_TRUE(torch::equal(family(x), program(x))) << rows;
  }
  EXPECT_THAT(family.assumptions(), Contains(HasSubstr("0.5 / (")));
  const CheckReport report = family.check(torch::randn({5, 4}));
  EXPECT_TRUE(report) << str(report);
}

}  // namespace
}  // namespace flashlight
