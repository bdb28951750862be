// Weights of compiled programs: in memory once when the model and its capture are gone, and as they
// are at each call while somebody has them.
#include <c10/core/InferenceMode.h>
#include <gmock/gmock.h>
#include <torch/nn.h>

#include <map>
#include <optional>
#include <thread>

#include "flashlight/mosaic/plan.h"
#include "flashlight/trace.h"
#include "tests/flashlight/by_backend.h"
#include "tests/resident_memory.h"
#include "tests/user_error.h"

namespace flashlight {
namespace {

using composit::user_error;
using composit::test::resident_bytes;
using test::close;
using test::doubles;
using test::leaf;
using testing::HasSubstr;
using testing::Optional;

const Mosaic kMosaic{.threads = 2, .winograd = false};

torch::nn::Sequential network() {
  torch::nn::Sequential model(torch::nn::Conv2d(3, 8, 3), torch::nn::ReLU(), torch::nn::Flatten(),
                              torch::nn::Linear(8 * 4 * 4, 10));
  model->to(torch::kDouble);
  return model;
}
at::Tensor image() { return doubles({8, 3, 6, 6}); }

// A module, its capture, and what was compiled of that.
struct Subject {
  torch::nn::Sequential model = network();
  std::optional<Capture<at::Tensor(at::Tensor)>> captured = trace(model, image());
  Compiled<at::Tensor(at::Tensor)> compiled = compile(*captured, {.backend = kMosaic});

  at::Tensor expected(const at::Tensor& x) {
    const at::NoGradGuard no_grad;
    return model->forward(x);
  }
  at::Tensor weight(size_t layer) { return model[layer]->named_parameters()["weight"]; }
  void release() {
    captured.reset();
    model = nullptr;
  }
};

using WeakStorage = c10::weak_intrusive_ptr<c10::StorageImpl>;
std::map<std::string, WeakStorage> storages(torch::nn::Sequential& model) {
  std::map<std::string, WeakStorage> storages;
  for (const auto& item : model->named_parameters())
    storages.emplace(item.key(), item.value().storage().getWeakStorageImpl());
  return storages;
}

TEST(Weights, PackedOnesAreFreeWhenTheModelIs) {
  for (const bool called_before : {false, true}) {
    SCOPED_TRACE(called_before);
    Subject subject;
    const std::map<std::string, WeakStorage> weights = storages(subject.model);
    const at::Tensor x = image(), y = subject.expected(x);
    if (called_before) {
      EXPECT_TRUE(close(subject.compiled(x), y));
    }
    subject.release();
    if (!called_before) {
      EXPECT_FALSE(weights.at("0.weight").expired()) << "not packed yet";
      subject.compiled(x);
    }
    EXPECT_TRUE(weights.at("0.weight").expired());
    EXPECT_TRUE(weights.at("3.weight").expired());
    EXPECT_FALSE(weights.at("3.bias").expired()) << "calls read it as it is";
    for (int call = 0; call < 2; ++call) EXPECT_TRUE(close(subject.compiled(x), y));
    const Compiled<at::Tensor(at::Tensor)> copy = subject.compiled;
    EXPECT_TRUE(close(copy(x), y));
  }
}

TEST(Weights, AreTheModelsWhileItIsThere) {
  for (const bool captured : {true, false}) {
    SCOPED_TRACE(captured);
    Subject subject;
    const at::Tensor x = image();
    subject.compiled(x);
    if (!captured) subject.captured.reset();
    for (int change = 0; change < 3; ++change) {
      const at::NoGradGuard no_grad;
      at::Tensor weight = subject.weight(change == 0 ? 0 : 3);
      if (change == 2)
        weight.set_data(weight * 0.5);
      else
        weight.mul_(1.5);
      EXPECT_TRUE(close(subject.compiled(x), subject.expected(x))) << change;
    }
  }
}

// A tensor that somebody kept is no weight of the model any more, but a call that cannot tell what
// was written must not go on in silence.
TEST(Weights, WrittenOnesWhoseModelIsGoneAreRefused) {
  for (const bool alias : {false, true}) {
    SCOPED_TRACE(alias);
    Subject subject;
    const at::Tensor x = image(), y = subject.expected(x);
    subject.compiled(x);
    at::Tensor kept = subject.weight(3);
    if (alias) kept = kept.detach();  // another tensor of that memory
    subject.release();
    EXPECT_TRUE(close(subject.compiled(x), y));
    const at::NoGradGuard no_grad;
    kept.mul_(2);
    for (int call = 0; call < 2; ++call)
      EXPECT_THAT(
          user_error([&] { subject.compiled(x); }),
          Optional(HasSubstr("'3.weight' was written since it was packed, and to pack anew takes "
                             "'0.weight'")));
  }
}

TEST(Weights, OfInferenceModeAreFreeToo) {
  const c10::InferenceMode guard;
  Subject subject;
  const std::map<std::string, WeakStorage> weights = storages(subject.model);
  const at::Tensor x = image();
  EXPECT_TRUE(close(subject.compiled(x), subject.expected(x)));
  subject.weight(3).mul_(2);  // nobody counts this
  const at::Tensor y = subject.expected(x);
  EXPECT_TRUE(close(subject.compiled(x), y));
  subject.release();
  for (const auto& [name, storage] : weights) EXPECT_TRUE(storage.expired()) << name;
  EXPECT_TRUE(close(subject.compiled(x), y));
}

TEST(Weights, InMemoryOfTheProgramStayValid) {
  auto memory = std::make_shared<std::vector<double>>(5 * 7, 0.5);
  const std::weak_ptr<const std::vector<double>> weak = memory;
  const at::Tensor x = doubles({4, 5});
  std::optional captured =
      trace([memory, weight = at::from_blob(memory->data(), {5, 7}, at::kDouble)](
                const at::Tensor& given) { return given.matmul(weight) + weight[0]; },
            x);
  const auto compiled = compile(*captured, {.backend = kMosaic});
  memory.reset();
  captured.reset();
  for (int call = 0; call < 2; ++call)
    EXPECT_TRUE(close(compiled(x), (x.sum(1, true) * 0.5 + 0.5).expand({4, 7})));
  EXPECT_FALSE(weak.expired());
}

TEST(Weights, TheDerivativeReadsThem) {
  Subject subject;
  const at::Tensor x = leaf({8, 3, 6, 6}), z = x.detach().clone().requires_grad_();
  subject.model->forward(z).square().sum().backward();
  subject.compiled(x).square().sum().backward();
  EXPECT_TRUE(close(x.grad(), z.grad()));
  at::Tensor early = subject.compiled(x);
  const at::Tensor y = early.detach().clone();
  subject.release();
  x.mutable_grad() = at::Tensor();
  early.square().sum().backward();  // autograd holds what it saved
  EXPECT_TRUE(close(x.grad(), z.grad()));
  early = at::Tensor();
  const at::Tensor late = subject.compiled(x);
  EXPECT_TRUE(close(late, y));
  EXPECT_THAT(user_error([&] { late.sum().backward(); }),
              Optional(HasSubstr("the derivative takes '0.weight', which is packed, and gone")));
}

TEST(Weights, OfAGradientAreFreeToo) {
  torch::nn::Sequential model = network();
  const at::Tensor x = image();
  const WeakStorage weight = storages(model).at("0.weight");
  std::optional gradient =
      trace([model](
                const at::Tensor& given) mutable { return model->forward(given).square().mean(); },
            x)
          .grad(0, {"input_0"});
  const at::Tensor y = leaf({8, 3, 6, 6});
  at::Tensor loss = model->forward(y).square().mean();
  loss.backward();
  loss = loss.detach();
  const CompiledGradient compiled = compile(*gradient, {.backend = kMosaic});
  gradient.reset();
  model = nullptr;
  for (int call = 0; call < 2; ++call) {
    const Gradient::Result result = compiled({y.detach()});
    EXPECT_TRUE(close(result.loss, loss));
    EXPECT_TRUE(close(result.gradients[0], y.grad()));
  }
  EXPECT_TRUE(weight.expired());
}

// Whatever is packed: calls of code go on with the state that the program had.
class AfterTheModel : public test::ByBackend {};
INSTANTIATE_TEST_SUITE_P(Backends, AfterTheModel, test::kBackends, test::name_of_backend);

TEST_P(AfterTheModel, StateGoesOn) {
  torch::nn::Sequential model(torch::nn::Linear(5, 7), torch::nn::BatchNorm1d(7),
                              torch::nn::Linear(7, 2));
  model->to(torch::kDouble);
  std::optional captured = trace(model, doubles({4, 5}));
  auto twin = std::dynamic_pointer_cast<torch::nn::SequentialImpl>(model->clone());
  const auto compiled = compile(*captured, by_backend());
  const at::NoGradGuard no_grad;
  const auto statistics = model[1]->named_buffers();
  for (int call = 0; call < 3; ++call) {
    const at::Tensor x = doubles({4, 5});
    EXPECT_TRUE(close(compiled(x), twin->forward(x))) << call;
    if (call > 0) continue;
    captured.reset();
    model = nullptr;
  }
  for (const auto& buffer : twin->ptr(1)->named_buffers())
    EXPECT_TRUE(close(statistics[buffer.key()], buffer.value())) << buffer.key();
}

TEST_P(AfterTheModel, ThreadsCallWhileTheCaptureGoes) {
  const at::Tensor x = doubles({4, 5});
  for (int round = 0; round < 20; ++round) {
    torch::nn::Sequential model(torch::nn::Linear(5, 7));
    model->to(torch::kDouble);
    const at::NoGradGuard no_grad;
    const at::Tensor y = model->forward(x);
    std::optional captured = trace(model, x);
    const auto compiled = compile(*captured, by_backend());
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i)
      threads.emplace_back([&] {
        for (int call = 0; call < 10; ++call) EXPECT_TRUE(close(compiled(x), y));
      });
    captured.reset();
    model = nullptr;
    for (std::thread& thread : threads) thread.join();
  }
}

torch::nn::Sequential large_network() {
  torch::nn::Sequential model(torch::nn::Conv2d(torch::nn::Conv2dOptions(256, 1024, 5)),
                              torch::nn::Flatten(), torch::nn::Linear(1024, 16384),
                              torch::nn::ReLU(), torch::nn::Linear(16384, 1024));
  return model;
}

// Conv, linear layers: 26 + 67 + 67 MB. The originals would be 100 % more.
TEST(Weights, AreInMemoryOnce) {
  const at::Tensor x = at::randn({8, 256, 5, 5});
  Subject().compiled(image());  // what libraries and threads keep of their first call
  large_network()->forward(x);
  const int64_t before = resident_bytes();
  torch::nn::Sequential model = large_network();
  int64_t weights = 0;
  for (const at::Tensor& weight : model->parameters())
    weights += static_cast<int64_t>(weight.nbytes());
  const at::Tensor y = model->forward(x).detach();
  std::optional captured = trace(model, x, seen_once);
  const auto compiled = compile(*captured, {.backend = kMosaic});
  compiled(x);
  EXPECT_GT(resident_bytes() - before, 2 * weights * 9 / 10) << "model and packed";
  captured.reset();
  model = nullptr;
  const int64_t after = resident_bytes() - before;
  const int64_t arena =
      mosaic::plan_of(compiled.compiled().graph(), {.winograd = false}).arena_bytes;
  EXPECT_LE(after, weights + arena + weights / 10) << arena;
  EXPECT_GE(after, weights * 9 / 10) << "what was packed";
  EXPECT_TRUE(at::allclose(compiled(x), y, 1e-4, 1e-4));
}

}  // namespace
}  // namespace flashlight
