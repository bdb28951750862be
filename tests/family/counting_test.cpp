// Forms of numbers that follow the calls, against the arithmetic of the optimizers they come from.
#include "composit/family/counting.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "composit/ir/lexer.h"

namespace {

using composit::CountForm;
using composit::fit_count;

const composit::CountOptions kOptions{.bases = {0.999, 0.9, 1 - 0.9, 0.001}};

// Three values show a form; it has to go on with the bits of `number`, also when read back.
void expect_form(const std::function<double(double)>& number, const std::string& text,
                 int64_t first) {
  std::vector<double> seen;
  for (int64_t n = 0; n < 3; ++n) seen.push_back(number(static_cast<double>(first + n)));
  const auto form = fit_count(seen, kOptions);
  if (!form && first > 2) return;  // refused: constants that agree so far differ later
  ASSERT_TRUE(form) << text;
  const composit::NumberFormula formula = formula_of(*form);
  if (first == 1) {
    EXPECT_EQ(print(formula), text);
  }
  const std::string printed = print(formula);
  composit::Lexer lexer(printed, "test", 1);
  const composit::NumberFormula again = composit::read_number_formula(lexer);
  ASSERT_EQ(again, formula) << printed;
  for (int64_t n = 0; n < 5000; ++n) {
    const double expected = number(static_cast<double>(first + n));
    ASSERT_EQ(form->at(n), expected) << text << " at " << n;
    ASSERT_EQ(again.evaluate([n](const std::string&) { return static_cast<double>(n); }), expected);
  }
}

TEST(Counting, NumbersOfOptimizers) {
  for (const int64_t first : {1, 2, 7, 150}) {
    expect_form([](double n) { return n; }, "calls + 1.0", first);
    expect_form([](double n) { return 1 - std::pow(0.9, n); }, "1.0 - pow(0.9, calls + 1.0)",
                first);
    expect_form([](double n) { return std::sqrt(1 - std::pow(0.999, n)); },
                "sqrt(1.0 - pow(0.999, calls + 1.0))", first);
    expect_form([](double n) { return -(1e-3 / (1 - std::pow(0.9, n))); },
                "-(0.001 / (1.0 - pow(0.9, calls + 1.0)))", first);
    expect_form([](double n) { return 0.05 / (1 + (n - 1.0) * 0.01); },
                "0.05 / (1.0 + calls * 0.01)", first);
  }
}

TEST(Counting, OtherNumbersHaveNoForm) {
  const std::vector<std::vector<double>> sequences = {
      {0.1, 0.1, 0.05}, {0.3, 0.19, 0.1361}, {0.1, 0.095, 0.1 * 0.95 * 0.95}, {1, 2, 4}, {1, 2, 2}};
  for (const auto& sequence : sequences) EXPECT_FALSE(fit_count(sequence, kOptions)) << sequence[1];
}

TEST(Counting, OneValueMoreRefutes) {
  std::vector<double> seen;
  for (int n = 1; n <= 3; ++n) seen.push_back(1 - std::pow(0.9, n));
  seen.push_back(std::nextafter(1 - std::pow(0.9, 4), 0));
  EXPECT_FALSE(fit_count(seen, kOptions));
}

TEST(Counting, CallsThatAreNotConsecutive) {
  const composit::CountOptions options{.bases = {0.9}, .calls = {2, 5, 11}};
  std::vector<double> seen;
  for (const int64_t call : options.calls)
    seen.push_back(-(0.01 / (1 - std::pow(0.9, static_cast<double>(call + 1)))));
  const auto form = fit_count(seen, options);
  ASSERT_TRUE(form);
  EXPECT_EQ(print(formula_of(*form)), "-(0.01 / (1.0 - pow(0.9, calls + 1.0)))");
  EXPECT_EQ(fit_count({4, 10, 22}, options)->at(3), 6);
}

// What captures of former versions hold.
TEST(Counting, FormsOfFormerVersionsAreRead) {
  const auto form = CountForm::decode("per_rest 1 0x1.ccccccccccccdp-1 0x1.0624dd2f1a9fcp-10 1");
  ASSERT_TRUE(form);
  EXPECT_EQ(print(formula_of(*form)), "-(0.001 / (1.0 - pow(0.9, calls + 1.0)))");
}

TEST(Counting, TextThatIsNoFormIsRefused) {
  EXPECT_FALSE(CountForm::decode("rest"));
  EXPECT_FALSE(CountForm::decode("riddle 0 0x1p+0 0x1p+0 3"));
}

}  // namespace
