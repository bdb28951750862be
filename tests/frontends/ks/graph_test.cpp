// Functions of programs as graphs: values by hand, derivatives by central differences.
#include "frontends/ks/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "composit/ir/print.h"
#include "tests/frontends/ks/programs.h"
#include "tests/user_error.h"

namespace flashlight::ks::test {
namespace {

using composit::user_error;
using testing::HasSubstr;

class KsPrograms : public testing::TestWithParam<TestProgram> {};

TEST_P(KsPrograms, HaveTheirValues) {
  const TestProgram& one = GetParam();
  expect_near(run(one.text, one.function, one.inputs), one.expected, 1e-13);
}

// Cotangents of the result: other numbers for each.
Numbers cotangents(size_t count) {
  Numbers all;
  for (size_t i = 0; i < count; ++i) all.push_back(1 + .5 * static_cast<double>(i % 3));
  return all;
}
double dot(const Numbers& x, const Numbers& y) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

// The result's Floats as inputs of a derivative.
std::vector<Input> like_result(const TestProgram& one, const Numbers& values) {
  std::vector<Input> inputs;
  size_t next = 0;
  const composit::Graph whole = graph(one.text, one.function, one.inputs);
  for (const composit::LazyTensor& output : whole.outputs()) {
    const auto count = static_cast<size_t>(output.numel());
    inputs.push_back({output.sizes(),
                      Numbers(values.begin() + static_cast<std::ptrdiff_t>(next),
                              values.begin() + static_cast<std::ptrdiff_t>(next + count)),
                      {}});
    next += count;
  }
  return inputs;
}

TEST_P(KsPrograms, HaveDerivatives) {
  const TestProgram& one = GetParam();
  const Numbers dy = cotangents(one.expected.size());
  std::vector<Input> with_cotangents = one.inputs;
  for (Input& input : like_result(one, dy)) with_cotangents.push_back(std::move(input));
  const Numbers gradients = run(one.text, "[rev " + one.function + "]", with_cotangents);

  Numbers expected;
  constexpr double kStep = 1e-5;
  for (size_t i = 0; i < one.inputs.size(); ++i)
    for (size_t k = 0; k < one.inputs[i].values.size(); ++k) {
      std::vector<Input> above = one.inputs, below = one.inputs;
      above[i].values[k] += kStep;
      below[i].values[k] -= kStep;
      expected.push_back((dot(run(one.text, one.function, above), dy) -
                          dot(run(one.text, one.function, below), dy)) /
                         (2 * kStep));
    }
  expect_near(gradients, expected, 1e-7);

  // Forward: <dy, f'(x) dx> = <f'(x)^T dy, dx>.
  std::vector<Input> with_tangents = one.inputs;
  Numbers dx;
  for (const Input& input : one.inputs)
    if (!input.known) {
      Numbers direction = cotangents(input.values.size());
      dx.insert(dx.end(), direction.begin(), direction.end());
      with_tangents.push_back({input.sizes, std::move(direction), {}});
    }
  EXPECT_NEAR(dot(run(one.text, "[fwd " + one.function + "]", with_tangents), dy),
              dot(gradients, dx), 1e-10 * (1 + std::abs(dot(gradients, dx))));
  EXPECT_EQ(run(one.text, "[sufrev " + one.function + "]", with_cotangents), gradients);
}

// The pass forward gives the result, and for the pass back the argument.
TEST_P(KsPrograms, HavePassesForwardAndBack) {
  const TestProgram& one = GetParam();
  Numbers expected = one.expected;
  for (const Input& input : one.inputs)
    expected.insert(expected.end(), input.values.begin(), input.values.end());
  expect_near(run(one.text, "[suffwdpass " + one.function + "]", one.inputs), expected, 1e-13);

  const std::vector<Input> given = like_result(one, cotangents(one.expected.size()));
  std::vector<Input> before = given, after = one.inputs;
  before.insert(before.end(), one.inputs.begin(), one.inputs.end());
  after.insert(after.end(), given.begin(), given.end());
  EXPECT_EQ(run(one.text, "[sufrevpass " + one.function + "]", before),
            run(one.text, "[rev " + one.function + "]", after));
}

INSTANTIATE_TEST_SUITE_P(All, KsPrograms, testing::ValuesIn(test_programs()),
                         [](const auto& one) { return one.param.name; });

TEST(KsGraph, CheckComparesADerivativeWithValues) {
  const std::string text = std::string(test_programs().back().text) + R"(
(def out Float (xs : Vec Float)
  (let ((c h) (lstm (build (tuple 4 3) (lam (ij : Tuple Integer Integer)
                      (let ((i j) ij) (sin (to_float (add i (mul 2 j)))))))
                    xs)) (mul c h)))
(def check Float (xs : Vec Float)
  ($check (lam (s : Vec Float) (out s)) (lam (t : Tuple (Vec Float) Float) ([rev out] t))
          xs (constVec (size xs) 0.000001) 1.0))
(def wrong Float (xs : Vec Float)
  ($check (lam (s : Vec Float) (out s)) (lam (t : Tuple (Vec Float) Float) (get$1$2 t))
          xs (constVec (size xs) 0.000001) 1.0)))";
  EXPECT_LT(run(text, "check", {vec({1, -.5, .25})})[0], 1e-5);
  EXPECT_GT(run(text, "wrong", {vec({1, -.5, .25})})[0], 1e-2);
}

// Nodes of the derivative do not grow with the sizes of what is built, summed and folded.
TEST(KsGraph, DerivativesOfLongVectorsAreNotLongGraphs) {
  for (const TestProgram& one : test_programs()) {
    if (one.name != "product" && one.name != "dot" && one.name != "differences") continue;
    const auto nodes = [&](size_t length) {
      std::vector<Input> inputs;
      for (size_t i = 0; i < one.inputs.size(); ++i) inputs.push_back(vec(Numbers(length, 1)));
      inputs.push_back(one.expected.size() == 1 ? number(1) : vec(Numbers(length, 1)));
      return graph(one.text, "[rev " + one.function + "]", inputs).size();
    };
    EXPECT_EQ(nodes(10), nodes(10000)) << one.name;
  }
}

TEST(KsGraph, RefusesWithAPlace) {
  const auto error = [](const std::string& text, const std::vector<Input>& inputs) {
    return user_error([&] { graph(text, "f", inputs); }).value_or("");
  };
  EXPECT_THAT(
      error("(def f Float (x : Float) (f x))", {number(1)}),
      HasSubstr(
          "test.ks:1:26: 'f' calls itself more than 1000 times within one another: values decide"));
  EXPECT_THAT(error("(def f (Vec (Vec Float)) (v : Vec Float)\n (build 3 (lam (i : Integer) (build "
                    "(imax v) (lam (j : Integer) 1.0)))))",
                    {vec({1, 2})}),
              HasSubstr("test.ks:2:30: a size that is not known: 'build' gets one that depends on "
                        "values, and nothing says how large it is at most"));
  EXPECT_THAT(error("(def f Float (x : Float) (add x 1))", {number(1)}),
              HasSubstr("test.ks:1:26: 'add' expects two numbers of one type, received Float "
                        "Integer"));
  EXPECT_THAT(error("(def f Float (x : Float) (g x))", {number(1)}),
              HasSubstr("test.ks:1:26: there is no function 'g'"));
  EXPECT_THAT(error("(def f Float (x : Float) y)", {number(1)}),
              HasSubstr("test.ks:1:26: there is no variable 'y'"));
  EXPECT_THAT(error("(def g Float (x : Float) x) (def f Float (x : Float) (g 1))", {number(1)}),
              HasSubstr("test.ks:1:54: 'g' expects Float, received Integer"));
  EXPECT_THAT(error("(edef g Float Float) (def f Float (x : Float) (g x))", {number(1)}),
              HasSubstr("'g' is declared by edef, and defined nowhere"));
  EXPECT_THAT(error("(def f Integer (x : Float) x)", {number(1)}),
              HasSubstr("'f' is declared to give Integer, and gives Float"));
  EXPECT_THAT(error("(def f Float (v : Vec Float) (index 3 v))", {vec({1, 2, 3})}),
              HasSubstr("test.ks:1:30: the index 3 of a tensor of 3"));
  EXPECT_THAT(error("(def f Float (x : Float) (if x 1.0 2.0))", {number(1)}),
              HasSubstr("test.ks:1:30: expected a Bool, received Float"));
  EXPECT_THAT(error("(def f Float (v : Vec Float) (assert (eq (size v) 2) 1.0))", {vec({1})}),
              HasSubstr("test.ks:1:30: this assert does not hold"));
  EXPECT_THAT(error("(def f Float (x : Float) x)", {vec({1})}),
              HasSubstr("input 0, of the parameter 'x': expected Float with 0 dimensions, received "
                        "float64[1]"));
  EXPECT_THAT(error("(def f Float (x : Float) x)", {}), HasSubstr("received nothing"));
}

// An index of values that is out of range gives no number of somewhere else.
TEST(KsGraph, AnIndexOutOfRangeGivesNaN) {
  EXPECT_TRUE(std::isnan(
      run("(def f Float (v : Vec Float) (sumbuild 3 (lam (i : Integer) (index (add i 1) v))))", "f",
          {vec({1, 2, 3})})[0]));
}

// An if keeps it away.
TEST(KsGraph, AnIndexOutOfRangeInAWayThatIsNotTakenIsNone) {
  EXPECT_EQ(run("(def f Float ((x : Float) (v : Vec Float)) (if (gt x 5.0) (index 5 v) x))", "f",
                {number(2), vec({1, 2, 3})}),
            Numbers{2});
}

TEST(KsGraph, AnAssertOnValuesThatDoesNotHoldGivesNaN) {
  const char* const root = "(def f Float (x : Float) (assert (gt x 1.0) (sqrt x)))";
  EXPECT_EQ(run(root, "f", {number(4)}), Numbers{2});
  EXPECT_TRUE(std::isnan(run(root, "f", {number(.25)})[0]));
}

// All numbers of a tensor have its sizes: one that lacks elements would be read behind its end.
TEST(KsGraph, TakesInputsOfOneSizeForATensor) {
  const std::string pairs = R"((def f Float (v : Vec (Tuple Float Float))
  (sumbuild (size v) (lam (i : Integer) (let ((a b) (index i v)) (add a (mul 10.0 b)))))))";
  EXPECT_EQ(run(pairs, "f", {vec({1, 2}), vec({3, 4})}), Numbers{73});
  EXPECT_THAT(user_error([&] {
                graph(pairs, "f", {vec({1, 2, 3}), vec({1})});
              }).value_or(""),
              HasSubstr("the parameter 'v': expected inputs of one size for (Vec (Tuple Float "
                        "Float)), received 3 and 1 along axis 0 of the inputs 0 and 1"));
  EXPECT_THAT(
      user_error([] { graph("(def f Integer (v : Vec (Tuple)) (size v))", "f", {}); }).value_or(""),
      HasSubstr("(Vec (Tuple)) has no numbers, so nothing says how large it is"));
}

// The derivative of a function of the language is one of a call of it.
TEST(KsGraph, FunctionsOfTheLanguageHaveDerivatives) {
  const std::string text = R"((def f (Tuple Float Float Float) (x : Float)
  (let ((a b) ([rev mul] (tuple x 3.0) 1.0)) (tuple ([rev sin] x 1.0) a b))))";
  expect_near(run(text, "f", {number(.5)}), {std::cos(.5), 3, .5}, 1e-15);
}

// A start that is an index is below its size; what is carried later need not be.
TEST(KsGraph, AFoldForgetsTheRangeOfItsStart) {
  const std::string text = R"((def f (Vec (Vec Float)) (x : Float)
  (build 2 (lam (j : Integer) (build 3 (lam (k : Integer) (to_float
    (fold (lam (t : Tuple Integer Integer)
            (let ((a b) t) (if (lt a 3) (add a b) (add a (mul j b)))))
          k (build 5 (lam (i : Integer) (add i 1)))))))))))";
  EXPECT_EQ(run(text, "f", {number(0)}), (Numbers{3, 4, 3, 15, 16, 17}));
}

}  // namespace
}  // namespace flashlight::ks::test
