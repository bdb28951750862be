// Functions over leading dimensions, and of each element.
#include "composit/ops/elementwise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "composit/eval/evaluate.h"
#include "composit/ops/control_flow.h"
#include "composit/ops/functions.h"
#include "composit/ops/native.h"
#include "composit/ops/vmap.h"
#include "tests/user_error.h"

namespace composit {
namespace {

using testing::HasSubstr;
using Numbers = std::vector<double>;

LazyTensor held(const std::string& name, const Dims& sizes, const Numbers& numbers,
                DType dtype = DType::float64) {
  return held_input(name, array_of(tensor_type(dtype, sizes), numbers));
}
Numbers numbers(const LazyTensor& tensor) { return elements<double>(evaluate({tensor})[0]); }
std::string op_of(const LazyTensor& tensor) { return tensor.node->op().str(); }
std::string message(const std::function<void()>& action) {
  return user_error(action).value_or("no error");
}

// ---- vmap ---------------------------------------------------------------------------------------

LazyTensors dot(const LazyTensors& x) { return {sum(x[0] * x[1])}; }

TEST(Vmap, over_leading_dimensions) {
  const LazyTensor a = held("a", {2, 3}, {1, 2, 3, 4, 5, 6}),
                   b = held("b", {2, 3}, {1, 0, 1, 0, 1, 0});
  const LazyTensor y = vmap(dot)({a, b})[0];
  EXPECT_EQ(op_of(y), "composit::map");
  EXPECT_EQ(numbers(y), (Numbers{4, 5}));
}

TEST(Vmap, over_other_axes_and_unmapped_arguments) {
  const LazyTensor a = held("a", {3, 2}, {1, 2, 3, 4, 5, 6}), w = held("w", {3}, {1, 10, 100});
  EXPECT_EQ(numbers(vmap(dot, {1, std::nullopt})({a, w})[0]), (Numbers{531, 642}));
  EXPECT_EQ(numbers(vmap(dot, {-1, std::nullopt})({a, w})[0]), (Numbers{531, 642}));
  EXPECT_EQ(numbers(vmap(dot, {std::nullopt, 1})({w, a})[0]), (Numbers{531, 642}));
}

TEST(Vmap, nests) {  // outer products of rows with rows
  const LazyTensor a = held("a", {2, 2}, {1, 2, 3, 4}), b = held("b", {3, 2}, {1, 0, 0, 1, 1, 1});
  const LazyTensor y = vmap(vmap(dot, {std::nullopt, 0}), {0, std::nullopt})({a, b})[0];
  EXPECT_EQ(y.sizes(), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(numbers(y), (Numbers{1, 2, 3, 3, 4, 7}));
}

TEST(Vmap, refuses_what_does_not_fit) {
  const LazyTensor a = held("a", {2}, {1, 2}), s = held("s", {}, {1});
  EXPECT_THAT(message([&] {
                vmap(dot)({a, s});
              }),
              HasSubstr("[vmap] expected a tensor with an axis 0, received float64[]"));
  EXPECT_THAT(message([&] { vmap(dot, {0})({a, a}); }), HasSubstr("[vmap] expected 1 tensors"));
  EXPECT_THAT(message([&] {
                vmap(dot, {1, 0})({a, a});
              }),
              HasSubstr("[vmap] expected a tensor with an axis 1, received float64[2]"));
  EXPECT_THAT(message([&] {
                vmap(dot, {std::nullopt, std::nullopt})({a, a});
              }),
              HasSubstr("expected sequences, received none"));
}

// ---- elementwise --------------------------------------------------------------------------------

// x < 0 ? 0 : x < 1 ? x^3 / 3 : x - 2/3
LazyTensors relu3(const LazyTensors& x) {
  return cond(
      x[0] < 0, [&](const LazyTensors&) { return LazyTensors{0 * x[0]}; },
      [&](const LazyTensors&) {
        return cond(
            x[0] < 1, [&](const LazyTensors&) { return LazyTensors{pow(x[0], 3) / 3}; },
            [&](const LazyTensors&) { return LazyTensors{x[0] - 2.0 / 3}; });
      });
}

// So a backend has one kernel of it, in which each element takes its branch.
TEST(Vmap, of_a_function_of_numbers_is_one_loop) {
  const LazyTensor x = held("x", {4}, {-1, 0.5, 1, 3}), y = vmap(relu3)({x})[0];
  EXPECT_EQ(op_of(y), "composit::loops");
  const Numbers got = numbers(y), expected = {0, 0.125 / 3, 1.0 / 3, 3 - 2.0 / 3};
  for (size_t i = 0; i < 4; ++i) EXPECT_DOUBLE_EQ(got[i], expected[i]);
  // Numbers that all calls share.
  const LazyTensor w = held("w", {}, {10});
  const auto scaled = [](const LazyTensors& v) { return LazyTensors{relu3({v[0]})[0] * v[1]}; };
  EXPECT_DOUBLE_EQ(numbers(vmap(scaled, {0, std::nullopt})({x, w})[0])[3], 10 * (3 - 2.0 / 3));
  EXPECT_EQ(op_of(vmap(scaled)({x, x})[0]), "composit::loops");
}

TEST(Elementwise, branches_become_one_loop) {
  const LazyTensor x = held("x", {2, 2}, {-1, 0.5, 1, 3}), y = elementwise(relu3)({x})[0];
  EXPECT_EQ(op_of(y), "composit::loops");
  EXPECT_EQ(y.node->operands().size(), 1);
  const Numbers got = numbers(y), expected = {0, 0.125 / 3, 1.0 / 3, 3 - 2.0 / 3};
  for (size_t i = 0; i < 4; ++i) EXPECT_DOUBLE_EQ(got[i], expected[i]);
}

TEST(Elementwise, broadcasts_and_gives_several_results) {
  const LazyTensor x = held("x", {2, 1}, {1, 2}), y = held("y", {3}, {1, 2, 3});
  const LazyTensor w = held("w", {}, {100});
  const TensorFunction f = [&](const LazyTensors& in) {
    return LazyTensors{in[0] * in[1] + w, in[0] < in[1], sigmoid(in[1])};
  };
  const LazyTensors z = elementwise(f)({x, y});
  EXPECT_EQ(op_of(z[0]), "composit::loops");
  EXPECT_EQ(z[0].node, z[1].node);
  EXPECT_EQ(numbers(z[0]), (Numbers{101, 102, 103, 102, 104, 106}));
  EXPECT_EQ(z[1].dtype(), DType::bool_);
  EXPECT_EQ(numbers(z[1]), (Numbers{0, 1, 1, 0, 0, 1}));
  EXPECT_DOUBLE_EQ(numbers(z[2])[5], 1 / (1 + std::exp(-3.0)));
}

TEST(Elementwise, keeps_dtypes) {
  const LazyTensor x = held("x", {2}, {0.1, 0.7}, DType::float32);
  const LazyTensor n = held("n", {2}, {3, 4}, DType::int64);
  const LazyTensors z = elementwise([](const LazyTensors& in) {
    return LazyTensors{in[0] * in[1], in[1] + 1, to(in[1], DType::float64)};
  })({x, n});
  EXPECT_EQ(z[0].dtype(), DType::float32);
  EXPECT_EQ(z[1].dtype(), DType::int64);
  EXPECT_EQ(z[2].dtype(), DType::float64);
  EXPECT_EQ(numbers(z[0]), (Numbers{0.1f * 3.0f, 0.7f * 4.0f}));
}

// A loop that ends when the element says so is no expression.
TEST(Elementwise, loops_become_a_map) {
  const LazyTensor x = held("x", {2, 1}, {2, 9}), y = held("y", {2}, {1, 2});
  const auto root = [](const LazyTensors& in) {
    return while_loop(
        [&](const LazyTensors& v) { return abs(v[0] * v[0] - in[0] * in[1]) > 1e-13; },
        [&](const LazyTensors& v) { return LazyTensors{(v[0] + in[0] * in[1] / v[0]) / 2}; },
        {in[0]}, {.limit = 50});
  };
  const LazyTensor z = elementwise(root)({x, y})[0];
  EXPECT_EQ(z.sizes(), (std::vector<int64_t>{2, 2}));
  const Numbers got = numbers(z), expected = {2, 4, 9, 18};
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(got[i], std::sqrt(expected[i]), 1e-13);
}

TEST(Elementwise, of_a_tensor_from_outside_that_is_no_number_is_a_map) {
  const LazyTensor x = held("x", {2}, {1, 2}), w = held("w", {2}, {10, 20});
  const LazyTensor y =
      elementwise([&](const LazyTensors& in) { return LazyTensors{sum(w * in[0])}; })({x})[0];
  EXPECT_EQ(numbers(y), (Numbers{30, 60}));
}

TEST(Elementwise, refuses_what_does_not_fit) {
  const LazyTensor x = held("x", {2}, {1, 2}), y = held("y", {3}, {1, 2, 3});
  EXPECT_THAT(message([&] { elementwise(dot)({x, y}); }), HasSubstr("broadcast"));
  EXPECT_THAT(
      message([&] { elementwise([&](const LazyTensors&) { return LazyTensors{x}; })({x}); }),
      HasSubstr("expected a function that gives numbers"));
  const ScalarProgram two{2, DType::float64, {Expr::parameter(1, DType::float64)}};
  EXPECT_THAT(message([&] { elementwise(two, {x}); }), HasSubstr("expected 2 tensors, received 1"));
}

}  // namespace
}  // namespace composit
