// Finds the formula that gives a number of a program in every example.
//
//   const std::vector<NumberLeaf> rates = {{"lr", {0.1, 0.05, 0.02}}};
//   number_fits({-0.1, -0.05, -0.02}, rates, {.calls = {0, 1, 2}, .bases = {}})[0].formula;
//   // -(lr)
//
// The number is one of those that somebody gives or that the program reads, or is made of one by
// one of the few forms that programs have: `-x`, `c * x`, `x / c`, `x + c`, `c - x`, `1 - c * x`,
// `c / x`, `c / (x + d)`; `x / (1 - b^n)` and other bias corrections, where n counts the calls or
// is a number as well; or it follows the count of calls alone (counting.h). Constants are those of
// few digits that a person writes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "composit/family/counting.h"
#include "composit/ir/number_formula.h"

namespace composit {

// A number that formulas may read, and what it was in each example.
struct NumberLeaf {
  std::string name;            // in formulas
  std::vector<double> values;  // by example
};

// What is known of the examples beside their numbers.
struct NumberFitOptions {
  std::vector<int64_t> calls;  // by example: the number of the call
  std::vector<double> bases;   // candidates for the base of a power
  bool python = false;         // roots are written as powers
};

struct NumberFit {
  NumberFormula formula;  // gives the number
  int rank = 0;           // how simple it is: those of the least rank are meant
};

// All formulas over `leaves`, and if there are none the one over the count of calls, the simplest
// first. `values` are not all equal.
std::vector<NumberFit> number_fits(const std::vector<double>& values,
                                   const std::vector<NumberLeaf>& leaves,
                                   const NumberFitOptions& options);

// True for whole numbers alone: formulas are told apart at such alone, then.
bool are_whole(const std::vector<double>& values);

// Numbers between those that leaves had at which two formulas differ; nothing: none was found.
using NumberValues = std::map<std::string, double>;
std::optional<NumberValues> where_differ(const NumberFormula& a, const NumberFormula& b,
                                         const std::vector<NumberLeaf>& leaves);

}  // namespace composit
