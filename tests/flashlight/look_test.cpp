// A capture is trusted when it was seen twice: what a call runs and gives until then, what confirms
// it, and what refuses it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/library.h>
#include <torch/torch.h>

#include <filesystem>
#include <optional>
#include <thread>

#include "composit/ir/error.h"
#include "flashlight/compile.h"
#include "flashlight/trace.h"
#include "tests/flashlight/look_messages.h"

namespace {

using flashlight::Trust;
using flashlight::test::caused;
using flashlight::test::documented_of_looks;
using flashlight::test::error_of;
using ::testing::HasSubstr;

// A model, and one step of training it: two of them from one seed do the same.
template <class Optimizer, class Options>
struct Training {
  explicit Training(Options options) : optimizer(parameters(), options) {}
  std::vector<at::Tensor> parameters() {
    torch::manual_seed(3);
    model =
        torch::nn::Sequential(torch::nn::Linear(4, 8), torch::nn::Tanh(), torch::nn::Linear(8, 1));
    return model->parameters();
  }
  at::Tensor step(const at::Tensor& x) {
    optimizer.zero_grad();
    at::Tensor loss = model->forward(x).pow(2).mean();
    loss.backward();
    optimizer.step();
    return loss.detach();
  }
  torch::nn::Sequential model{nullptr};
  Optimizer optimizer;
};

// Traces the first step (or a later one), and calls the capture a hundred times beside eager.
template <class Optimizer, class Options>
void expect_eager_bits(Options options, int steps_before = 0) {
  Training<Optimizer, Options> eager(options), traced(options);
  torch::manual_seed(5);
  std::vector<at::Tensor> batches;
  for (int i = 0; i < 101 + steps_before; ++i) batches.push_back(torch::randn({16, 4}));
  for (int i = 0; i < steps_before; ++i) {
    eager.step(batches[i]);
    traced.step(batches[i]);
  }
  eager.step(batches[steps_before]);
  auto step =
      flashlight::trace([&](at::Tensor x) { return traced.step(x); }, batches[steps_before]);
  const size_t looks = flashlight::looks_taken();
  for (int i = steps_before + 1; i < static_cast<int>(batches.size()); ++i) {
    const at::Tensor expected = eager.step(batches[i]), received = step(batches[i]);
    ASSERT_TRUE(torch::equal(received, expected)) << "loss of step " << i;
    for (size_t p = 0; p < eager.model->parameters().size(); ++p)
      ASSERT_TRUE(torch::equal(traced.model->parameters()[p], eager.model->parameters()[p]))
          << "parameter " << p << " after step " << i;
  }
  EXPECT_EQ(step.trust(), Trust::confirmed);
  EXPECT_LE(flashlight::looks_taken() - looks, 4u);
}

TEST(Look, AdamGoesOnByItself) {
  expect_eager_bits<torch::optim::Adam>(torch::optim::AdamOptions(0.01));
  expect_eager_bits<torch::optim::Adam>(torch::optim::AdamOptions(0.003).amsgrad(true), 7);
}

TEST(Look, AdamWGoesOnByItself) {
  expect_eager_bits<torch::optim::AdamW>(torch::optim::AdamWOptions(0.01).weight_decay(0.1));
}

TEST(Look, AdagradWithDecayGoesOnByItself) {
  expect_eager_bits<torch::optim::Adagrad>(torch::optim::AdagradOptions(0.05).lr_decay(0.01));
}

TEST(Look, SgdAndRMSprop) {
  expect_eager_bits<torch::optim::SGD>(torch::optim::SGDOptions(0.05).momentum(0.9));
  expect_eager_bits<torch::optim::SGD>(torch::optim::SGDOptions(0.05));
  expect_eager_bits<torch::optim::RMSprop>(torch::optim::RMSpropOptions(0.01).centered(true));
}

TEST(Look, OneLookConfirmsAModel) {
  torch::nn::Linear model(4, 3);
  auto captured = flashlight::trace(model, torch::randn({2, 4}));
  EXPECT_EQ(captured.trust(), Trust::seen_once);
  const size_t looks = flashlight::looks_taken();
  for (int i = 0; i < 3; ++i) {
    const at::Tensor x = torch::randn({2, 4});
    const at::Tensor y = captured(x);
    EXPECT_TRUE(torch::equal(y, model(x)));
    EXPECT_FALSE(y.requires_grad());
  }
  EXPECT_EQ(flashlight::looks_taken() - looks, 1u);
  EXPECT_EQ(captured.trust(), Trust::confirmed);
}

TEST(Look, EqualInputsConfirmAfterFour) {
  torch::nn::Linear model(4, 3);
  const at::Tensor x = torch::randn({2, 4});
  auto captured = flashlight::trace(model, x);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(captured.trust(), Trust::seen_once);
    captured(x);
  }
  EXPECT_EQ(captured.trust(), Trust::equal_inputs);
}

TEST(Look, AHostNumberIsRefusedByOperatorAndValues) {
  double scale = 0.3;
  auto captured = flashlight::trace(
      [&](at::Tensor x) {
        scale = scale * scale + 0.1;
        return x * scale;
      },
      torch::ones({2}));
  double eager = scale;
  for (int i = 0; i < 2; ++i) {
    eager = eager * eager + 0.1;
    EXPECT_TRUE(torch::equal(captured(torch::full({2}, 2.0)), torch::full({2}, 2.0) * eager));
  }
  const double before = scale;
  EXPECT_THAT(error_of([&] { captured(torch::ones({2})); }),
              ::testing::AllOf(HasSubstr("aten::mul"), HasSubstr("changes from call to call")));
  EXPECT_EQ(scale, before);  // the program did not run
}

TEST(Look, HiddenStateIsWrittenBack) {
  struct Rnn {
    torch::nn::Linear a{3, 3};
    at::Tensor h = torch::zeros({2, 3});
    at::Tensor operator()(const at::Tensor& x) { return h = torch::tanh(a(x) + h).detach(); }
  };
  Rnn eager, traced;
  torch::nn::init::ones_(eager.a->weight);
  traced.a = eager.a;
  auto captured = flashlight::trace([&](at::Tensor x) { return traced(x); }, torch::ones({2, 3}));
  eager(torch::ones({2, 3}));
  std::vector<at::Tensor> kept, expected;
  for (int i = 0; i < 20; ++i) {
    const at::Tensor x = torch::randn({2, 3});
    kept.push_back(captured(x));
    expected.push_back(eager(x));
    ASSERT_TRUE(torch::equal(kept.back(), expected.back())) << "call " << i;
    ASSERT_TRUE(torch::equal(traced.h, eager.h));
  }
  for (size_t i = 0; i < kept.size(); ++i) EXPECT_TRUE(torch::equal(kept[i], expected[i]));
  EXPECT_EQ(captured.trust(), Trust::confirmed);
  traced.h = torch::zeros({2, 3});
  EXPECT_THAT(error_of([&] { captured(torch::ones({2, 3})); }), HasSubstr("another tensor"));
}

TEST(Look, StateThatGrowsIsRefused) {
  at::Tensor cache = torch::zeros({1, 3});
  auto captured = flashlight::trace(
      [&](at::Tensor x) {
        cache = torch::cat({cache, x});
        return cache.sum(0);
      },
      torch::ones({1, 3}));
  EXPECT_TRUE(torch::equal(captured(torch::ones({1, 3})), torch::full({3}, 2.0)));
  EXPECT_THAT(error_of([&] { captured(torch::ones({1, 3})); }), HasSubstr("allocate it once"));
}

TEST(Look, MemoryReadByAnAccessorIsRefused) {
  auto captured = flashlight::trace(
      [](at::Tensor x) {
        const float first = x.accessor<float, 1>()[0];
        return x + static_cast<double>(first);
      },
      torch::ones({3}));
  EXPECT_TRUE(torch::equal(captured(torch::full({3}, 2.5)), torch::full({3}, 5.0)));
  captured(torch::full({3}, 7.0));
  EXPECT_THAT(error_of([&] { captured(torch::full({3}, 1.5)); }), HasSubstr("aten::add"));
}

TEST(Look, MemoryWrittenByAPointerIsRefused) {
  at::Tensor count = torch::zeros({1});
  auto captured = flashlight::trace(
      [&](at::Tensor x) {
        count.data_ptr<float>()[0] += 1;
        return x * count;
      },
      torch::ones({3}));
  EXPECT_TRUE(torch::equal(captured(torch::ones({3})), torch::full({3}, 2.0)));
  EXPECT_THAT(error_of([&] { captured(torch::ones({3})); }), HasSubstr("no operator wrote it"));
}

flashlight::Capture<at::Tensor(at::Tensor)> capture_of_a_module_that_dies(const at::Tensor& x) {
  struct Net : torch::nn::Module {
    Net() { register_module("fc", fc); }
    at::Tensor forward(const at::Tensor& x) { return fc(x); }
    torch::nn::Linear fc{3, 3};
  };
  Net net;
  return flashlight::trace(net, x);
}

TEST(Look, AModuleThatIsGoneIsNotRun) {
  const size_t looks = flashlight::looks_taken();
  auto captured = capture_of_a_module_that_dies(torch::ones({2, 3}));
  const at::Tensor x = torch::randn({2, 3});
  const at::Tensor expected =
      torch::linear(x, captured.state()[0].tensor, captured.state()[1].tensor).detach();
  EXPECT_TRUE(torch::equal(captured(x), expected));
  EXPECT_EQ(captured.trust(), Trust::seen_once);
  EXPECT_EQ(flashlight::looks_taken(), looks);
}

TEST(Look, AGuardThatDiffersIsNoLook) {
  auto captured = flashlight::trace(
      [](at::Tensor x) { return x.sum().item<float>() > 0 ? x + 1 : x - 1; }, torch::ones({2}));
  EXPECT_TRUE(torch::equal(captured(-torch::ones({2})), torch::full({2}, -2.0)));
  EXPECT_TRUE(torch::equal(captured(torch::full({2}, 3.0)), torch::full({2}, 4.0)));
  EXPECT_EQ(captured.refusal(), "");
}

TEST(Look, ASizeThatDependsOnValuesIsNoLook) {
  auto captured = flashlight::trace([](at::Tensor x) { return x.index({x > 0}).cumsum(0) * 2; },
                                    torch::ones({4}));
  for (int i = 0; i < 6; ++i) {
    at::Tensor x = -torch::ones({4});
    x.slice(0, 0, i % 3).fill_(3);
    EXPECT_TRUE(torch::equal(captured(x), x.slice(0, 0, i % 3).cumsum(0) * 2));
  }
  EXPECT_EQ(captured.refusal(), "");
  EXPECT_EQ(captured.trust(), Trust::seen_once);
  captured(torch::full({4}, 2.0));
  EXPECT_EQ(captured.trust(), Trust::confirmed);
}

TEST(Look, OtherModesAreRefused) {
  torch::nn::Linear model(4, 3);
  auto captured = flashlight::trace(model, torch::randn({2, 4}));
  const at::NoGradGuard no_grad;
  EXPECT_THAT(error_of([&] { captured(torch::randn({2, 4})); }), HasSubstr("grad mode"));
}

TEST(Look, ModesAndFlagsOfModulesAreExpected) {
  torch::nn::Sequential model(torch::nn::Linear(4, 3), torch::nn::Dropout(0.5));
  auto captured = flashlight::trace(model, torch::randn({2, 4}));
  captured(torch::randn({2, 4}));
  model->eval();
  EXPECT_THAT(error_of([&] {
                captured(torch::randn({2, 4}));
              }),
              HasSubstr("training or evaluation"));
  model->train();
  captured(torch::randn({2, 4}));
  model->parameters()[0].requires_grad_(false);
  EXPECT_THAT(error_of([&] { captured(torch::randn({2, 4})); }), HasSubstr("'0.weight' requires"));
}

TEST(Look, ReplacedModulesAreRefused) {
  torch::nn::Sequential model(torch::nn::Linear(4, 3), torch::nn::ReLU());
  auto captured = flashlight::trace(model, torch::randn({2, 4}));
  const std::shared_ptr<torch::nn::Module> linear = model->ptr(0);
  for (int i = 0; i < 2; ++i) {  // before a look, then before a replay
    SCOPED_TRACE(i);
    model->replace_module("0", torch::nn::Linear(4, 3));
    EXPECT_THAT(error_of([&] {
                  captured(torch::randn({2, 4}));
                }),
                HasSubstr("'0.weight' of its modules is another one"));
    model->replace_module("0", linear);
    captured(torch::randn({2, 4}));
  }
  EXPECT_EQ(captured.trust(), Trust::confirmed);
}

TEST(Look, PartOfAModuleThatIsGoneIsRefused) {
  at::Tensor kept;
  auto captured = [&] {
    torch::nn::LinearImpl model(4, 3);
    kept = model.weight;
    return flashlight::trace(model, torch::randn({2, 4}));
  }();
  EXPECT_THAT(error_of([&] {
                captured(torch::randn({2, 4}));
              }),
              HasSubstr("nobody else holds 'bias' any more"));
}

// Nor is it taken for a sign that the module lives, which would run it.
TEST(Look, CompiledCodeDoesNotHoldTheModule) {
  for (const composit::BackendChoice& backend :
       {composit::BackendChoice("cpp"),
        composit::BackendChoice(flashlight::Mosaic{.threads = 1})}) {
    std::optional<flashlight::Compiled<at::Tensor(at::Tensor)>> compiled;
    const at::Tensor x = torch::randn({2, 4});
    const at::NoGradGuard no_grad;
    auto captured = [&] {
      torch::nn::LinearImpl model(4, 3);
      auto made = flashlight::trace(model, torch::randn({2, 4}));
      compiled.emplace(made, flashlight::CompileSettings{.backend = backend});
      (*compiled)(x);
      return made;
    }();
    const size_t looks = flashlight::looks_taken();
    EXPECT_TRUE(at::allclose(captured(x), (*compiled)(x)));
    EXPECT_EQ(flashlight::looks_taken(), looks);
  }
}

TEST(Look, AnotherTypeIsNoLook) {
  int runs = 0;
  auto captured = flashlight::trace([&](at::Tensor x) { return ++runs, x * 2; }, torch::ones({2}));
  EXPECT_THAT(error_of([&] { captured(torch::ones({3})); }), HasSubstr("expected float32 [2]"));
  EXPECT_EQ(runs, 1);
}

TEST(Look, AProgramThatEndsThrowsWhatItThrows) {
  std::vector<double> lines{1, 2};
  auto captured = flashlight::trace(
      [&](at::Tensor x) {
        if (lines.empty()) throw std::out_of_range("no line is left");
        lines.pop_back();
        return x * 2;
      },
      torch::ones({2}));
  captured(torch::ones({2}));
  EXPECT_THROW(captured(torch::zeros({2})), std::out_of_range);
}

TEST(Look, OnlyCallsRunTheProgram) {
  int runs = 0;
  auto captured =
      flashlight::trace([&](at::Tensor x) { return ++runs, (x * 2).sum(); }, torch::ones({2}));
  captured.replay({torch::zeros({2})});
  captured.grad(0, {"input_0"});
  captured.save(std::filesystem::path(::testing::TempDir()) / "seen_once");
  const auto compiled = flashlight::compile(captured);
  EXPECT_EQ(runs, 1);
  EXPECT_THAT(captured.assumptions(), ::testing::Contains("seen once"));
  const auto again = flashlight::load(std::filesystem::path(::testing::TempDir()) / "seen_once");
  EXPECT_THAT(again.assumptions(), ::testing::Contains("seen once"));
}

TEST(Look, ByName) {
  int runs = 0;
  const auto program = [&](at::Tensor x) { return ++runs, x * 2; };
  auto once = flashlight::trace(program, torch::ones({2}), flashlight::seen_once);
  once(torch::zeros({2}));
  EXPECT_EQ(runs, 1);
  auto twice = flashlight::trace(program, torch::ones({2}), flashlight::confirm(torch::zeros({2})));
  EXPECT_EQ(runs, 3);
  EXPECT_EQ(twice.trust(), Trust::confirmed);
}

TEST(Look, CountedNumbersAreSaved) {
  int64_t step = 0;
  const auto program = [&](at::Tensor x) { return x * static_cast<double>(++step); };
  auto captured = flashlight::trace(program, torch::ones({1}));
  for (int i = 0; i < 4; ++i) captured(torch::ones({1}));
  EXPECT_EQ(captured.trust(), Trust::confirmed);
  EXPECT_EQ(captured(torch::ones({1})).item<float>(), 6);
  EXPECT_EQ(step, 5);
  const auto folder = std::filesystem::path(::testing::TempDir()) / "counted";
  captured.save(folder);
  const auto again = flashlight::load(folder);
  EXPECT_EQ(again(torch::ones({1}))[0].item<float>(), 7);
  EXPECT_EQ(again(torch::ones({1}))[0].item<float>(), 8);
  EXPECT_THAT(error_of([&] { flashlight::compile(captured); }), HasSubstr("follow its calls"));
}

// Gradients are no part of what is saved, so a node has another number there.
TEST(Look, CountedNumbersAreSavedBesideGradients) {
  int64_t step = 0;
  const at::Tensor w = torch::full({1}, 3.0).requires_grad_();
  const auto program = [&](at::Tensor x) {
    w.mutable_grad() = at::Tensor();
    const at::Tensor y = (x * w).sin();
    y.sum().backward();
    return y.detach().cos() * static_cast<double>(++step);
  };
  auto captured = flashlight::trace(program, torch::ones({1}));
  for (int i = 0; i < 4; ++i) captured(torch::ones({1}));
  EXPECT_EQ(captured.trust(), Trust::confirmed);
  const auto folder = std::filesystem::path(::testing::TempDir()) / "counted_beside_gradients";
  captured.save(folder);
  const auto again = flashlight::load(folder);
  const at::Tensor x = torch::full({1}, 0.5);
  const at::Tensor expected = (x * w).sin().cos().detach();
  EXPECT_TRUE(torch::equal(again(x)[0], expected * static_cast<double>(step + 1)));
  EXPECT_TRUE(torch::equal(again(x)[0], expected * static_cast<double>(step + 2)));
}

// A number that only gradients have cannot be saved.
TEST(Look, CountedNumbersOfGradientsAreNotSaved) {
  int64_t step = 0;
  const at::Tensor w = torch::full({1}, 3.0).requires_grad_();
  const auto program = [&](at::Tensor x) {
    w.mutable_grad() = at::Tensor();
    (x * w * static_cast<double>(++step)).sum().backward();
    return x * 2;
  };
  auto captured = flashlight::trace(program, torch::ones({1}));
  for (int i = 0; i < 4; ++i) captured(torch::ones({1}));
  EXPECT_EQ(captured.trust(), Trust::confirmed);
  EXPECT_THAT(
      error_of([&] { captured.save(std::filesystem::path(::testing::TempDir()) / "not_saved"); }),
      HasSubstr("[save] expected a capture whose numbers stay as they are"));
}

TEST(Look, DrawsAreComparedFromOneState) {
  auto captured = flashlight::trace([](at::Tensor x) { return torch::dropout(x, 0.5, true); },
                                    torch::ones({64}));
  for (int i = 0; i < 3; ++i) {
    torch::manual_seed(i);
    const at::Tensor received = captured(torch::full({64}, 2.0)), next = torch::rand({1});
    torch::manual_seed(i);
    EXPECT_TRUE(torch::equal(received, torch::dropout(torch::full({64}, 2.0), 0.5, true)));
    EXPECT_TRUE(torch::equal(next, torch::rand({1})));
  }
  EXPECT_EQ(captured.trust(), Trust::confirmed);
}

TEST(Look, AnotherWayInEachRunIsRefused) {
  int run = 0;
  auto captured = flashlight::trace(
      [&](at::Tensor x) {
        for (int i = ++run; i > 0; --i) x = x.sin();
        return x;
      },
      torch::ones({2}));
  for (int i = 0; i < 4; ++i) captured(torch::rand({2}));
  EXPECT_THAT(error_of([&] { captured(torch::ones({2})); }),
              ::testing::AllOf(HasSubstr("another way in each run"), HasSubstr("aten::sin")));
}

// Its results depend on how often it was called, which no argument shows.
at::Tensor counted_calls(const at::Tensor& x) {
  static int calls = 0;
  return x + static_cast<double>(++calls);
}
TORCH_LIBRARY(look_test, library) {
  library.def("counted_calls(Tensor x) -> Tensor");
  library.impl("counted_calls", c10::DispatchKey::CPU, &counted_calls);
}

TEST(Look, TheFirstValueThatDiffersIsNamed) {
  const auto op = c10::Dispatcher::singleton()
                      .findSchemaOrThrow("look_test::counted_calls", "")
                      .typed<at::Tensor(const at::Tensor&)>();
  auto captured =
      flashlight::trace([&](at::Tensor x) { return op.call(x.sin()) * 2; }, torch::ones({3}));
  captured(torch::zeros({3}));
  EXPECT_THAT(error_of([&] { captured(torch::zeros({3})); }),
              ::testing::AllOf(HasSubstr("look_test::counted_calls, output 0: element 0"),
                               HasSubstr("in the program and")));
}

TEST(Look, ThreadsWaitForIt) {
  torch::nn::Linear model(4, 3);
  auto captured = flashlight::trace(model, torch::randn({2, 4}));
  const size_t looks = flashlight::looks_taken();
  std::vector<std::thread> threads;
  std::vector<int> equal(4, 0);
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      const at::Tensor x = torch::full({2, 4}, 0.5 * i);
      equal[i] = torch::equal(captured(x), model(x)) ? 1 : 0;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(equal, ::testing::Each(1));
  EXPECT_EQ(flashlight::looks_taken() - looks, 1u);
}

// Behind all others.
TEST(LookMessages, AreThoseOfTheDocument) {
  for (const std::string& message : documented_of_looks())
    EXPECT_TRUE(caused().count(message)) << "nothing here causes: " << message;
  EXPECT_FALSE(documented_of_looks().empty());
}

}  // namespace
