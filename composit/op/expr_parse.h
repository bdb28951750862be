// Reads expressions. For parsing loops.
//
//   Scope scope;   scope.define("i", {Expr::axis(0)});
//   Lexer lexer("i * 2 + 1", "text", 1, LexerStyle::expression);
//   Expr x = ExprParser(lexer, scope).read();
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "composit/ir/lexer.h"
#include "composit/ir/type.h"
#include "composit/op/expr.h"

namespace composit {

// The meaning of a name.
struct Meaning {
  Expr value = {};                // of a name that stands for one
  const Type* operand = nullptr;  // of an operand, which is `number`
  size_t number = 0;              // of an operand, a result or an accumulator
  bool result = false, accumulator = false;
};

class Scope {
 public:
  // False where the name is taken.
  bool define(std::string_view name, Meaning meaning);
  // nullptr: unknown.
  Meaning* find(std::string_view name);
  size_t size() const { return order_.size(); }
  // Forgets all names but the first `size`.
  void shrink(size_t size);

 private:
  std::unordered_map<std::string_view, Meaning> names_;
  std::vector<std::string_view> order_;
};

class ExprParser {
 public:
  ExprParser(Lexer& lexer, Scope& scope) : lexer_(lexer), scope_(scope) {}

  Expr read() { return expression(); }
  // Indices in brackets, `count` of them.
  std::vector<Expr> indices(size_t count, std::string_view of);
  // The dtype that `token` names; UserError for one without arithmetic.
  DType dtype(const Token& token) const;

 private:
  class Nested;

  Expr expression();
  Expr operators(int lowest);
  Expr operand();
  Expr minus();
  Expr word();
  Expr name(const Token& token);
  Expr call(const Token& function);
  std::vector<Expr> arguments(std::string_view end);
  Expr literal(std::string_view sign);
  bool at_number() const;
  // UserErrors get the place.
  Expr make(size_t offset, Function function, std::vector<Expr> arguments);

  Lexer& lexer_;
  Scope& scope_;
  size_t depth_ = 0;
};

}  // namespace composit
