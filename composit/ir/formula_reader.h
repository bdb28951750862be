// Sums and products of a formula as text, for the files of this folder.
// FormulaReader<SizeReader, SizeFormula> is the base of SizeReader, whose sum() reads a whole text.
// The derived class has `inner`, which reads what is neither, and `kDivides`: whether there is "/".
#pragma once

#include <string>

#include "composit/ir/lexer.h"

namespace composit {

template <class Derived, class Formula>
class FormulaReader {
 public:
  explicit FormulaReader(Lexer& lexer) : lexer_(lexer) {}

  Formula sum() {
    Formula result = product();
    for (;;) {
      if (lexer_.accept("+"))
        result = result + product();
      else if (lexer_.accept("-"))
        result = result - product();
      else
        return result;
    }
  }

 protected:
  Formula factor() {
    const size_t offset = lexer_.peek().offset;
    if (++depth_ > kMaxDepth)
      lexer_.fail(offset, "expected at most " + std::to_string(kMaxDepth) + " nested parentheses");
    Formula result = read_factor();
    --depth_;
    return result;
  }

  Lexer& lexer_;

 private:
  static constexpr size_t kMaxDepth = 100;

  Formula read_factor() {
    if (!lexer_.accept("(")) return static_cast<Derived&>(*this).inner();
    Formula result = sum();
    lexer_.expect(")");
    return result;
  }

  Formula product() {
    Formula result = factor();
    for (;;) {
      if (lexer_.accept("*")) {
        result = result * factor();
        continue;
      }
      if constexpr (Derived::kDivides) {
        if (lexer_.accept("/")) {
          result = result / factor();
          continue;
        }
      }
      return result;
    }
  }

  size_t depth_ = 0;
};

}  // namespace composit
