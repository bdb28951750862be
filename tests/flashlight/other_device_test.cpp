// Programs on another device than the CPU: captured, looked at, replayed, saved.
#include "tests/flashlight/other_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn.h>
#include <torch/types.h>

#include "flashlight/check.h"
#include "flashlight/compile.h"
#include "flashlight/trace.h"
#include "tests/io/temporary_folder.h"
#include "tests/user_error.h"

namespace flashlight {
namespace {

using composit::user_error;
using testing::HasSubstr;
using testing::Optional;

at::Tensor there(const at::Tensor& tensor) { return tensor.to(test::other_device()); }

// LibTorch moves no parameters to such a device, so they are made there.
struct NetImpl : torch::nn::Module {
  NetImpl() {
    first = register_parameter("first", there(at::randn({4, 5})));
    second = register_parameter("second", there(at::randn({5, 2})));
  }
  at::Tensor forward(const at::Tensor& x) { return x.matmul(first).tanh().matmul(second); }
  at::Tensor first, second;
};
TORCH_MODULE(Net);

TEST(OtherDevice, itself) {
  const at::Tensor x = at::randn({3, 4}), y = there(x);
  EXPECT_FALSE(y.device().is_cpu());
  EXPECT_TRUE(at::equal((y * 2 + 1).cpu(), x * 2 + 1));
  EXPECT_TRUE(at::equal(y.t().matmul(y).cpu(), x.t().matmul(x)));
}

TEST(OtherDevice, programs_are_captured_and_replayed) {
  Net model;
  const at::Tensor x = there(at::randn({3, 4})), y = there(at::randn({3, 4}));
  const torch::NoGradGuard no_grad;
  const auto captured = trace(model, x, confirm(y));
  const at::Tensor z = there(at::randn({3, 4}));
  EXPECT_TRUE(at::equal(captured.replay({z})[0].cpu(), model->forward(z).cpu()));
  EXPECT_EQ(captured(z).device(), z.device());
}

// The message of a program that is another one in each call, which a few looks find.
template <class Captured>
std::optional<std::string> refusal(const Captured& captured, const at::Tensor& x) {
  std::optional<std::string> message;
  for (int call = 0; call < 8 && !message; ++call) message = user_error([&] { captured(x); });
  return message;
}

TEST(OtherDevice, looks_compare_values) {
  size_t calls = 0;
  const auto program = [&](const at::Tensor& x) {
    static const double factors[] = {1.5, 2.25, 1.75, 8};  // no form of the number of calls
    return x * factors[calls++ % 4];
  };
  const at::Tensor x = there(at::randn({3, 4})), y = there(at::randn({3, 4}));
  const auto captured = trace(program, x);
  EXPECT_THAT(refusal(captured, y), Optional(HasSubstr("[capture]")));
}

// Memory that no operator touches: the values tell.
TEST(OtherDevice, looks_see_what_no_operator_does) {
  const auto program = [](const at::Tensor& x) {
    const at::Tensor y = x + 1;
    static_cast<float*>(y.mutable_data_ptr())[0] = 7;
    return y * 2;
  };
  const at::Tensor x = there(at::randn({3, 4})), y = there(at::randn({3, 4}));
  const auto captured = trace(program, x);
  EXPECT_THAT(refusal(captured, y), Optional(HasSubstr("[capture]")));
}

TEST(OtherDevice, guards_hold_and_refuse) {
  const auto program = [](const at::Tensor& x) {
    return x.sum().item<float>() > 0 ? x * 2 : x * 3;
  };
  const at::Tensor x = there(at::ones({3}));
  const auto captured = trace(program, x, confirm(there(at::ones({3}))));
  EXPECT_TRUE(at::equal(captured.replay({x})[0].cpu(), at::full({3}, 2.f)));
  EXPECT_THAT(user_error([&] { captured.replay({-x}); }), Optional(HasSubstr("guard")));
}

TEST(OtherDevice, other_devices_are_refused) {
  const at::Tensor x = there(at::ones({3}));
  const auto captured = trace([](const at::Tensor& one) { return one + 1; }, x, confirm(x * 2));
  EXPECT_THAT(user_error([&] { captured.replay({at::ones({3})}); }),
              Optional(HasSubstr("[replay] input")));
}

TEST(OtherDevice, checks_node_by_node) {
  const at::Tensor x = there(at::randn({3, 4}));
  const auto program = [](const at::Tensor& one) { return one.tanh().sum(0); };
  const auto captured = trace(program, x, confirm(there(at::randn({3, 4}))));
  EXPECT_TRUE(captured.check(there(at::randn({3, 4}))).ok());
}

TEST(OtherDevice, trains) {
  Net model;
  const auto step = [&](const at::Tensor& x) {
    model->zero_grad();
    const at::Tensor loss = model->forward(x).square().mean();
    loss.backward();
    const torch::NoGradGuard no_grad;
    for (at::Tensor parameter : model->parameters()) parameter -= 0.1 * parameter.grad();
    return loss.detach();
  };
  TraceSettings settings;
  settings.named = named_tensors(*model);
  const at::Tensor x = there(at::randn({3, 4})), y = there(at::randn({3, 4}));
  const auto captured = trace(settings, step, x, confirm(y));
  const float before = captured(x).item<float>();
  for (int i = 0; i < 20; ++i) captured(x);
  EXPECT_LT(captured(x).item<float>(), before);
}

TEST(OtherDevice, saved_and_compiled_captures_are_the_cpus) {
  const at::Tensor x = there(at::ones({3}));
  const auto captured = trace([](const at::Tensor& one) { return one + 1; }, x, confirm(x * 2));
  const composit::test::TemporaryFolder folder;
  EXPECT_THAT(user_error([&] { captured.save(folder / "capture"); }),
              Optional(HasSubstr("expected a strided tensor on the CPU")));
  EXPECT_THAT(user_error([&] { compile(captured)(x); }), testing::Ne(std::nullopt));
}

}  // namespace
}  // namespace flashlight
