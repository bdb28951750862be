// Numbers of a program that follow its calls: an optimizer's step count, its bias corrections.
//
//   // Values of calls 0, 1 and 2:
//   const auto form = fit_count({0.316, 0.446, 0.544}, {.bases = {0.9, 0.99}});
//   form->at(3);  print(formula_of(*form));       // "sqrt(1.0 - pow(0.9, calls + 1.0))"
//
// A form is evaluated as the program does it, in double precision and in the same order, so its
// values have the program's bits. It is accepted only if it gives all values that were seen, bit
// for bit, with constants of few digits, or with the only constants that do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "composit/ir/number_formula.h"

namespace composit {

// How a number follows from the number n of a call; with t = b^(n + k):
enum class CountKind : uint8_t {
  count,          // n * b + k: whole numbers
  rest,           // 1 - t
  root_of_rest,   // sqrt(1 - t)
  power_of_rest,  // (1 - t)^0.5, as Python writes the root
  per_rest,       // c / (1 - t)
  per_root,       // c / sqrt(1 - t)
  times_rest,     // c * (1 - t)
  times_root,     // c * sqrt(1 - t)
  decayed         // c / (1 + (n + k) * b)
};

// A number that follows the calls.
struct CountForm {
  CountKind kind = CountKind::count;  // how
  bool negated = false;               // the negative of what the kind says
  double b = 0, c = 1;                // as the kind says
  int64_t k = 0;                      // as the kind says

  double at(int64_t n) const;  // call n
  // Reads what captures of former versions have in place of a formula; nothing for other text.
  static std::optional<CountForm> decode(std::string_view text);
  bool operator==(const CountForm&) const = default;
};

// The name of the count of calls in formulas.
inline constexpr const char* kCalls = "calls";
// The number at call `number_of(count)`, with the same bits.
NumberFormula formula_of(const CountForm& form, const std::string& count = kCalls);

// What may be known of a number before it is fitted.
struct CountOptions {
  std::vector<double> bases;        // candidates for the base b
  std::vector<int64_t> counts;      // values of n + k at call 0 that other numbers have
  bool python = false;              // roots are written as powers
  std::vector<int64_t> calls = {};  // the numbers of the calls; empty: 0, 1, …
};

// The simplest form that gives the values of a number at these calls; nothing if none fits. Two
// values prove nothing: it takes a third one to confirm a form.
std::optional<CountForm> fit_count(const std::vector<double>& values, const CountOptions& options);

// The number of so many decimal digits that is next to `value`.
double rounded(double value, int digits);
// True if both are the same number, signs of zeros included.
bool same_bits(double a, double b);

// Candidates for the base of a power: the numbers b of a program that lie between 0 and 1, and 1 -
// b, the greatest first.
std::vector<double> bases_of(const std::vector<double>& numbers);

}  // namespace composit
