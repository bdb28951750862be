// Numbers that are no sizes: their formulas as text, what fits, and what does not.
#include "composit/ir/number_formula.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "composit/family/number_fit.h"
#include "composit/ir/error.h"
#include "composit/ir/lexer.h"

namespace {

using composit::number_fits;
using composit::NumberFormula;
using composit::NumberLeaf;
using composit::print;
using composit::where_differ;
using ::testing::HasSubstr;
using Kind = NumberFormula::Kind;

NumberFormula read(const std::string& text) {
  composit::Lexer lexer(text, "test", 1);
  const NumberFormula formula = composit::read_number_formula(lexer);
  EXPECT_EQ(lexer.peek().kind, composit::TokenKind::end) << text;
  return formula;
}

NumberFormula random_formula(std::mt19937& random, int depth) {
  const auto pick = [&](int count) {
    return static_cast<int>(random() % static_cast<unsigned>(count));
  };
  if (depth == 0 || pick(4) == 0) {
    if (pick(2) == 0) return NumberFormula::named(pick(2) == 0 ? "lr" : "train.cpp:31");
    return std::ldexp(static_cast<double>(random()) - 2147483648.0, -pick(60));
  }
  const auto kind = static_cast<Kind>(2 + pick(8));
  std::vector<NumberFormula> arguments = {random_formula(random, depth - 1)};
  if (kind > Kind::root) arguments.push_back(random_formula(random, depth - 1));
  return NumberFormula::call(kind, std::move(arguments));
}

TEST(NumberFormula, TextReadsBack) {
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    const NumberFormula formula = random_formula(random, 5);
    ASSERT_EQ(read(print(formula)), formula) << print(formula);
  }
}

TEST(NumberFormula, IsEvaluatedInTheOrderOfItsText) {
  const auto number_of = [](const std::string& name) { return name == "lr" ? 0.1 : 3.0; };
  EXPECT_EQ(read("-(lr / (1.0 - pow(0.9, n)))").evaluate(number_of),
            -(0.1 / (1 - std::pow(0.9, 3.0))));
  EXPECT_EQ(read("lr - 0.3 - 0.7").evaluate(number_of), 0.1 - 0.3 - 0.7);
  EXPECT_EQ(read("lr - (0.3 - 0.7)").evaluate(number_of), 0.1 - (0.3 - 0.7));
  EXPECT_EQ(read("lr / 3.0 * n").evaluate(number_of), 0.1 / 3.0 * 3.0);
}

TEST(NumberFormula, WrongTextIsRefused) {
  for (const std::string text : {"", "lr +", "pow(lr)", "exp(lr)", "(lr", "%x", "1.5.3"})
    EXPECT_THROW(read(text), composit::UserError) << text;
}

TEST(NumberFormula, NamesAreWords) {
  EXPECT_EQ(composit::number_name("train.cpp:31"), "train.cpp:31");
  EXPECT_EQ(composit::number_name("3 x"), "_3_x");
}

// ---- what fits ----------------------------------------------------------------------------------

const NumberLeaf kRate{"lr", {0.1, 0.05, 0.02, 0.013}};

std::string fitted(const std::function<double(double x, double call)>& number) {
  std::vector<double> values;
  for (size_t i = 0; i < kRate.values.size(); ++i)
    values.push_back(number(kRate.values[i], static_cast<double>(i)));
  const auto fits = number_fits(values, {kRate}, {.calls = {0, 1, 2, 3}, .bases = {0.999, 0.9}});
  return fits.empty() ? "none" : print(fits[0].formula);
}

TEST(NumberFit, WhatProgramsMakeOfANumber) {
  EXPECT_EQ(fitted([](double x, double) { return x; }), "lr");
  EXPECT_EQ(fitted([](double x, double) { return -x; }), "-(lr)");
  EXPECT_EQ(fitted([](double x, double) { return 1 - x; }), "1.0 - lr");
  EXPECT_EQ(fitted([](double x, double) { return 1 - x * 0.01; }), "1.0 - 0.01 * lr");
  EXPECT_EQ(fitted([](double x, double) { return x / 7; }), "lr / 7.0");
  EXPECT_EQ(fitted([](double x, double) { return 3 / x; }), "3.0 / lr");
  EXPECT_EQ(fitted([](double x, double) { return x + 0.25; }), "lr + 0.25");
  EXPECT_EQ(fitted([](double x, double) { return 2.5 / (x + 1e-6); }), "2.5 / (lr + 1e-06)");
  EXPECT_EQ(fitted([](double x, double n) { return -(x / (1 - std::pow(0.9, n + 4))); }),
            "-(lr / (1.0 - pow(0.9, calls + 4.0)))");
  EXPECT_EQ(fitted([](double, double n) { return std::sqrt(1 - std::pow(0.999, n + 1)); }),
            "sqrt(1.0 - pow(0.999, calls + 1.0))");
  EXPECT_EQ(fitted([](double x, double) { return std::sin(x); }), "none");
}

// C++ computes with floats in single precision: what fits in both is told apart by another number.
TEST(NumberFit, FloatsAreRoundedAfterEachFunction) {
  const auto fits_of = [](const std::vector<float>& numbers) {
    NumberLeaf leaf{"weight", {}};
    std::vector<double> values;
    for (const float x : numbers) {
      leaf.values.push_back(x);
      values.push_back(1 - 0.3F * x);
    }
    return number_fits(values, {leaf}, {.calls = {0, 1, 2}, .bases = {}});
  };
  const auto told_apart = fits_of({0.1F, 0.7F, 0.3F});
  ASSERT_FALSE(told_apart.empty());
  const double received =
      told_apart[0].formula.evaluate([](const std::string&) { return static_cast<double>(0.77F); });
  EXPECT_EQ(received, static_cast<double>(1 - 0.3F * 0.77F)) << print(told_apart[0].formula);
  const NumberLeaf few{"weight", {0.5, 0.25, 0.75}};
  const auto both = number_fits({0.5, 0.75, 0.25}, {few}, {.calls = {0, 1, 2}, .bases = {}});
  ASSERT_GE(both.size(), 2U);
  EXPECT_TRUE(where_differ(both[0].formula, both[1].formula, {few}));
}

// 0.1 * x and x / 10 differ in the last bit of some x: what fits is told apart by further numbers.
TEST(NumberFit, FormulasThatDifferElsewhere) {
  const NumberLeaf few{"x", {0.5, 0.25, 0.125}};
  std::vector<double> values;
  for (const double x : few.values) values.push_back(x * 0.1);
  const auto fits = number_fits(values, {few}, {.calls = {0, 1, 2}, .bases = {}});
  ASSERT_GE(fits.size(), 2U);
  EXPECT_EQ(fits[0].rank, fits[1].rank);
  const auto at = where_differ(fits[0].formula, fits[1].formula, {few});
  ASSERT_TRUE(at);
  const auto number_of = [&](const std::string& name) { return at->at(name); };
  EXPECT_NE(fits[0].formula.evaluate(number_of), fits[1].formula.evaluate(number_of));
}

}  // namespace
