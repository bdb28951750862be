// Lambdas of numbers, traced: the same lambda on doubles is what they are compared with.
#include "flashlight/scalar/scalar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "composit/ad/chain_rule.h"
#include "composit/eval/evaluate.h"
#include "composit/ops/functions.h"
#include "composit/ops/native.h"
#include "tests/user_error.h"

namespace flashlight {
namespace {

using composit::LazyTensor;
using composit::tensor_type;
using composit::user_error;
using testing::HasSubstr;
using Values = std::vector<double>;

const auto relu3 = [](auto x) {
  if (x < 0.0)
    return 0.0 * x;
  else if (x < 1.0)
    return 1.0 / 3.0 * x * x * x;
  else
    return x - 2.0 / 3.0;
};
const auto gelu = [](auto x) {
  using std::erf;
  return 0.5 * x * (1 + erf(x / std::sqrt(2.0)));
};
const auto power = [](auto x) {
  auto y = x;
  for (int i = 1; i < 7; ++i) y *= x;
  return y;
};
const auto cube_root = [](auto x) {  // Newton
  auto y = 0 * x + 1;
  for (int i = 0; i < 20; ++i) y -= (y * y * y - x) / (3 * y * y);
  return y;
};
const auto steps = [](auto x) {
  auto y = 0 * x;
  for (int i = -3; i <= 3; ++i)
    if (x > i) y += 0.5 * x;
  return y;
};
const auto halvings = [](auto x) {  // a loop that ends, whatever x: at most 6 trips
  auto y = x;
  for (int i = 0; i < 6 && y > 0.25; ++i) y = y / 2;
  return y;
};

const Values kPoints = {-4.5, -3, -1.25, -0.5, -0.0, 0.0, 0.125, 0.25, 0.5, 1.0, 1.5, 2.75, 9.5};

template <class F, class D>
void expect_like(const F& f, const D& derivative, const Values& points, double tolerance = 0) {
  const ScalarFunction traced = scalar(f);
  for (double x : points) {
    SCOPED_TRACE(x);
    EXPECT_DOUBLE_EQ(traced(x), f(x));
    EXPECT_NEAR(traced.vjp({x}, {2.0})[0], 2 * derivative(x),
                1e-14 * std::abs(derivative(x)) + tolerance);
  }
}

TEST(Scalar, relu3) {
  expect_like(
      relu3, [](double x) { return x < 0   ? 0
                                   : x < 1 ? x * x
                                           : 1; }, kPoints);
  EXPECT_TRUE(std::isnan(scalar(relu3)(std::nan(""))));
}

TEST(Scalar, gelu) {
  const auto slope = [](double x) {
    return 0.5 * (1 + std::erf(x / std::sqrt(2.0))) +
           x * std::exp(-x * x / 2) / std::sqrt(2 * M_PI);
  };
  expect_like(gelu, slope, kPoints, 1e-15);
}

TEST(Scalar, loops_of_fixed_length_unroll) {
  expect_like(
      power, [](double x) { return 7 * std::pow(x, 6); }, kPoints, 1e-300);
  expect_like(
      cube_root, [](double x) { return 1 / (3 * std::pow(x, 2.0 / 3)); }, {0.125, 0.5, 1, 2, 5},
      1e-11);
  EXPECT_NEAR(scalar(cube_root)(2), std::cbrt(2.0), 1e-15);
}

TEST(Scalar, decisions_in_loops) {
  const auto slope = [](double x) {
    double y = 0;
    for (int i = -3; i <= 3; ++i) y += x > i ? 0.5 : 0;
    return y;
  };
  expect_like(steps, slope, kPoints);
  const auto halved = [](double x) {
    double y = 1;
    for (int i = 0; i < 6 && x > 0.25; ++i, x /= 2) y /= 2;
    return y;
  };
  expect_like(halvings, halved, kPoints);
}

// As a select, without a decision.
TEST(Scalar, a_truth_is_a_number) {
  const auto heaviside = [](auto x) { return (x > 0.0) * x + (x > 1.0) * x * x; };
  const ScalarFunction traced = scalar(heaviside);
  for (double x : kPoints) EXPECT_DOUBLE_EQ(traced(x), (x > 0) * x + (x > 1) * x * x);
}

TEST(Scalar, several_parameters_and_results) {
  const auto polar = [](auto x, auto y) {
    return std::pair{hypot(x, y), x == 0.0 ? 0.0 * y : atan2(y, x)};
  };
  const ScalarFunction traced = scalar(polar);
  EXPECT_EQ(traced.program().parameters, 2);
  EXPECT_EQ(traced.values({3, 4}), (Values{5, std::atan2(4, 3)}));
  EXPECT_EQ(traced.values({0, 4}), (Values{4, 0}));
  // d hypot = (x, y) / r, d atan2 = (-y, x) / r^2
  const Values gradient = traced.vjp({3, 4}, {1, 10});
  EXPECT_NEAR(gradient[0], 3.0 / 5 - 10 * 4.0 / 25, 1e-15);
  EXPECT_NEAR(gradient[1], 4.0 / 5 + 10 * 3.0 / 25, 1e-15);
  const auto three = scalar([](auto x) { return std::array{x, 2 * x, x * x}; });
  EXPECT_EQ(three.values({3}), (Values{3, 6, 9}));
  const auto mixed = scalar([](auto x, auto y) { return std::tuple{x + y, 1.5, true}; });
  EXPECT_EQ(mixed.exprs().size(), 3);
}

TEST(Scalar, all_functions) {
  using Case = std::pair<ScalarFunction, double (*)(double)>;
#define FLASHLIGHT_CASE(name) \
  Case(scalar([](auto x) { return name(x); }), [](double x) -> double { return std::name(x); })
  const std::vector<Case> cases = {
      FLASHLIGHT_CASE(abs),   FLASHLIGHT_CASE(exp),   FLASHLIGHT_CASE(exp2),
      FLASHLIGHT_CASE(expm1), FLASHLIGHT_CASE(log),   FLASHLIGHT_CASE(log2),
      FLASHLIGHT_CASE(log10), FLASHLIGHT_CASE(log1p), FLASHLIGHT_CASE(sqrt),
      FLASHLIGHT_CASE(sin),   FLASHLIGHT_CASE(cos),   FLASHLIGHT_CASE(tan),
      FLASHLIGHT_CASE(asin),  FLASHLIGHT_CASE(acos),  FLASHLIGHT_CASE(atan),
      FLASHLIGHT_CASE(sinh),  FLASHLIGHT_CASE(cosh),  FLASHLIGHT_CASE(tanh),
      FLASHLIGHT_CASE(asinh), FLASHLIGHT_CASE(acosh), FLASHLIGHT_CASE(atanh),
      FLASHLIGHT_CASE(erf),   FLASHLIGHT_CASE(erfc),  FLASHLIGHT_CASE(lgamma),
      FLASHLIGHT_CASE(floor), FLASHLIGHT_CASE(ceil),  FLASHLIGHT_CASE(trunc)};
#undef FLASHLIGHT_CASE
  for (const auto& [function, expected] : cases)
    for (double x : {0.3, 1.7, -0.6}) {
      SCOPED_TRACE(print(function.program()) + std::to_string(x));
      if (std::isnan(expected(x)))
        EXPECT_TRUE(std::isnan(function(x)));
      else
        EXPECT_DOUBLE_EQ(function(x), expected(x));
    }
  const auto two = scalar([](auto x, auto y) {
    return std::array{min(x, y), max(x, 1), pow(y, 2), pow(2, x), fmod(y, 0.3), copysign(y, x)};
  });
  EXPECT_EQ(two.values({-2, 0.5}), (Values{-2, 1, 0.25, 0.25, std::fmod(0.5, 0.3), -0.5}));
}

// ---- the tree -----------------------------------------------------------------------------------

TEST(Scalar, equal_branches_are_one) {
  const auto same = scalar([](auto x) {
    if (x < 0.0) return x * x + 1;
    return x * x + 1;
  });
  EXPECT_EQ(print(same.expr()), "p0 * p0 + 1");
}

TEST(Scalar, a_decision_is_taken_once) {
  size_t runs = 0;
  const auto twice = scalar([&](auto x) {
    ++runs;
    auto y = x;
    if (x < 0.0) y = -y;
    if (!(x < 0.0)) y = y + 1;
    if (0.0 > x) y = y * 2;  // the same comparison
    return y;
  });
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(print(twice.expr()), "p0 < 0 ? -p0 * 2 : p0 + 1");
}

// Comparisons of one value with numbers: every pair of operators, every order, and NaN.
TEST(Scalar, what_follows_from_a_decision_is_not_decided) {
  size_t runs = 0;
  const auto staircase = [&](auto x) {
    ++runs;
    auto y = 0 * x;
    for (int i = 0; i < 20; ++i)
      if (x > 0.5 * i) y += i;
    return y;
  };
  scalar(staircase);
  EXPECT_EQ(runs, 21);
  const auto holds = [](int relation, const auto& x, double bound) -> bool {
    switch (relation) {
      case 0:
        return x < bound;
      case 1:
        return x <= bound;
      case 2:
        return x > bound;
      case 3:
        return x >= bound;
      case 4:
        return x == bound;
      default:
        return x != bound;
    }
  };
  for (int code = 0; code < 6 * 6 * 6; ++code)
    for (const Values& bounds : {Values{0, 1, 0.5}, Values{1, 1, 1}, Values{1, 0, 1}}) {
      const auto f = [&](const auto& x) {
        double sum = 0;
        for (size_t i = 0, rest = static_cast<size_t>(code); i < 3; ++i, rest /= 6)
          sum += holds(static_cast<int>(rest % 6), x, bounds[i]) ? std::pow(2.0, i) : 0;
        return sum;
      };
      const ScalarFunction traced = scalar(f);
      for (double x : {-1.0, 0.0, 0.25, 0.5, 0.75, 1.0, 2.0, std::nan("")})
        ASSERT_EQ(traced(x), f(x)) << code << " at " << x << '\n' << print(traced.program());
    }
}

TEST(Scalar, prints) {
  const auto cut = scalar([](auto x) {
    if (x < 0.0) return 0.0 * x;
    return exp(x) * x;
  });
  EXPECT_EQ(print(cut.vjp().program()),
            "scalar(p0, p1: float64) {\n"
            "  let t0 = exp(p0)\n"
            "  return p0 < 0 ? 0 : p1 * (t0 * p0 + t0)\n"
            "}\n");
}

TEST(Scalar, what_is_not_taken_is_not_computed) {
  const auto safe = scalar([](auto x) {
    if (x == 0.0) return x;
    return x * log(x);
  });
  EXPECT_EQ(safe.vjp({0}, {1}), Values{1});
}

// ---- limits -------------------------------------------------------------------------------------

TEST(Scalar, loops_that_need_not_end_are_refused) {
  EXPECT_EQ(user_error([] {
              scalar([](auto x) {
                while (x > 1.0) x = x / 2;
                return x;
              });
            }),
            "[scalar] more than 10000 comparisons on one path: an unbounded loop? use while_loop");
  EXPECT_THAT(user_error([] {
                scalar(
                    [](auto x) {
                      while (!(x <= 1.0)) x = x / 2;
                      return x;
                    },
                    {.paths = 100});
              }).value_or(""),
              HasSubstr("[scalar] more than 100 paths"));
  const auto deep = scalar([](auto x) {
    auto y = x;
    for (int i = 0; i < 1000; ++i)
      if (i * y < -1.0) break;  // a chain: 1000 paths
    return y;
  });
  EXPECT_EQ(print(deep.expr()), "p0");
}

TEST(Scalar, says_what_is_wrong) {
  EXPECT_THAT(user_error([] {
                scalar(relu3).values({1, 2});
              }).value_or(""),
              HasSubstr("expected 1 numbers, received 2"));
  EXPECT_THAT(user_error([] {
                scalar([](auto x) {
                  if (x < 0.0) return Numbers{x};
                  return Numbers{x, x};
                });
              }).value_or(""),
              HasSubstr("as many results on all paths, received 1 and 2"));
  EXPECT_THAT(user_error([] {
                int calls = 0;
                scalar([&](auto x) { return x < ++calls ? x : 2 * x; });
              }).value_or(""),
              HasSubstr("expected a function that does the same whenever it is called"));
  const Number loose(composit::Expr::parameter(0, composit::DType::float64));
  EXPECT_THAT(user_error([&] { return bool(loose < 0.0); }).value_or(""),
              HasSubstr("outside of a traced function"));
  EXPECT_THAT(user_error([] { scalar([](auto x) {
                                return std::pair{x, x};
                              })(1); }).value_or(""),
              HasSubstr("expected a function with one result, received one with 2"));
}

// ---- tensors ------------------------------------------------------------------------------------

LazyTensor held(const std::string& name, const composit::Dims& sizes, const Values& values,
                composit::DType dtype = composit::DType::float64) {
  return composit::held_input(name, composit::array_of(tensor_type(dtype, sizes), values));
}
Values values(const LazyTensor& tensor) {
  return composit::elements<double>(composit::evaluate({tensor})[0]);
}

TEST(Scalar, of_tensors_is_one_loop) {
  const LazyTensor x = held("x", {13}, kPoints), y = scalar(relu3).tensor(x);
  EXPECT_EQ(y.node->op().str(), "composit::loops");
  Values expected, slopes;
  for (double point : kPoints) {
    expected.push_back(relu3(point));
    slopes.push_back(point < 0 ? 0 : point < 1 ? point * point : 1);
  }
  EXPECT_EQ(values(y), expected);
  const composit::LazyTensor slope = grad(sum(y), {x})[0];
  EXPECT_EQ(slope.node->op().str(), "composit::loops");  // not `where`, which computes both
  const Values gradient = values(slope);
  for (size_t i = 0; i < slopes.size(); ++i) EXPECT_DOUBLE_EQ(gradient[i], slopes[i]);
}

TEST(Scalar, of_tensors_broadcasts_and_keeps_dtypes) {
  const auto f = scalar([](auto x, auto y) {
    if (x < y) return std::pair{x * y, x};
    return std::pair{x - y, y};
  });
  const LazyTensor x = held("x", {2, 1}, {1, 2}, composit::DType::float32),
                   y = held("y", {3}, {1, 2, 3}, composit::DType::float32);
  const composit::LazyTensors z = f.tensors({x, y});
  EXPECT_EQ(z[0].dtype(), composit::DType::float32);
  EXPECT_EQ(values(z[0]), (Values{0, 2, 3, 1, 0, 6}));
  EXPECT_EQ(values(z[1]), (Values{1, 1, 1, 1, 2, 2}));
  const auto gradients = grad(sum(z[0]), {x, y});
  EXPECT_EQ(values(gradients[0]), (Values{1 + 2 + 3, 1 + 1 + 3}));
  EXPECT_EQ(values(gradients[1]), (Values{-1 - 1, 1 - 1, 1 + 2}));
}

}  // namespace
}  // namespace flashlight
