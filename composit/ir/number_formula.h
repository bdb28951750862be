// Numbers of a program that follow from numbers which are no sizes: `-(lr / (1 - 0.9^n))`, the step
// of an optimizer.
//
//   const NumberFormula lr = NumberFormula::named("lr"), calls = NumberFormula::named("calls");
//   const NumberFormula step = -(lr / (1.0 - pow(NumberFormula(0.9), calls)));
//   step.evaluate([](const std::string& name) { return name == "lr" ? 0.1 : 3; });
//   print(step);                            // "-(lr / (1.0 - pow(0.9, calls)))"
//
// Grammar
//
// ```text
//   formula = term { ("+" | "-") term }          term = factor { ("*" | "/") factor }
//   factor  = number | name | "-" factor | "(" formula ")"
//           | "pow(" formula "," formula ")" | "sqrt(" formula ")" | "float(" formula ")"
// ```
//
// Evaluated in double precision, in the order of the text, so that it has the bits of a program
// that is written that way. Immutable; formulas share their parts.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "composit/ir/hash.h"

namespace composit {

class Lexer;

class NumberFormula {
 public:
  // The leaves, and the functions of one formula and of two.
  enum class Kind : uint8_t {
    constant,
    named,
    negate,
    single,  // rounded to single precision, as C++ does with its floats
    root,
    add,
    subtract,
    multiply,
    divide,
    power
  };
  // The number of that name.
  using NumberOf = std::function<double(const std::string& name)>;

  NumberFormula() : NumberFormula(0.0) {}
  NumberFormula(double constant);  // NOLINT: a number is a formula
  // A number that somebody gives: a word (see `number_name`).
  static NumberFormula named(std::string name);
  // InternalError for a leaf, and for another number of arguments than the function has.
  static NumberFormula call(Kind function, std::vector<NumberFormula> arguments);

  Kind kind() const;                                    // a leaf, or the function
  double constant() const;                              // of a constant
  const std::string& name() const;                      // of a named number
  const std::vector<NumberFormula>& arguments() const;  // of a function

  // In double precision, function by function.
  double evaluate(const NumberOf& number_of) const;
  // Calls `visit` with each name that the formula reads.
  void for_each_name(const std::function<void(const std::string&)>& visit) const;

  // By structure.
  Hash hash() const;
  bool operator==(const NumberFormula& other) const { return hash() == other.hash(); }

 private:
  struct Part;
  explicit NumberFormula(std::shared_ptr<const Part> part) : part_(std::move(part)) {}
  std::shared_ptr<const Part> part_;
};

NumberFormula operator-(NumberFormula argument);                   // the function of a formula
NumberFormula operator+(NumberFormula left, NumberFormula right);  // the same
NumberFormula operator-(NumberFormula left, NumberFormula right);  // the same
NumberFormula operator*(NumberFormula left, NumberFormula right);  // the same
NumberFormula operator/(NumberFormula left, NumberFormula right);  // the same
NumberFormula pow(NumberFormula base, NumberFormula exponent);     // the same
NumberFormula sqrt(NumberFormula argument);                        // the same
// The formula with each constant and function rounded to single precision.
NumberFormula in_single(const NumberFormula& formula);

// The formula with `number` in place of the one of that name.
NumberFormula substitute(const NumberFormula& formula, const std::string& name,
                         const NumberFormula& number);

// `text` with "_" in place of what no name of a number has: "train.cpp:31" stays as it is.
std::string number_name(std::string_view text);

// The attribute that holds a number, and which element of it: "scalars[2]"; of one that is no list,
// "value".
struct NumberKey {
  explicit NumberKey(std::string_view key);
  std::string name;               // of the attribute
  std::optional<size_t> element;  // of its list
};
// The text that is read as this key.
std::string print(const NumberKey& key);

// As above, with as few parentheses as the grammar needs; constants read back bit for bit.
std::string print(const NumberFormula& formula);
// Reads the formula that comes next. UserError with the place in the text.
NumberFormula read_number_formula(Lexer& lexer);

}  // namespace composit
