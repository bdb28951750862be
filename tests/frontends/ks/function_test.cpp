// Functions of programs called from composit::numpy and from functions of numbers.
#include "frontends/ks/function.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "composit/ad/chain_rule.h"
#include "composit/eval/evaluate.h"
#include "composit/numpy/numpy.h"
#include "composit/ops/native.h"
#include "flashlight/scalar/scalar.h"
#include "frontends/ks/parse.h"
#include "tests/user_error.h"

namespace flashlight::ks {
namespace {

namespace cnp = composit::numpy;
using composit::user_error;
using testing::HasSubstr;

constexpr const char* kText = R"(
(def soft Float (x : Float) (log (add 1.0 (exp x))))
(def f Float ((v : Vec Float) (n : Integer))
  (sumbuild n (lam (i : Integer) (soft (index i v)))))
(def g (Tuple Float Float) ((x : Float) (t : Tuple Float Float))
  (let ((a b) t)
    (tuple (if (lt x 0.0) (soft a) (mul x b))
           (fold (lam (s : Tuple Float Float) (mul (get$1$2 s) (get$2$2 s))) x (Vec_init a b x)))))
(def h Float (x : Float) ([rev soft] x 1.0))
(def i Float (v : Vec Float) (index 0 v)))";

double soft(double x) { return std::log(1 + std::exp(x)); }
double slope(double x) { return 1 / (1 + std::exp(-x)); }

std::vector<double> numbers(const composit::LazyTensor& x) {
  return composit::elements<double>(cnp::evaluate(cnp::NdArray(x)));
}

TEST(KsFunction, IsOneNodeWithADerivativeAmongNumpys) {
  const ProgramFunction f(parse(kText), "f");
  const cnp::NdArray x = cnp::asarray(std::vector<double>{.5, -1, 2});
  const cnp::NdArray y = cnp::NdArray(f({cnp::exp(x), int64_t{2}})[0]) * 3.0;
  EXPECT_NEAR(numbers(y)[0], 3 * (soft(std::exp(.5)) + soft(std::exp(-1))), 1e-13);
  EXPECT_EQ(f({x, int64_t{2}})[0].node->op(), composit::Symbol("composit::call"));
  const std::vector<double> gradient = numbers(composit::grad(y, {x})[0]);
  EXPECT_NEAR(gradient[0], 3 * slope(std::exp(.5)) * std::exp(.5), 1e-13);
  EXPECT_NEAR(gradient[1], 3 * slope(std::exp(-1)) * std::exp(-1), 1e-13);
  EXPECT_EQ(gradient[2], 0);
}

TEST(KsFunction, IsCalledByFunctionsOfNumbers) {
  const Program program = parse(kText);
  const ProgramFunction soft_of(program, "soft"), g(program, "g");
  const auto twice = scalar([&](auto x) { return 2 * soft_of.number(x * x); });
  EXPECT_NEAR(twice(.5), 2 * soft(.25), 1e-15);
  EXPECT_NEAR(twice.vjp({.5}, {1})[0], 2 * slope(.25) * 2 * .5, 1e-15);
  const auto both = scalar([&](auto x, auto y) { return g.numbers({x, y, x + y}); });
  const std::vector<double> values = both.values({.5, 3});
  EXPECT_NEAR(values[0], .5 * 3.5, 1e-15);
  EXPECT_NEAR(values[1], .5 * 3 * 3.5 * .5, 1e-15);
  EXPECT_NEAR(both.values({-.5, 3})[0], soft(3), 1e-15);
}

TEST(KsFunction, RefusesWhatItCannotTake) {
  const Program program = parse(kText);
  const auto error = [&](const std::string& name, const std::function<void(ProgramFunction&)>& f) {
    return user_error([&] {
             ProgramFunction function(program, name);
             f(function);
           })
        .value_or("");
  };
  const Number x(1.0);
  EXPECT_THAT(error("nothing", [](auto&) {}), HasSubstr("there is no function 'nothing'"));
  EXPECT_THAT(error("i", [&](auto& f) { f.number(x); }),
              HasSubstr("'i' is no function of Floats alone: it has a (Vec Float)"));
  EXPECT_THAT(error("soft",
                    [&](auto& f) {
                      f.numbers({x, x});
                    }),
              HasSubstr("'soft' expects 1 numbers, received 2"));
  EXPECT_THAT(error("h", [&](auto& f) { f.number(x); }),
              HasSubstr("a function of numbers has no derivative"));
  EXPECT_THAT(error("g", [&](auto& f) { f.number(x); }),
              HasSubstr("'g' expects more numbers than 1"));
}

}  // namespace
}  // namespace flashlight::ks
