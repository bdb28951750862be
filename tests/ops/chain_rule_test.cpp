// The chain rule over whole graphs.
#include "composit/ad/chain_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <functional>
#include <iostream>

#include "composit/eval/evaluate.h"
#include "composit/ir/graph.h"
#include "composit/ops/functions.h"
#include "composit/ops/native.h"
#include "tests/user_error.h"

namespace composit {
namespace {

using testing::HasSubstr;

LazyTensor number(const std::string& name) { return input(name, tensor_type(DType::float64, {})); }
LazyTensor vector(const std::string& name, int64_t size) {
  return input(name, tensor_type(DType::float64, {size}));
}
Array array(const LazyTensor& like, const std::vector<double>& values) {
  return array_of(like.type(), values);
}
std::vector<double> values(const LazyTensor& tensor, const Values& inputs) {
  return elements<double>(evaluate({tensor}, inputs)[0]);
}
std::string message(const std::function<void()>& work) {
  return user_error(work).value_or("no error");
}
size_t nodes_of(const LazyTensors& outputs) { return Graph({.outputs = outputs}).size(); }

TEST(ChainRule, unused_inputs_have_zeros) {
  const LazyTensor x = vector("x", 2), y = vector("y", 3);
  const auto gradients = grad(sum(x), {x, y});
  EXPECT_EQ(values(gradients[1], {}), (std::vector<double>{0, 0, 0}));
}

TEST(ChainRule, a_loss_may_map_to_itself) {  // the seed is its value then
  const LazyTensor x = number("x");
  const LazyTensor loss = x * x;
  const auto gradient = chain_rule({{loss, loss}}, {x})[0];
  EXPECT_EQ(values(gradient, {{x, array(x, {3})}})[0], 9 * 6);
}

TEST(ChainRule, several_seeds_and_consumers_add_up) {
  const LazyTensor x = vector("x", 4);
  const LazyTensors parts = apply("aten::split.Tensor", {x, 2});
  const LazyTensor a = sum(parts[0] * parts[1]), b = sum(parts[1] * parts[1]);
  const LazyTensor one = ones_like(a);
  const auto gradient = chain_rule({{a, one}, {b, one}}, {x})[0];
  EXPECT_EQ(values(gradient, {{x, array(x, {1, 2, 3, 4})}}),
            (std::vector<double>{3, 4, 1 + 6, 2 + 8}));
}

TEST(ChainRule, one_tensor_as_two_operands_of_a_decomposition) {
  const LazyTensor x = vector("x", 2);
  const auto gradient = grad(apply_one("aten::dot", {x, x}), {x})[0];
  EXPECT_EQ(values(gradient, {{x, array(x, {3, 4})}}), (std::vector<double>{6, 8}));
}

TEST(ChainRule, inner_tensors_may_be_inputs) {
  const LazyTensor x = number("x");
  const LazyTensor inner = exp(x);
  const auto gradient = grad(inner * inner, {inner})[0];
  EXPECT_NEAR(values(gradient, {{x, array(x, {1})}})[0], 2 * std::exp(1), 1e-12);
}

TEST(ChainRule, gradients_have_the_dtype_of_their_input) {
  const LazyTensor x = input("x", tensor_type(DType::float32, {2})), y = vector("y", 2);
  const auto gradients = grad(sum(x * y), {x, y});
  EXPECT_EQ(gradients[0].dtype(), DType::float32);
  EXPECT_EQ(gradients[1].dtype(), DType::float64);
}

TEST(ChainRule, equal_subgraphs_count_once) {  // tied weights: built twice, one tensor
  const LazyTensor a = number("w"), b = number("w");
  const auto gradient = grad(a * b, {a})[0];
  EXPECT_EQ(values(gradient, {{a, array(a, {5})}})[0], 10);
}

TEST(ChainRule, forward_mode_and_hessian_vector_products) {
  const LazyTensor x = vector("x", 2), v = vector("v", 2);
  const LazyTensor y = sin(x) * x;
  const Values at = {{x, array(x, {0.5, 2})}, {v, array(v, {1, -3})}};
  const auto tangent = values(jvp({y}, {x}, {v})[0], at);
  const auto product = values(hessian_vector_product(sum(y), {x}, {v})[0], at);
  const double xs[] = {0.5, 2}, vs[] = {1, -3};
  for (size_t i = 0; i < 2; ++i) {
    const double c = std::cos(xs[i]), s = std::sin(xs[i]);
    EXPECT_NEAR(tangent[i], vs[i] * (c * xs[i] + s), 1e-12);
    EXPECT_NEAR(product[i], vs[i] * (2 * c - s * xs[i]), 1e-12);
  }
}

// ---- long chains --------------------------------------------------------------------------------

using Gradients = std::function<LazyTensors(int length)>;

// Each step of the chain adds the same number of nodes, at most `per_step`, up to 10,000 steps.
void expect_linear(size_t per_step, const Gradients& gradients) {
  const size_t few = nodes_of(gradients(100)), more = nodes_of(gradients(1100));
  const auto start = std::chrono::steady_clock::now();
  const size_t many = nodes_of(gradients(10000));
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  std::cout << "10,000 steps: " << many << " nodes, " << time.count() << " s\n";
  EXPECT_EQ((more - few) % 1000, 0u);
  EXPECT_EQ(many - few, 9900 * ((more - few) / 1000));
  EXPECT_LE((more - few) / 1000, per_step);
}

struct Product {
  explicit Product(int count) {
    for (int i = 0; i < count; ++i) {
      inputs.push_back(number("x" + std::to_string(i)));
      at.set(inputs.back(), array(inputs.back(), {i == 0 ? 4.0 : 1.0}));
      value = value.defined() ? value * inputs.back() : inputs.back();
    }
  }
  LazyTensors inputs;
  Values at;
  LazyTensor value;
};

TEST(ChainRule, of_a_product_of_numbers_is_linear) {  // n inputs, n products, 2n on the way back
  expect_linear(4, [](int n) {
    const Product product(n);
    return grad(product.value, product.inputs);
  });
  const Product product(10000);
  EXPECT_EQ(values(grad(product.value, product.inputs)[9999], product.at)[0], 4);
}

TEST(ChainRule, of_a_chain_of_layers_is_linear) {
  expect_linear(8, [](int n) {
    const LazyTensor w = input("w", tensor_type(DType::float64, {2, 2}));
    LazyTensor h = input("x", tensor_type(DType::float64, {1, 2}));
    for (int i = 0; i < n; ++i) h = tanh(mm(h, w));
    return grad(sum(h), {w});
  });
}

TEST(ChainRule, of_an_unrolled_recurrent_network_is_linear) {
  expect_linear(18, [](int n) {
    const LazyTensor w = input("w", tensor_type(DType::float64, {3, 2}));
    const LazyTensor u = input("u", tensor_type(DType::float64, {2, 2}));
    const LazyTensor b = vector("b", 2);
    LazyTensor h = input("h", tensor_type(DType::float64, {1, 2}));
    for (int i = 0; i < n; ++i) {
      const LazyTensor x = input("x" + std::to_string(i), tensor_type(DType::float64, {1, 3}));
      h = tanh(mm(x, w) + mm(h, u) + b);
    }
    return grad(sum(h), {w, u, b});
  });
}

TEST(ChainRule, says_what_is_wrong) {
  const LazyTensor i = input("i", tensor_type(DType::int64, {2})), x = vector("x", 2);
  const LazyTensor y = sum(x);
  EXPECT_THAT(message([&] { grad(y, {i}); }), HasSubstr("an input of a floating point or complex"));
  EXPECT_THAT(message([&] { grad(x, {x}); }), HasSubstr("a loss of one element, received"));
  EXPECT_THAT(message([&] { chain_rule({{y, x}}, {x}); }), HasSubstr("a cotangent of float64[]"));
  const LazyTensor unknown = NodeSpec("mine::secret").tensor(x).output(y.type()).make();
  EXPECT_THAT(message([&] { grad(unknown, {x}); }), HasSubstr("no vjp rule for mine::secret"));
}

// Not a constant, although bytes carry no gradients.
TEST(ChainRule, what_reads_the_bytes_of_a_tensor_has_no_derivative) {
  const LazyTensor x = vector("x", 2);
  const LazyTensor bytes =
      NodeSpec("composit::storage").tensor(x).output(tensor_type(DType::uint8, {16})).make();
  const LazyTensor read = NodeSpec("composit::storage_view").tensor(bytes).output(x.type()).make();
  EXPECT_THAT(message([&] { grad(sum(read), {x}); }),
              HasSubstr("no vjp rule for composit::storage_view"));
}

// An index that is a value has no operation on tensors: the derivative stays a loop form.
TEST(ChainRule, of_a_loop_form_whose_values_depend_on_the_index) {
  const LazyTensor x = input("x", tensor_type(DType::float64, {3}));
  const LazyTensor y =
      apply_one("composit::loops", {LazyTensors{x}, R"(loops(x0: float64[3]) -> (y0: float64[3]) {
  for i < 3 {
    y0[i] = i < 2 ? x0[i] * x0[i] : 0
  }
}
)"});
  const LazyTensor gradient = grad(sum(y), {x})[0];
  const Array at = array_of(x.type(), std::vector<double>{1, 2, 3});
  EXPECT_EQ(elements<double>(evaluate({gradient}, {{x, at}})[0]), (std::vector<double>{2, 4, 0}));
}

}  // namespace
}  // namespace composit
