// Scopes, threads and the modes of LibTorch.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <future>
#include <thread>

#include "composit/ir/error.h"
#include "tests/tracer/capture_helpers.h"

namespace flashlight::testing {
namespace {

bool is_recording() {
  return c10::impl::tls_local_dispatch_key_set().included_.has(
      c10::DispatchKey::TESTING_ONLY_GenericMode);
}

TEST(Scope, nests) {
  const at::Tensor x = ones();
  TraceScope outer;
  outer.name(x, "x", composit::InputKind::user_input);
  const at::Tensor y = x + 1;
  Tensors inner_results;
  {
    TraceScope inner;
    inner.name(y, "y", composit::InputKind::user_input);
    const auto recording = inner.finish({y * 2});
    const Captured captured = captured_from(*recording);
    EXPECT_EQ(captured.count("aten::mul.Scalar"), 1u);
    EXPECT_EQ(captured.count("aten::add.Scalar"), 0u);
    inner_results = captured.replay({at::full({3}, 5.f)});
  }
  EXPECT_TRUE(is_recording());
  const auto recording = outer.finish({y * 3});
  EXPECT_FALSE(is_recording());
  const Captured captured = captured_from(*recording);
  EXPECT_EQ(captured.count("aten::mul.Scalar"), 1u)
      << "what only the inner scope's results need is not needed";
  EXPECT_EQ(difference(captured.replay({ones() * 2}), {ones() * 9}), "");
  EXPECT_EQ(difference(inner_results, {ones() * 10}), "");
}

TEST(Scope, ends_with_an_exception) {
  for (int i = 0; i < 3; ++i) {
    try {
      TraceScope scope;
      const at::Tensor y = ones() + 1;
      (void)y.index({at::indexing::TensorIndex(7)});
    } catch (const c10::Error&) {
    }
    EXPECT_FALSE(is_recording());
  }
  expect_replays([](Tensors& in) -> Tensors { return {in[0] + 1}; }, {ones()});
}

TEST(Scope, an_exception_inside_is_caught_inside) {
  expect_replays(
      [](Tensors& in) -> Tensors {
        at::Tensor y = in[0];
        try {
          y = at::linear(y, at::ones({2, 2}));
        } catch (const c10::Error&) {
          y = y * 2;
        }
        return {at::layer_norm(y, {3})};
      },
      {ones()});
}

TEST(Scope, shows_values_while_it_records) {
  const at::Tensor x = ones();
  TraceScope scope;
  scope.name(x, "x", composit::InputKind::user_input);
  const at::Tensor y = at::relu(x + 1);
  const composit::LazyTensor lazy = scope.lazy(y);
  EXPECT_EQ(lazy.node->op().str(), "aten::relu");
  EXPECT_EQ(lazy.graph().size(), 3u);  // x, add, relu
  y.mul_(2);
  EXPECT_EQ(scope.lazy(y).node->op().str(), "aten::mul.Scalar");
  scope.finish({});
  EXPECT_THROW(scope.lazy(y), composit::UserError);
}

TEST(Threads, several_capture_at_once) {
  std::vector<std::future<void>> threads;
  for (int t = 0; t < 4; ++t)
    threads.push_back(std::async(std::launch::async, [t] {
      for (int i = 0; i < 50; ++i) {
        const Captured captured = capture(
            [&](Tensors& in) -> Tensors {
              at::Tensor x = in[0].clone();
              for (int k = 0; k <= t; ++k) x.select(0, k % 3).add_(k);
              return {at::layer_norm(x, {3})};
            },
            {ones()});
        EXPECT_EQ(captured.count("aten::layer_norm"), 1u);
      }
    }));
  for (auto& thread : threads) thread.get();
}

TEST(Threads, work_handed_to_a_pool_is_recorded) {
  const auto program = [](Tensors& in) -> Tensors {
    std::promise<at::Tensor> promise;
    at::launch([&] { promise.set_value(at::layer_norm(in[0] + 1, {3})); });
    at::Tensor y = promise.get_future().get();
    return {y * 2};
  };
  expect_replays(program, {ones()});
}

TEST(Modes, inference_mode) {
  const auto program = [](Tensors& in) -> Tensors {
    const c10::InferenceMode mode;
    at::Tensor x = in[0].clone();
    x.select(0, 1).add_(1);
    return {x, at::linear(x, in[1])};
  };
  const Captured captured = capture(program, {ones(), at::randn({2, 3})});
  Tensors fresh = {at::randn({3}), at::randn({2, 3})};
  const Tensors received = captured.replay(fresh), expected = program(fresh);
  EXPECT_EQ(difference(received, expected), "");
}

TEST(Modes, autocast) {
  at::Tensor weight = at::randn({3, 3}).requires_grad_();
  const auto program = [&](Tensors& in) -> Tensors {
    at::autocast::set_autocast_enabled(at::kCPU, true);
    at::Tensor y = at::linear(at::linear(in[0], weight), weight);
    y = at::softmax(y, -1) + at::mse_loss(y, y.detach() * 2);
    at::autocast::set_autocast_enabled(at::kCPU, false);
    at::autocast::clear_cache();
    return {y.detach()};
  };
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  Tensors warm = {at::randn({2, 3})};
  program(warm);
  const Captured captured = capture(program, {at::randn({2, 3})}, {}, {{"weight", weight}});
  EXPECT_TRUE(captured.published.constants.empty());
  Tensors fresh = {at::randn({2, 3})};
  EXPECT_EQ(difference(captured.replay(fresh), program(fresh)), "");
}

std::vector<std::string> composites(const Captured& captured) {
  std::vector<std::string> names;
  for (const auto& node : captured.published.graph.nodes())
    if (node->find_run("body")) names.push_back(node->op().str());
  return names;
}

TEST(Modes, a_forward_pass_has_the_same_composite_operators_with_and_without_grad) {
  at::Tensor weight = at::randn({8, 3, 3, 3}).requires_grad_(),
             bias = at::randn({8}).requires_grad_();
  const auto program = [&](Tensors& in) -> Tensors {
    at::Tensor y = at::conv2d(in[0], weight, bias, 1, 1);
    y = at::max_pool2d(at::group_norm(y, 2), 2);
    return {at::layer_norm(at::dropout(y, 0.5, true), {4, 4}),
            at::linear(y, y.select(0, 0).select(0, 0))};
  };
  const Tensors inputs = {at::randn({2, 3, 8, 8})};
  const Captured with_grad = capture(program, inputs);
  const at::NoGradGuard no_grad;
  const Captured without = capture(program, inputs);
  EXPECT_EQ(composites(with_grad), composites(without));
  EXPECT_EQ(composites(without).size(), 6u);
  Tensors fresh = {at::randn({2, 3, 8, 8})};
  at::manual_seed(1);
  const Tensors expected = program(fresh);
  for (const Captured* captured : {&with_grad, &without}) {
    at::manual_seed(1);
    EXPECT_EQ(difference(captured->replay(fresh), expected), "");
  }
}

struct Cube : torch::autograd::Function<Cube> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x) {
    const at::Tensor square = x * x;
    context->save_for_backward({x, square});
    return square * x;
  }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* context,
                                               torch::autograd::tensor_list gradients) {
    const auto saved = context->get_saved_variables();
    return {gradients[0] * saved[1] * 3 + saved[0] * 0};
  }
};

TEST(Modes, backward_twice_and_own_functions) {
  expect_replays(
      [](Tensors& in) -> Tensors {
        at::Tensor x = in[0].detach().requires_grad_();
        at::Tensor y = Cube::apply(x) * at::tanh(x);
        at::Tensor first = torch::autograd::grad({y.sum()}, {x}, {}, true, true)[0];
        return {torch::autograd::grad({(first * x).sum()}, {x})[0], y.detach()};
      },
      {ones()});
}

TEST(Modes, gradients_left_behind_are_told) {
  const at::Tensor weight = at::ones({3}).requires_grad_();
  const auto program = [&](Tensors& in) -> Tensors {
    const at::Tensor loss = (in[0] * weight).sum();
    torch::autograd::backward({loss}, {});
    return {loss};
  };
  const Captured captured = capture(program, {at::ones({3})});
  ASSERT_EQ(captured.published.remarks.size(), 1u);
  EXPECT_NE(captured.published.remarks[0].find("`.grad`"), std::string::npos);
}

TEST(Modes, gradients_of_what_composites_kept) {
  expect_replays(
      [](Tensors& in) -> Tensors {
        at::Tensor x = in[0].detach().requires_grad_();
        at::Tensor mean = at::zeros({3}), var = at::ones({3});
        at::Tensor y = at::batch_norm(x, {}, {}, mean, var, true, 0.1, 1e-5, false);
        y = at::max_pool1d(at::dropout(y, 0.5, true), 2);
        y = at::scaled_dot_product_attention(y, y, y);
        y.sum().backward();
        return {x.grad(), mean, var};
      },
      {at::randn({2, 3, 8})});
}

}  // namespace
}  // namespace flashlight::testing
