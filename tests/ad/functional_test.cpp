// Derivatives of C++ functions of tensors.
#include "composit/ad/functional.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "composit/eval/evaluate.h"
#include "composit/ops/functions.h"
#include "composit/ops/native.h"
#include "tests/user_error.h"

namespace composit {
namespace {

using testing::HasSubstr;

LazyTensor vector(const std::string& name, const std::vector<double>& values) {
  const Type type = tensor_type(DType::float64, {static_cast<int64_t>(values.size())});
  return held_input(name, array_of(type, values));
}
std::vector<double> values(const LazyTensor& tensor) {
  return elements<double>(evaluate({tensor})[0]);
}

LazyTensor sum_of_cubes(const LazyTensors& x) { return sum(x[0] * x[0] * x[0]); }

TEST(Functional, value_and_gradients) {
  const LazyTensor x = vector("x", {1, 2}), y = vector("y", {3, 5});
  const auto f = value_and_grad([](const LazyTensors& in) { return sum(in[0] * in[0] * in[1]); });
  const auto [value, gradients] = f({x, y});
  EXPECT_EQ(values(value), (std::vector<double>{1 * 3 + 4 * 5}));
  EXPECT_EQ(values(gradients[0]), (std::vector<double>{2 * 3, 4 * 5}));
  EXPECT_EQ(values(gradients[1]), (std::vector<double>{1, 4}));
}

TEST(Functional, derivatives_nest) {  // of x^3: 3 x^2, 6 x, 6
  const LazyTensor x = vector("x", {2, -1});
  const LossFunction first = [](const LazyTensors& in) { return sum(grad(sum_of_cubes)(in)[0]); };
  const LossFunction second = [&](const LazyTensors& in) { return sum(grad(first)(in)[0]); };
  EXPECT_EQ(values(grad(sum_of_cubes)({x})[0]), (std::vector<double>{12, 3}));
  EXPECT_EQ(values(grad(first)({x})[0]), (std::vector<double>{12, -6}));
  EXPECT_EQ(values(grad(second)({x})[0]), (std::vector<double>{6, 6}));
}

// The classic of perturbation confusion: d/dx (x * d/dy (x + y)) = 1.
TEST(Functional, what_comes_from_outside_is_a_constant) {
  const LazyTensor x = vector("x", {7});
  const LossFunction outer = [](const LazyTensors& in) {
    const LossFunction inner = [&](const LazyTensors& y) { return sum(in[0] + y[0]); };
    return sum(in[0] * grad(inner)({in[0]})[0]);
  };
  EXPECT_EQ(values(grad(outer)({x})[0]), (std::vector<double>{1}));
  const LossFunction by_itself = [&](const LazyTensors& y) { return sum(x * y[0]); };
  EXPECT_EQ(values(grad(by_itself)({x})[0]), (std::vector<double>{7}));
}

TEST(Functional, a_tensor_given_twice_has_two_gradients) {
  const LazyTensor x = vector("x", {3});
  const auto gradients =
      grad([](const LazyTensors& in) { return sum(in[0] * in[0] * in[1]); })({x, x});
  EXPECT_EQ(values(gradients[0]), (std::vector<double>{18}));
  EXPECT_EQ(values(gradients[1]), (std::vector<double>{9}));
}

TEST(Functional, inputs_may_be_computed) {
  const LazyTensor x = vector("x", {2, 3});
  const auto gradient = grad(sum_of_cubes)({x * x})[0];
  EXPECT_EQ(values(gradient), (std::vector<double>{3 * 16, 3 * 81}));
}

TEST(Functional, vjp_takes_cotangents_of_all_results) {
  const LazyTensor x = vector("x", {2, 3}), c = vector("c", {1, 10}), d = vector("d", {5});
  const auto f = [](const LazyTensors& in) { return LazyTensors{in[0] * in[0], sum(in[0])}; };
  const auto [results, back] = vjp(f, {x});
  EXPECT_EQ(values(results[0]), (std::vector<double>{4, 9}));
  EXPECT_EQ(values(back({c, reshape(d, {})})[0]), (std::vector<double>{1 * 4 + 5, 10 * 6 + 5}));
  EXPECT_EQ(values(back({zeros_like(c), reshape(d, {})})[0]), (std::vector<double>{5, 5}));
}

TEST(Functional, jvp_and_hessian_vector_product) {
  const LazyTensor x = vector("x", {2, 3}), v = vector("v", {1, -2});
  const auto f = [](const LazyTensors& in) { return LazyTensors{sin(in[0])}; };
  const auto [results, tangents] = jvp(f, {x}, {v});
  EXPECT_EQ(values(results[0]), (std::vector<double>{std::sin(2), std::sin(3)}));
  EXPECT_THAT(
      values(tangents[0]),
      testing::Pointwise(testing::DoubleEq(), std::vector<double>{std::cos(2), -2 * std::cos(3)}));
  EXPECT_EQ(values(hessian_vector_product(sum_of_cubes, {x}, {v})[0]),
            (std::vector<double>{12, -36}));
}

TEST(Functional, leaves_no_trace_in_the_graph) {
  const LazyTensor x = vector("x", {2, 3});
  const auto gradient = grad(sum_of_cubes)({x})[0];
  EXPECT_EQ(gradient.hash(), grad(sum_of_cubes)({x})[0].hash());
}

TEST(Functional, says_what_is_wrong) {
  const LazyTensor x = vector("x", {2, 3});
  const auto message = [](auto work) { return user_error(work).value_or("no error"); };
  EXPECT_THAT(message([&] { grad([](const LazyTensors& in) { return in[0]; })({x}); }),
              HasSubstr("a loss of one element, received float64[2]"));
  const auto same = [](const LazyTensors& in) { return in; };
  EXPECT_THAT(message([&] { vjp(same, {x}).back({}); }), HasSubstr("1 cotangents, received 0"));
  EXPECT_THAT(message([&] { jvp(same, {x}, {}); }), HasSubstr("1 tangents, received 0"));
  EXPECT_THAT(message([&] { vjp(same, {LazyTensor()}); }),
              HasSubstr("expected an input, received none"));
}

}  // namespace
}  // namespace composit
