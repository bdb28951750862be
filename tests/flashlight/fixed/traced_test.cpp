// The graph of a function has the values that the function has at once.
#include "flashlight/fixed/traced.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "composit/eval/evaluate.h"
#include "tests/user_error.h"

namespace flashlight::fixed {
namespace {

using composit::Array;
using composit::user_error;
using testing::HasSubstr;

template <class X>
Array array_of(const X& x) {
  return Array::copy_of(composit::tensor_type(detail::dtype_of<typename X::Element>(),
                                              detail::ints_of<typename X::Shape>()),
                        x.data());
}

template <class X>
void expect_equal(const X& at_once, const Array& of_graph) {
  ASSERT_EQ(composit::print(of_graph.type()), composit::print(array_of(at_once).type()));
  const auto* elements = reinterpret_cast<const typename X::Element*>(of_graph.data());
  for (int64_t i = 0; i < X::kElements; ++i)
    EXPECT_NEAR(at_once.data()[i], elements[i], 1e-6 * (1 + std::abs(elements[i]))) << i;
}

template <class F, AnyTensor... X>
void expect_same_values(const F& f, const X&... x) {
  const composit::Graph graph = graph_of<X...>(f);
  expect_equal(f(x...), composit::evaluate(graph, {array_of(x)...}).at(0));
}

const auto x = Tensor<float, 4, 6>::arange() * .25f - 2;
const auto y = Tensor<float, 3, 6>::arange() * -.125f + 1;
const auto bias = Tensor<float, 3>::of(1, -1, .5);

TEST(FixedTraced, ElementByElement) {
  expect_same_values([](auto a) { return exp(-a) + tanh(a) * 2 - 1 / (a * a + .5f); }, x);
  expect_same_values([](auto a) { return gelu(a) + sigmoid(a) + erf(a) + relu(a) + abs(a); }, x);
  expect_same_values([](auto a) { return log(a * a + 1) + sqrt(a * a) + sin(a) - cos(a); }, x);
  expect_same_values([](auto a) { return where(a > 0, a, -a / 2); }, x);
  expect_same_values([](auto a) { return to<int64_t>(a) * 3 - 1; }, x);
  expect_same_values([](auto a, auto b) { return maximum(a, b) - minimum(b, a); }, y, bias(0) * y);
}

TEST(FixedTraced, ProductsReductionsAndMoves) {
  expect_same_values([](auto a, auto w, auto b) { return softmax<-1>(linear(a, w, b)); }, x, y,
                     bias);
  expect_same_values([](auto a, auto w) { return einsum<"ik,jk->ji">(a, w); }, x, y);
  expect_same_values([](auto a) { return matmul(a, transpose(a)); }, x);
  expect_same_values([](auto a) { return a - mean<-1>(a, keep) + amax<0>(a); }, x);
  expect_same_values([](auto a) { return sum(transpose<2, 0, 1>(reshape<2, 3, 4>(a))); }, x);
}

TEST(FixedTraced, SeveralResults) {
  const auto graph =
      graph_of<Tensor<float, 4, 6>>([](auto a) { return std::tuple(sum<0>(a), a > 0); });
  ASSERT_EQ(graph.outputs().size(), 2u);
  EXPECT_EQ(composit::print(graph.outputs()[1].type()), "bool[4, 6]");
}

TEST(FixedTraced, AFunctionForOtherSizesIsRefused) {
  const composit::TensorFunction f = function_of<Tensor<float, 4, 6>>([](auto a) { return a + 1; });
  const auto of_type = [&](const composit::Type& type) {
    return user_error([&] { f({composit::input("x", type)}); }).value_or("");
  };
  EXPECT_THAT(of_type(composit::tensor_type(composit::DType::float32, {4, 5})),
              HasSubstr("argument 0: expected float32[4, 6], received float32[4, 5]"));
  EXPECT_THAT(user_error([&] { f({}); }).value_or(""), HasSubstr("expected 1 tensors, received 0"));
}

}  // namespace
}  // namespace flashlight::fixed
