#include "composit/ad/expr_derivative.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "composit/ad/partials.h"
#include "composit/eval/loops.h"
#include "composit/ir/error.h"
#include "tests/ad/gradient_check.h"
#include "tests/user_error.h"

namespace composit::test {
namespace {

using Complex = std::complex<double>;
using Point = std::vector<Complex>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNaN = std::nan("");

// Operand `number` of a statement of one axis.
Expr element(size_t number, DType dtype = DType::float64) {
  return Expr::load(number, dtype, {Expr::axis(0)});
}

// `value` over as many points as `operands` have; each operand is of the dtype it is loaded in.
std::vector<Complex> values_of(const Expr& value, const std::vector<Point>& operands) {
  const int64_t count = static_cast<int64_t>(operands.at(0).size());
  Loops loops;
  loops.results = {tensor_type(DType::complex128, {count})};
  loops.statements = {
      {.axes = {{"i", count}}, .stores = {{0, {Expr::axis(0)}, cast(value, DType::complex128)}}}};
  std::vector<Array> arrays;
  for (size_t i = 0; i < operands.size(); ++i) {
    const bool real = !depends_on(value, ExprKind::load, i) || [&] {
      for (const Expr& part : parts_of({value}))
        if (part.kind() == ExprKind::load && part.number() == i) return !is_complex(part.dtype());
      return true;
    }();
    loops.operands.push_back(tensor_type(real ? DType::float64 : DType::complex128, {count}));
    std::vector<double> numbers;
    for (const Complex& x : operands[i]) {
      numbers.push_back(x.real());
      if (!real) numbers.push_back(x.imag());
    }
    arrays.push_back(Array::copy_of(loops.operands.back(), numbers.data()));
  }
  const Array result = evaluate(loops, arrays).at(0);
  const auto* first = reinterpret_cast<const Complex*>(result.data());
  return {first, first + operands[0].size()};
}

double real_dot(const Complex& a, const Complex& b) {
  return a.real() * b.real() + a.imag() * b.imag();
}

// The derivative of <cotangent, value> along `direction` of operand `number`, at every point.
std::vector<double> differences(const Expr& value, const std::vector<Point>& operands,
                                size_t number, const Point& cotangent, Complex direction) {
  std::vector<double> results(cotangent.size());
  // Fourth order: f(x ± h) and f(x ± 2 h).
  const double step = 1e-3;
  for (const auto& [times, weight] : {std::pair(1, 8.0), {-1, -8.0}, {2, -1.0}, {-2, 1.0}}) {
    std::vector<Point> moved = operands;
    for (Complex& x : moved[number]) x += direction * (step * times);
    const std::vector<Complex> there = values_of(value, moved);
    for (size_t i = 0; i < there.size(); ++i)
      results[i] += weight * real_dot(cotangent[i], there[i]) / (12 * step);
  }
  return results;
}

Point some_cotangents(size_t count, bool complex) {
  Point result;
  for (size_t i = 0; i < count; ++i)
    result.emplace_back(0.5 + 0.25 * static_cast<double>(i),
                        complex ? 1.5 - static_cast<double>(i) : 0.0);
  return result;
}

void expect_near(double found, double expected, const std::string& what) {
  EXPECT_NEAR(found, expected, 2e-8 * (1 + std::abs(expected))) << what;
}

// Both modes, with respect to every load of `value`, against differences.
void check(const Expr& value, const std::vector<Point>& operands) {
  const size_t count = operands.at(0).size();
  const Point cotangents = some_cotangents(count, is_complex(value.dtype()));
  std::vector<Point> with_cotangents = operands;
  with_cotangents.push_back(cotangents);
  const Expr cotangent = element(operands.size(), value.dtype());
  const auto all = reverse(value, cotangent, [](const Expr&) { return true; });
  for (const LeafGradient& by_reverse : all) {
    const size_t number = by_reverse.leaf.number();
    const bool complex = is_complex(by_reverse.leaf.dtype());
    const Expr gradient = structural(value, by_reverse.leaf, cotangent);
    ASSERT_TRUE(gradient.defined());
    EXPECT_EQ(is_complex(gradient.dtype()), complex) << print(gradient);
    const auto found = values_of(gradient, with_cotangents);
    const Expr& where = by_reverse.condition;
    const auto again =
        values_of(where.defined() ? select(where, by_reverse.gradient, 0) : by_reverse.gradient,
                  with_cotangents);
    const auto real = differences(value, operands, number, cotangents, 1.0);
    const auto imaginary = complex ? differences(value, operands, number, cotangents, {0, 1})
                                   : std::vector<double>(count);
    for (size_t i = 0; i < count; ++i) {
      const std::string what = "d " + print(value) + " / d " + print(by_reverse.leaf) + ", point " +
                               std::to_string(i) + ": " + print(gradient);
      expect_near(found[i].real(), real[i], what);
      expect_near(found[i].imag(), imaginary[i], what);
      expect_near(again[i].real(), real[i], "reverse, " + what);
      expect_near(again[i].imag(), imaginary[i], "reverse, " + what);
    }
  }
}

// ---- the table ----------------------------------------------------------------------------------

struct FunctionCase {
  Function function;
  Point real;          // points of the first argument
  Point second = {};   // and of the second
  Point complex = {};  // points of a complex first argument, away from branch cuts
  Point complex_second = {};
};

void PrintTo(const FunctionCase& with, std::ostream* out) { *out << info_of(with.function).name; }

const Point kAnywhere = {-2.3, -0.7, 0.2, 1.9};
const Point kPositive = {0.3, 0.9, 1.7, 4.0};
const Point kInside = {-0.8, -0.3, 0.1, 0.6};
const Point kPlane = {{0.7, 0.4}, {-0.6, 0.8}, {0.3, -1.2}, {1.4, 0.9}};

const std::vector<FunctionCase>& cases() {
  using enum Function;
  static const std::vector<FunctionCase> table = {
      {abs, kAnywhere, {}, kPlane},
      {real, kAnywhere, {}, kPlane},
      {imag, {}, {}, kPlane},
      {conj, kAnywhere, {}, kPlane},
      {complex, kAnywhere, kPositive},
      {neg, kAnywhere, {}, kPlane},
      {add, kAnywhere, kPositive, kPlane, kPositive},
      {sub, kAnywhere, kPositive, kPlane, kPositive},
      {mul, kAnywhere, kPositive, kPlane, kPlane},
      {div, kAnywhere, kPositive, kPlane, {{1, 2}, {-0.5, 0.5}, {2, 0}, {0, -1}}},
      {pow, kPositive, kAnywhere, kPlane, {{0.5, 1}, {2, -0.3}, {-1.5, 0.2}, {1, 1}}},
      {exp, kAnywhere, {}, kPlane},
      {exp2, kAnywhere, {}, kPlane},
      {expm1, kAnywhere, {}, kPlane},
      {log, kPositive, {}, kPlane},
      {log2, kPositive, {}, kPlane},
      {log10, kPositive, {}, kPlane},
      {log1p, kPositive, {}, kPlane},
      {sqrt, kPositive, {}, kPlane},
      {rsqrt, kPositive, {}, kPlane},
      {sin, kAnywhere, {}, kPlane},
      {cos, kAnywhere, {}, kPlane},
      {tan, kInside, {}, kPlane},
      {asin, kInside, {}, kPlane},
      {acos, kInside, {}, kPlane},
      {atan, kAnywhere, {}, kPlane},
      {sinh, kAnywhere, {}, kPlane},
      {cosh, kAnywhere, {}, kPlane},
      {tanh, kAnywhere, {}, kPlane},
      {asinh, kAnywhere, {}, kPlane},
      {acosh, {1.2, 1.9, 3.0, 8.0}, {}, kPlane},
      {atanh, kInside, {}, kPlane},
      {erf, kAnywhere},
      {erfc, kAnywhere},
      {erfinv, kInside},
      {lgamma, {-1.4, 0.4, 1.9, 5.0}},
      {digamma, {-1.4, 0.4, 1.9, 5.0}},
      {min, {1, 2, -1, 0}, {2, 1, 0, -1}},
      {max, {1, 2, -1, 0}, {2, 1, 0, -1}},
      {atan2, kAnywhere, {0.4, -1.3, -0.6, 2.0}},
      {hypot, kAnywhere, kPositive},
      {remainder, {-7.3, -0.4, 5.1, 2.2}, {3, -2, 2.5, 0.9}},
      {fmod, {-7.3, -0.4, 5.1, 2.2}, {3, -2, 2.5, 0.9}},
      {copysign, kAnywhere, {-1, 1, -1, 1}},
  };
  return table;
}

struct EveryFunction : testing::TestWithParam<FunctionCase> {};

TEST_P(EveryFunction, AgreesWithDifferences) {
  const FunctionCase& with = GetParam();
  const auto apply = [&](DType dtype) {
    std::vector<Expr> arguments;
    for (size_t i = 0; i < info_of(with.function).arity; ++i)
      arguments.push_back(element(i, dtype));
    return Expr::call(with.function, arguments);
  };
  const auto operands = [](const Point& x, const Point& y) {
    return y.empty() ? std::vector<Point>{x} : std::vector<Point>{x, y};
  };
  if (!with.real.empty()) check(apply(DType::float64), operands(with.real, with.second));
  if (!with.complex.empty())
    check(apply(DType::complex128), operands(with.complex, with.complex_second));
}

INSTANTIATE_TEST_SUITE_P(ExprDerivative, EveryFunction, testing::ValuesIn(cases()),
                         [](const auto& of) {
                           return std::string(info_of(of.param.function).name);
                         });

// A new function fails here until it has a derivative and a case, or is known to be a step.
TEST(ExprDerivative, EveryFunctionHasACase) {
  std::set<Function> tested = {Function::select, Function::cast};
  for (const FunctionCase& one : cases()) tested.insert(one.function);
  for (size_t i = 0; i < static_cast<size_t>(Function::count_); ++i) {
    const auto function = static_cast<Function>(i);
    if (tested.contains(function)) continue;
    const bool partly = function == Function::polygamma || function == Function::zeta;
    for (size_t argument = 0; argument < info_of(function).arity; ++argument) {
      const Partial partial = partial_of(function, argument);
      const bool zero = partial.known && partial.d == nullptr && partial.d_conj == nullptr;
      EXPECT_TRUE(zero || partly || function == Function::nextafter) << info_of(function).name;
    }
  }
}

TEST(ExprDerivative, PolygammaAndZetaInTheirSecondArgument) {
  for (const int order : {1, 2, 3}) {
    check(polygamma(order, element(0)), {{0.4, 1.9, 5.0}});
    check(zeta(order + 0.5, element(0)), {{0.4, 1.9, 5.0}});
  }
}

TEST(ExprDerivative, StepsAndIntegersHaveNone) {
  const Expr x = element(0), g = element(1);
  for (const Expr& step :
       {floor(x), ceil(x), round(x), trunc(x), sign(x), floor_divide(x, 2.0),
        cast(x < 0, DType::float64), cast(cast(x, DType::int64), DType::float64)})
    EXPECT_FALSE(structural(step, x, g).defined()) << print(step);
  const Expr n = element(0, DType::int64);
  EXPECT_FALSE(structural(n * n, n, element(1, DType::int64)).defined());
  EXPECT_TRUE(reverse(floor(x), g, [](const Expr&) { return true; }).empty());
}

TEST(ExprDerivative, FunctionsWithoutOneAreNamed) {
  const Expr x = element(0), g = element(1);
  const auto message = [&](const Expr& value) {
    return user_error([&] { structural(value, x, g); }).value_or("");
  };
  EXPECT_EQ(message(exp(nextafter(1.0, x))),
            "[nextafter] has no derivative with respect to its second argument");
  EXPECT_EQ(message(polygamma(x, 2.0)),
            "[polygamma] has no derivative with respect to its first argument");
  EXPECT_EQ(message(zeta(x, 2.0)), "[zeta] has no derivative with respect to its first argument");
}

// ---- kinks and edges, values of torch 2.13 ------------------------------------------------------

// The gradients of f(x, y) at one point with cotangent 1.
std::pair<double, double> gradients(const Expr& value, double x, double y) {
  const auto of = [&](size_t number) {
    const Expr gradient = structural(value, element(number), element(2));
    return gradient.defined() ? values_of(gradient, {{x}, {y}, {1.0}}).at(0).real() : 0.0;
  };
  return {of(0), of(1)};
}

TEST(ExprDerivative, KinksAreAsInTorch) {
  const Expr x = element(0), y = element(1);
  using Pair = std::pair<double, double>;
  EXPECT_EQ(gradients(abs(x), 0, 0).first, 0);
  EXPECT_EQ(gradients(max(x, y), 2, 2), Pair(0.5, 0.5));
  EXPECT_EQ(gradients(min(x, y), 2, 2), Pair(0.5, 0.5));
  EXPECT_EQ(gradients(max(x, y), kNaN, 2), Pair(1, 1));
  EXPECT_EQ(gradients(min(x, y), 2, kNaN), Pair(1, 1));
  EXPECT_EQ(gradients(pow(x, y), 0, 0), Pair(0, 0));
  EXPECT_EQ(gradients(pow(x, y), 0, 1), Pair(1, 0));
  EXPECT_EQ(gradients(pow(x, y), 0, 2), Pair(0, 0));
  EXPECT_EQ(gradients(pow(x, y), 0, 0.5), Pair(kInfinity, 0));
  EXPECT_EQ(gradients(pow(x, y), 2, 0), Pair(0, std::log(2)));
  EXPECT_EQ(gradients(pow(x, 0.0), 0, 0).first, 0);
  EXPECT_EQ(gradients(sqrt(x), 0, 0).first, kInfinity);
  EXPECT_EQ(gradients(copysign(x, y), 0, -1), Pair(0, 0));
  EXPECT_EQ(gradients(atan2(x, y), 0, 0), Pair(0, 0));
  EXPECT_EQ(gradients(remainder(x, y), -7, 3), Pair(1, 3));
  EXPECT_EQ(gradients(fmod(x, y), -7, 3), Pair(1, 2));
}

TEST(ExprDerivative, MagnitudeOfComplexZero) {
  const Expr z = element(0, DType::complex128);
  const Expr gradient = structural(abs(z), z, element(1));
  EXPECT_EQ(values_of(gradient, {{0.0}, {1.0}}).at(0), Complex(0, 0));
}

// A gradient of zero stays zero where a cotangent or factor is infinite.
TEST(ExprDerivative, MasksStayZero) {
  const Expr x = element(0), y = element(1);
  const Expr relu = select(x < 0, 0, x);
  const Expr gradient = structural(relu * y, x, element(2));
  EXPECT_EQ(values_of(gradient, {{-1.0}, {kInfinity}, {1.0}}).at(0), 0.0) << print(gradient);
  EXPECT_EQ(values_of(gradient, {{-1.0}, {1.0}, {kInfinity}}).at(0), 0.0) << print(gradient);
  const Expr larger = structural(max(x, y), x, element(2));
  EXPECT_EQ(values_of(larger, {{-1.0}, {1.0}, {kInfinity}}).at(0), 0.0) << print(larger);
}

// ---- compositions -------------------------------------------------------------------------------

TEST(ExprDerivative, CompositionsAndCasts) {
  const Expr x = element(0), y = element(1), z = element(0, DType::complex128);
  check(x * 0.5 * (1 + erf(x * std::sqrt(0.5))), {kAnywhere});
  check(select(x < 0, exp(x) - 1, x * x + y), {kAnywhere, kPositive});
  check(x * x * x / (y + x), {kPositive, kPositive});
  check(pow(x, 2.0) + pow(x, 3.0) + pow(x, 1.0), {kAnywhere});
  check(cast(z * z, DType::float64) * 2, {kPlane});  // the real part
  check(cast(x, DType::complex128) * Complex(1, 2), {kPositive});
  check(abs(exp(z)) * real(z) + imag(z * conj(z)) + abs(conj(z) * z), {kPlane});
  check(conj(select(real(z) < 0, z * z, conj(z))), {kPlane});
  check(complex(x * y, sin(x)) * complex(y, x), {kAnywhere, kPositive});
}

TEST(ExprDerivative, SelectsStaySelects) {
  const Expr x = element(0), g = element(1);
  const Expr value = select(x < 0, 0, select(x < 1, x * x, 2 * x));
  EXPECT_TRUE(structural(value, x, g)
                  .same(select(x < 0, 0, g * select(x < 1, x + x, cast(2, DType::float64)))))
      << print(structural(value, x, g));
}

// A load in a branch that is not taken is not evaluated by the derivative, either.
TEST(ExprDerivative, ProductsInABranchStayInIt) {
  const Expr i = Expr::axis(0);
  const Expr a = Expr::load(0, DType::float64, {i - 1}), b = Expr::load(1, DType::float64, {i - 1});
  const Expr g = element(2);
  const Expr value = select(i >= 1, a * b, 0);
  const Expr gradient = structural(value, a, g);
  EXPECT_TRUE(gradient.same(select(i >= 1, g * b, 0))) << print(gradient);
  EXPECT_TRUE(reached(value, a).same(i >= 1));
  const auto all = reverse(value, g, [](const Expr&) { return true; });
  ASSERT_EQ(all.size(), 2U);
  EXPECT_TRUE(all[0].condition.same(i >= 1));
  EXPECT_TRUE(all[0].gradient.same(g * b));
}

TEST(ExprDerivative, LeavesReachedOnSeveralPaths) {
  const Expr i = Expr::axis(0), x = element(0), y = element(1), g = element(2);
  EXPECT_TRUE(is_literal(cast(reached(select(x < 0, 0, x), x), DType::int64), 1));
  EXPECT_FALSE(reached(x + 1, y).defined());
  const Expr both = select(i < 2, x * y, select(i < 5, exp(x), y));
  EXPECT_TRUE(reached(both, x).same(i < 2 || (i >= 2 && i < 5))) << print(reached(both, x));
  const auto all = reverse(both, g, [](const Expr& leaf) { return leaf.number() == 0; });
  ASSERT_EQ(all.size(), 1U);
  EXPECT_TRUE(all[0].condition.same((i >= 2 && i < 5) || i < 2)) << print(all[0].condition);
}

// The number of parts is linear in the depth, whatever is shared.
TEST(ExprDerivative, SharedPartsAreDerivedOnce) {
  const Expr x = element(0), g = element(1);
  Expr chain = x;
  for (int i = 0; i < 60; ++i) chain = sin(chain) * chain;
  EXPECT_LT(parts_of({structural(chain, x, g)}).size(), 600U);
  const auto all = reverse(chain, g, [](const Expr&) { return true; });
  EXPECT_LT(parts_of({all.at(0).gradient}).size(), 600U);
}

}  // namespace
}  // namespace composit::test
