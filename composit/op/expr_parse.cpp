#include "composit/op/expr_parse.h"

#include <array>

#include "composit/ir/error.h"
#include "composit/op/loops_text.h"
#include "composit/op/promotion.h"

namespace composit {
namespace {

// Parentheses within parentheses; printed text has fewer.
constexpr size_t kMaxDepth = 200;

// Nothing where no function is written so between two arguments.
std::optional<Function> infix_function(const Token& token) {
  if (token.kind != TokenKind::symbol) return std::nullopt;
  for (size_t i = 0; i < static_cast<size_t>(Function::count_); ++i) {
    const auto function = static_cast<Function>(i);
    const FunctionInfo& info = info_of(function);
    if (info.arity == 2 && info.op == token.text) return function;
  }
  return std::nullopt;
}

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }
std::string count_of(size_t count, const char* one, const char* many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

}  // namespace

// ---- scope --------------------------------------------------------------------------------------

bool Scope::define(std::string_view name, Meaning meaning) {
  const bool added = names_.emplace(name, std::move(meaning)).second;
  if (added) order_.push_back(name);
  return added;
}

Meaning* Scope::find(std::string_view name) {
  const auto found = names_.find(name);
  return found == names_.end() ? nullptr : &found->second;
}

void Scope::shrink(size_t size) {
  for (; order_.size() > size; order_.pop_back()) names_.erase(order_.back());
}

// ---- expressions --------------------------------------------------------------------------------

class ExprParser::Nested {
 public:
  explicit Nested(ExprParser& parser) : parser_(parser) {
    if (++parser_.depth_ <= kMaxDepth) return;
    const size_t offset = parser_.lexer_.peek().offset;
    --parser_.depth_;
    parser_.lexer_.fail(offset, "expected at most " + std::to_string(kMaxDepth) +
                                    " expressions within each other; 'let' gives parts a name");
  }
  ~Nested() { --parser_.depth_; }
  Nested(const Nested&) = delete;

 private:
  ExprParser& parser_;
};

Expr ExprParser::expression() {
  const Nested nested(*this);
  Expr x = operators(kLowestOperator);
  const size_t offset = lexer_.peek().offset;
  if (!lexer_.accept("?")) return x;
  Expr then = expression();
  lexer_.expect(":");
  Expr otherwise = expression();
  return make(offset, Function::select, {std::move(x), std::move(then), std::move(otherwise)});
}

// Operators that bind at least as close as `lowest`; the left one of two equal ones first.
Expr ExprParser::operators(int lowest) {
  Expr x = operand();
  for (;;) {
    const auto function = infix_function(lexer_.peek());
    if (!function || info_of(*function).precedence < lowest) return x;
    const size_t offset = lexer_.take().offset;
    Expr y = operators(info_of(*function).precedence + 1);
    x = make(offset, *function, {std::move(x), std::move(y)});
  }
}

Expr ExprParser::operand() {
  if (lexer_.peek().kind == TokenKind::number) return literal("");
  if (lexer_.peek().kind == TokenKind::word) return word();
  const Nested nested(*this);
  const size_t offset = lexer_.peek().offset;
  if (lexer_.accept("-")) return minus();
  if (lexer_.accept("!")) return make(offset, Function::logical_not, {operand()});
  if (!lexer_.accept("(")) lexer_.fail_expected("an expression");
  Expr x = expression();
  lexer_.expect(")");
  return x;
}

// Reads what follows "-"; a negative number is a literal.
Expr ExprParser::minus() {
  if (at_number()) return literal("-");
  const size_t offset = lexer_.peek().offset;
  return make(offset, Function::neg, {operand()});
}

bool ExprParser::at_number() const {
  return lexer_.peek().kind == TokenKind::number || lexer_.at("inf") || lexer_.at("nan");
}

Expr ExprParser::literal(std::string_view sign) {
  const Token token = lexer_.take();
  const std::string text = std::string(sign) + std::string(token.text);
  if (token.kind == TokenKind::number && !looks_like_float(text)) {
    if (const auto integer = parse_int(text)) return *integer;
    lexer_.fail(token.offset, "expected an integer of 64 bits, received " + quoted(text));
  }
  if (const auto real = parse_float(text)) return *real;
  lexer_.fail(token.offset, "expected a number, received " + quoted(text));
}

Expr ExprParser::word() {
  if (at_number()) return literal("");
  if (lexer_.accept("true")) return true;
  if (lexer_.accept("false")) return false;
  const Token token = lexer_.take();
  return lexer_.at("(") ? call(token) : name(token);
}

Expr ExprParser::name(const Token& token) {
  const Meaning* meaning = scope_.find(token.text);
  if (meaning == nullptr)
    lexer_.fail(token.offset, "expected a name defined before, received " + quoted(token.text));
  if (meaning->value.defined()) return meaning->value;
  if (meaning->operand == nullptr)
    lexer_.fail(token.offset, "expected a value, received the result " + quoted(token.text));
  const Type& type = *meaning->operand;
  const size_t number = meaning->number;
  return Expr::load(number, type.dtype, indices(type.rank(), token.text));
}

std::vector<Expr> ExprParser::indices(size_t count, std::string_view of) {
  const Nested nested(*this);
  const size_t offset = lexer_.peek().offset;
  lexer_.expect("[");
  std::vector<Expr> indices = arguments("]");
  if (indices.size() != count)
    lexer_.fail(offset, "expected " + count_of(count, "index", "indices") + " of " + quoted(of) +
                            ", received " + std::to_string(indices.size()));
  for (Expr& index : indices) {
    if (category(index.dtype()) > DTypeCategory::integer || index.dtype() == DType::bool_)
      lexer_.fail(offset, "expected integers as indices of " + quoted(of) + ", received one of " +
                              std::string(composit::name(index.dtype())));
    index = with_dtype(std::move(index), DType::int64);
  }
  return indices;
}

std::vector<Expr> ExprParser::arguments(std::string_view end) {
  std::vector<Expr> arguments;
  while (!lexer_.accept(end)) {
    arguments.push_back(expression());
    if (!lexer_.at(end) && !lexer_.accept(",")) lexer_.fail_expected("',' or " + quoted(end));
  }
  return arguments;
}

// ---- functions ----------------------------------------------------------------------------------

DType ExprParser::dtype(const Token& token) const {
  const auto dtype = dtype_from_name(token.text);
  if (dtype && is_computable(*dtype)) return *dtype;
  lexer_.fail(token.offset, "expected a dtype, received " + quoted(token.text));
}

Expr ExprParser::call(const Token& function) {
  const Nested nested(*this);
  const auto as_dtype = dtype_from_name(function.text);
  const auto known = function_from_name(function.text);
  if (!as_dtype && (!known || *known == Function::cast))
    lexer_.fail(function.offset, "expected a function, received " + quoted(function.text));
  lexer_.expect("(");
  std::vector<Expr> all = arguments(")");
  if (as_dtype && is_complex(*as_dtype) && all.size() == 2)
    return cast(make(function.offset, Function::complex, std::move(all)), dtype(function));
  const size_t arity = as_dtype ? 1 : info_of(*known).arity;
  if (all.size() != arity)
    lexer_.fail(function.offset, "expected " + count_of(arity, "argument", "arguments") + " of " +
                                     quoted(function.text) + ", received " +
                                     std::to_string(all.size()));
  return as_dtype ? cast(std::move(all[0]), dtype(function))
                  : make(function.offset, *known, std::move(all));
}

Expr ExprParser::make(size_t offset, Function function, std::vector<Expr> arguments) {
  try {
    return Expr::call(function, std::move(arguments));
  } catch (const UserError& error) {
    lexer_.fail(offset, error.what());
  }
}

}  // namespace composit
