// Grammar of loops. White space separates, '#' begins a comment.
//
//   loops     = "loops" "(" [ tensors ] ")" "->" "(" [ tensors ] ")" "{" { statement } "}"
//   tensors   = name ":" ( "none" | dtype "[" [ integer { "," integer } ] "]" ) { "," tensors }
//   statement = [ "for" axes ] "{" { let | var } scanned "}"
//   scanned   = "scan" axes "{" reduced "}" | reduced
//   reduced   = ( "reduce" axes "{" point "}" | point ) { let | store }
//   axes      = name "<" integer { "," name "<" integer }; a name of SizeNames is an integer
//   point     = { let | "where" expr | "new" name "=" expr | combine }
//   combine   = name { "," name } "=" expr { "," expr } | name "+=" expr
//   var       = "var" name ":" dtype "=" expr
//   let       = "let" name "=" expr
//   store     = name "[" [ expr { "," expr } ] "]" ( "=" | "+=" ) expr
//
//   * `for`, `scan` and `reduce` have the parallel, scan and reduction axes. `where` is the domain.
//   * `var` is an accumulator with its initial value. `new` is what a point adds to it: the first
//     belongs to the first. Where accumulators are assigned to, all at once, their names stand for
//     what they were before. `s += x` is short for `new v = x` and `s = s + v`.
//   * `let` gives a name to an expression, which is evaluated where the name is used.
//   * A literal takes the dtype of what it is assigned to, or combined with.
//
//   expr      = or [ "?" expr ":" expr ]
//   or        and below: C++'s operators || && | ^ & == != < <= > >= << >> + - * /, with C++'s
//             precedence, and - ! before an operand; `/` is the true division
//   operand   = number | "true" | "false" | "inf" | "nan" | name | name "[" indices "]"
//             | function "(" arguments ")" | dtype "(" expr [ "," expr ] ")" | "(" expr ")"
//
//   * `float32(x)` is a cast, and a literal of that dtype where x is one. `complex64(x, y)` is
//     `complex64(complex(x, y))`.
//   * Floats read back bit for bit; 0x7ff8000000000001 is the one with these bits.
//
// Whatever the text, the result is sound (fault_of) or a UserError. Time and memory are linear in
// the text.
#include <algorithm>

#include "composit/ir/error.h"
#include "composit/ir/verify.h"
#include "composit/op/expr_parse.h"
#include "composit/op/loops.h"
#include "composit/op/loops_text.h"
#include "composit/op/promotion.h"

namespace composit {
namespace {

class LoopsParser {
 public:
  LoopsParser(std::string_view text, SizeNames& sizes)
      : lexer_(text, "loops", 1, LexerStyle::expression),
        expressions_(lexer_, scope_),
        sizes_(sizes) {}

  Loops run();

 private:
  std::vector<Type> tensors(std::vector<std::string_view>& names,
                            std::vector<SizeNames::Which>& named);
  Type type(SizeNames::Which& named);
  void statement();
  void axes(AxisKind kind);
  void variables();
  void reduced();
  void points();
  void new_value();
  void combination();
  size_t uncombined();
  void sum(size_t number);
  void become(size_t number, Expr combined);
  void check_combined() const;
  void stores();
  void store(size_t result);

  void let();
  Token new_name(std::string_view expected);
  void define(const Token& name, Meaning meaning);
  // That the next token names; nullptr: none.
  const Meaning* accumulator();
  // A number, or the name of one, which goes to the end of `named`.
  int64_t integer(std::string_view expected, SizeNames::Which& named);
  Expr assigned(DType dtype);

  Lexer lexer_;
  Scope scope_;
  ExprParser expressions_;
  Loops loops_;
  Statement statement_;                      // that is being read
  std::vector<std::string_view> variables_;  // its accumulators
  std::vector<DType> dtypes_;                // theirs
  SizeNames& sizes_;
};

Loops LoopsParser::run() {
  std::vector<std::string_view> operands, results;
  for (size_t i = 0; i < sizes_.names.size(); ++i)
    scope_.define(sizes_.names[i], {.value = Expr::parameter(i, DType::int64)});
  lexer_.expect("loops");
  loops_.operands = tensors(operands, sizes_.operands);
  lexer_.expect("->");
  loops_.results = tensors(results, sizes_.results);
  for (size_t i = 0; i < operands.size(); ++i)
    scope_.find(operands[i])->operand = &loops_.operands[i];
  for (size_t i = 0; i < results.size(); ++i) scope_.find(results[i])->result = true;
  lexer_.expect("{");
  while (!lexer_.accept("}")) statement();
  if (lexer_.peek().kind != TokenKind::end) lexer_.fail_expected("the end of the text");
  return std::move(loops_);
}

// ---- tensors ------------------------------------------------------------------------------------

std::vector<Type> LoopsParser::tensors(std::vector<std::string_view>& names,
                                       std::vector<SizeNames::Which>& named) {
  std::vector<Type> types;
  lexer_.expect("(");
  while (!lexer_.accept(")")) {
    const Token name = new_name("the name of a tensor or ')'");
    define(name, {.number = types.size()});
    names.push_back(name.text);
    lexer_.expect(":");
    types.push_back(type(named.emplace_back()));
    if (!lexer_.at(")") && !lexer_.accept(",")) lexer_.fail_expected("',' or ')'");
  }
  return types;
}

Type LoopsParser::type(SizeNames::Which& named) {
  const Token word = lexer_.take(TokenKind::word, "a dtype");
  if (word.text == "none") return undefined_type();
  const DType dtype = expressions_.dtype(word);
  Dims sizes;
  lexer_.expect("[");
  while (!lexer_.accept("]")) {
    sizes.push_back(integer("a size or ']'", named));
    if (!lexer_.at("]") && !lexer_.accept(",")) lexer_.fail_expected("',' or ']'");
  }
  Type type = tensor_type(dtype, std::move(sizes));
  if (const auto fault = fault_of(type)) lexer_.fail(word.offset, *fault);
  return type;
}

int64_t LoopsParser::integer(std::string_view expected, SizeNames::Which& named) {
  named.emplace_back();
  for (size_t i = 0; i < sizes_.names.size(); ++i) {
    if (!lexer_.accept(sizes_.names[i])) continue;
    named.back() = i;
    return sizes_.numbers.at(i);
  }
  const Token token = lexer_.take(TokenKind::number, expected);
  if (const auto value = parse_int(token.text)) return *value;
  lexer_.fail(token.offset,
              "expected an integer of 64 bits, received '" + std::string(token.text) + "'");
}

// ---- names --------------------------------------------------------------------------------------

Token LoopsParser::new_name(std::string_view expected) {
  if (is_loop_word(lexer_.peek().text)) lexer_.fail_expected(expected);
  return lexer_.take(TokenKind::word, expected);
}

void LoopsParser::define(const Token& name, Meaning meaning) {
  if (!scope_.define(name.text, std::move(meaning)))
    lexer_.fail(name.offset, "expected a new name, received '" + std::string(name.text) +
                                 "', which is defined before");
}

void LoopsParser::let() {
  const Token name = new_name("a name");
  lexer_.expect("=");
  Expr value = expressions_.read();
  define(name, {.value = std::move(value)});
}

// Reads the expression that is assigned to a value of `dtype`.
Expr LoopsParser::assigned(DType dtype) {
  const size_t offset = lexer_.peek().offset;
  Expr x = expressions_.read();
  const bool fits = x.weak() ? category(x.dtype()) <= category(dtype) : x.dtype() == dtype;
  if (!fits)
    lexer_.fail(offset, "expected a value of " + std::string(name(dtype)) + ", received one of " +
                            std::string(name(x.dtype())));
  return with_dtype(std::move(x), dtype);
}

// ---- statements ---------------------------------------------------------------------------------

void LoopsParser::statement() {
  const size_t offset = lexer_.peek().offset, outside = scope_.size();
  statement_ = {};
  sizes_.axes.emplace_back();
  variables_.clear();
  dtypes_.clear();
  if (lexer_.accept("for"))
    axes(AxisKind::parallel);
  else if (!lexer_.at("{"))
    lexer_.fail_expected("'for', '{' or '}'");
  lexer_.expect("{");
  variables();
  if (lexer_.accept("scan")) {
    axes(AxisKind::scan);
    lexer_.expect("{");
    reduced();
    lexer_.expect("}");
  } else {
    reduced();
  }
  lexer_.expect("}");
  if (const auto fault = fault_of(loops_, with_numbers(statement_, sizes_.numbers)))
    lexer_.fail(offset, *fault);
  loops_.statements.push_back(std::move(statement_));
  scope_.shrink(outside);
}

void LoopsParser::axes(AxisKind kind) {
  do {
    const Token name = new_name("the name of an axis");
    define(name, {.value = Expr::axis(statement_.axes.size())});
    lexer_.expect("<");
    statement_.axes.push_back(
        {std::string(name.text), integer("an extent", sizes_.axes.back()), kind});
  } while (lexer_.accept(","));
}

void LoopsParser::variables() {
  for (;;) {
    if (lexer_.accept("let")) {
      let();
      continue;
    }
    if (!lexer_.accept("var")) break;
    const Token name = new_name("a name");
    lexer_.expect(":");
    const DType dtype = expressions_.dtype(lexer_.take(TokenKind::word, "a dtype"));
    lexer_.expect("=");
    const size_t number = statement_.init.size();
    statement_.init.push_back(assigned(dtype));
    define(name, {.value = Expr::left(number, dtype), .number = number, .accumulator = true});
    variables_.push_back(name.text);
    dtypes_.push_back(dtype);
  }
  statement_.combine.resize(statement_.init.size());
}

void LoopsParser::reduced() {
  const size_t outside = scope_.size();
  if (lexer_.accept("reduce")) {
    axes(AxisKind::reduction);
    lexer_.expect("{");
    points();
    check_combined();
    lexer_.expect("}");
    scope_.shrink(outside);
  } else {
    points();
    check_combined();
  }
  stores();
}

// ---- points -------------------------------------------------------------------------------------

void LoopsParser::points() {
  for (;;) {
    const size_t offset = lexer_.peek().offset;
    if (lexer_.accept("let")) {
      let();
    } else if (lexer_.accept("where")) {
      if (statement_.domain.defined()) lexer_.fail(offset, "expected one 'where'");
      statement_.domain = assigned(DType::bool_);
    } else if (lexer_.accept("new")) {
      new_value();
    } else if (accumulator() != nullptr) {
      combination();
    } else {
      return;
    }
  }
}

const Meaning* LoopsParser::accumulator() {
  const Meaning* meaning = scope_.find(lexer_.peek().text);
  return meaning != nullptr && meaning->accumulator ? meaning : nullptr;
}

void LoopsParser::new_value() {
  const size_t number = statement_.body.size();
  if (number >= dtypes_.size())
    lexer_.fail_expected("no more than " + std::to_string(dtypes_.size()) +
                         " 'new', as many as 'var'");
  const Token name = new_name("a name");
  lexer_.expect("=");
  statement_.body.push_back(assigned(dtypes_[number]));
  define(name, {.value = Expr::right(number, dtypes_[number])});
}

// Reads how one accumulator, or several at once, are combined. Their names stand for the values
// they had before.
void LoopsParser::combination() {
  std::vector<size_t> numbers;
  do numbers.push_back(uncombined());
  while (lexer_.accept(","));
  if (numbers.size() == 1 && lexer_.accept("+=")) return sum(numbers[0]);
  lexer_.expect("=");
  std::vector<Expr> values;
  for (size_t number : numbers) {
    if (!values.empty()) lexer_.expect(",");
    values.push_back(assigned(dtypes_[number]));
  }
  for (size_t i = 0; i < numbers.size(); ++i) become(numbers[i], std::move(values[i]));
}

// The number of the accumulator whose name comes next.
size_t LoopsParser::uncombined() {
  const Meaning* meaning = accumulator();
  if (meaning == nullptr) lexer_.fail_expected("the name of a 'var'");
  if (statement_.combine[meaning->number].defined())
    lexer_.fail_expected("each 'var' to become something once");
  lexer_.take();
  return meaning->number;
}

void LoopsParser::sum(size_t number) {
  const size_t offset = lexer_.peek().offset;
  if (number != statement_.body.size())
    lexer_.fail(offset, "expected 'new' and '+=' in the order of 'var'");
  const DType dtype = dtypes_[number];
  statement_.body.push_back(assigned(dtype));
  become(number, Expr::left(number, dtype) + Expr::right(number, dtype));
}

void LoopsParser::become(size_t number, Expr combined) {
  statement_.combine[number] = std::move(combined);
  scope_.find(variables_[number])->value = Expr::accumulator(number, dtypes_[number]);
}

void LoopsParser::check_combined() const {
  const auto& combine = statement_.combine;
  const auto missing = std::find_if(combine.begin(), combine.end(),
                                    [](const Expr& each) { return !each.defined(); });
  if (missing == combine.end() && statement_.body.size() == combine.size()) return;
  const auto number = missing == combine.end() ? statement_.body.size()
                                               : static_cast<size_t>(missing - combine.begin());
  lexer_.fail_expected((missing == combine.end() ? "'new' for '" : "what becomes of '") +
                       std::string(variables_[number]) + "'");
}

// ---- stores -------------------------------------------------------------------------------------

void LoopsParser::stores() {
  for (;;) {
    if (lexer_.accept("let")) {
      let();
      continue;
    }
    const Meaning* meaning = scope_.find(lexer_.peek().text);
    if (meaning == nullptr || !meaning->result) return;
    store(meaning->number);
  }
}

void LoopsParser::store(size_t result) {
  const Token name = lexer_.take();
  const Type& type = loops_.results[result];
  Store store;
  store.result = result;
  store.at = expressions_.indices(type.rank(), name.text);
  store.add = lexer_.accept("+=");
  if (!store.add) lexer_.expect("=");
  store.value = expressions_.read();
  if (store.value.kind() == ExprKind::literal) store.value = cast(store.value, type.dtype);
  statement_.stores.push_back(std::move(store));
}

}  // namespace

Loops parse_loops(std::string_view text, SizeNames& sizes) {
  return LoopsParser(text, sizes).run();
}
Loops parse_loops(std::string_view text) {
  SizeNames none;
  return parse_loops(text, none);
}

}  // namespace composit
