// Numbers of a family that are no sizes: a learning rate, the weight of a loss, a step count.
//
// ```text
//   numbers(
//     lr given shown [0.1, 0.05, 0.02],
//     calls counted shown [0.0, 1.0, 2.0],
//     value of %addcdiv = -(lr / (1.0 - pow(0.9, calls + 1.0)))
//   )
// ```
//
// A number of an operator that differs between examples follows from these by a formula
// (number_fit.h). What follows from none is one of its own, called by its line in the source, which
// callers give.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "composit/family/number_fit.h"
#include "composit/ir/graph.h"

namespace composit {

// Where a number comes from: callers give it under its name, or under the name of its line in the
// source; it is the number of the call; the program read it from a tensor.
enum class NumberOrigin : uint8_t { given, source, counted, read };

// Whether callers know it: under its name or its line. Others follow from the call or its tensors.
bool is_given(NumberOrigin origin);

// "given", "source", "counted" or "read".
std::string_view name(NumberOrigin origin);

// A number that formulas read.
struct FreeNumber {
  std::string name;                           // a word: see `number_name`
  NumberOrigin origin = NumberOrigin::given;  // who knows it
  std::vector<double> shown = {};             // by example
  LazyTensor read = {};                       // of the family's example: what it is read from
};

// A number of an operator.
struct NumberUse {
  NodePtr node;                    // of the family's example
  std::string key;                 // the attribute; "value" of a constant, "read" of a read
  NumberFormula formula = {};      // gives it
  std::vector<double> shown = {};  // by example
};

// Numbers of the examples that `unify` gets from outside.
struct NumbersShown {
  // A number by its name, and what it was in each example.
  std::vector<NumberLeaf> given = {};
  std::vector<int64_t> calls = {};  // by example: the number of the call; empty: 0, 1, …
  bool python = false;              // see NumberFitOptions
  // Those of these examples.
  NumbersShown of(const std::vector<size_t>& examples) const;
};

// UserError where all examples had whole numbers, and this one is none; for a number that callers
// give, where none was 0, or of its sign.
void expect_kind(const FreeNumber& number, double value);

// Candidates for bases of powers, of all numbers of the graph and its regions.
std::vector<double> bases_of(const Graph& graph);

// Numbers of operators in one graph after another, and the formulas that they have.
class NumberUnifier {
 public:
  // `first`: of the first example; its numbers are candidates for bases of powers.
  NumberUnifier(const NumbersShown& shown, const Graph& first);

  // The formula of a number; nothing: there is none. `place` is its operator, for errors.
  // `by_sizes`: examples of equal sizes never have other numbers; then it is not taken for a plain
  // count of calls. UserError where several formulas fit.
  std::optional<NumberFormula> formula_for(const std::vector<double>& values,
                                           const std::string& place, bool by_sizes);
  // A number that the program read from `tensor`, for formulas of later ones.
  NumberFormula add_read(const std::vector<double>& values, const LazyTensor& tensor,
                         const std::string& name);
  // A number that callers give; `name` may get a number behind it.
  NumberFormula add_source(const std::vector<double>& values, const std::string& name);
  // Those that formulas read.
  std::vector<FreeNumber> numbers() const;

 private:
  std::string free_name(const std::string& name) const;

  NumberFitOptions options_;
  std::vector<NumberLeaf> leaves_;
  std::vector<FreeNumber> numbers_;
  std::map<std::vector<double>, NumberFormula> known_;
  std::set<std::string> read_;  // names that formulas read
};

}  // namespace composit
