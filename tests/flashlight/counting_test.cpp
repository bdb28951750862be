// Forms of numbers that follow the calls, against the arithmetic of the optimizers they come from.
#include "flashlight/counting.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace {

using flashlight::fit;
using flashlight::Form;

const flashlight::FitOptions kOptions{{0.999, 0.9, 1 - 0.9, 0.001}, {}, false};

// Three values show a form; it has to go on with the bits of `number`, also when read back.
void expect_form(const std::function<double(double)>& number, const std::string& text,
                 int64_t first) {
  std::vector<double> seen;
  for (int64_t n = 0; n < 3; ++n) seen.push_back(number(static_cast<double>(first + n)));
  const auto form = fit(seen, kOptions);
  if (!form && first > 2) return;  // refused: constants that agree so far differ later
  ASSERT_TRUE(form) << text;
  if (first == 1) {
    EXPECT_EQ(form->text(), text);
  }
  const auto again = Form::decode(form->encode());
  ASSERT_EQ(again, form);
  for (int64_t n = 0; n < 5000; ++n)
    ASSERT_EQ(again->at(n), number(static_cast<double>(first + n))) << text << " at " << n;
}

TEST(Counting, NumbersOfOptimizers) {
  for (const int64_t first : {1, 2, 7, 150}) {
    expect_form([](double n) { return n; }, "n + 1", first);
    expect_form([](double n) { return 1 - std::pow(0.9, n); }, "1 - 0.9^(n + 1)", first);
    expect_form([](double n) { return std::sqrt(1 - std::pow(0.999, n)); },
                "sqrt(1 - 0.999^(n + 1))", first);
    expect_form([](double n) { return -(1e-3 / (1 - std::pow(0.9, n))); },
                "-(0.001 / (1 - 0.9^(n + 1)))", first);
    expect_form([](double n) { return 0.05 / (1 + (n - 1.0) * 0.01); }, "0.05 / (1 + (n) * 0.01)",
                first);
  }
}

TEST(Counting, OtherNumbersHaveNoForm) {
  const std::vector<std::vector<double>> sequences = {
      {0.1, 0.1, 0.05}, {0.3, 0.19, 0.1361}, {0.1, 0.095, 0.1 * 0.95 * 0.95}, {1, 2, 4}, {1, 2, 2}};
  for (const auto& sequence : sequences) EXPECT_FALSE(fit(sequence, kOptions)) << sequence[1];
}

TEST(Counting, OneValueMoreRefutes) {
  std::vector<double> seen;
  for (int n = 1; n <= 3; ++n) seen.push_back(1 - std::pow(0.9, n));
  seen.push_back(std::nextafter(1 - std::pow(0.9, 4), 0));
  EXPECT_FALSE(fit(seen, kOptions));
}

TEST(Counting, TextThatIsNoFormIsRefused) {
  EXPECT_FALSE(Form::decode("rest"));
  EXPECT_FALSE(Form::decode("riddle 0 0x1p+0 0x1p+0 3"));
}

}  // namespace
