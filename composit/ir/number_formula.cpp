#include "composit/ir/number_formula.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <utility>

#include "composit/ir/error.h"
#include "composit/ir/formula_reader.h"

namespace composit {

namespace {

using NumberKind = NumberFormula::Kind;

size_t arity(NumberKind kind) {
  if (kind <= NumberKind::named) return 0;
  return kind <= NumberKind::root ? 1 : 2;
}

double apply(NumberKind kind, double a, double b) {
  switch (kind) {
    case NumberKind::negate:
      return -a;
    case NumberKind::single:
      return static_cast<double>(static_cast<float>(a));
    case NumberKind::root:
      return std::sqrt(a);
    case NumberKind::add:
      return a + b;
    case NumberKind::subtract:
      return a - b;
    case NumberKind::multiply:
      return a * b;
    case NumberKind::divide:
      return a / b;
    case NumberKind::power:
      return std::pow(a, b);
    default:
      throw InternalError("a leaf is no function", __FILE__, __LINE__);
  }
}

// How tightly a formula binds in text: sums, products, all else.
int strength(const NumberFormula& formula) {
  switch (formula.kind()) {
    case NumberKind::add:
    case NumberKind::subtract:
      return 0;
    case NumberKind::multiply:
    case NumberKind::divide:
      return 1;
    case NumberKind::constant:
      return std::signbit(formula.constant()) ? 0 : 2;
    default:
      return 2;
  }
}

std::string_view sign_of(NumberKind kind) {
  switch (kind) {
    case NumberKind::add:
      return " + ";
    case NumberKind::subtract:
      return " - ";
    case NumberKind::multiply:
      return " * ";
    default:
      return " / ";
  }
}

void append(std::string& text, const NumberFormula& formula, int least) {
  const bool bracket = strength(formula) < least;
  if (bracket) text += '(';
  const auto call = [&](std::string_view word) {
    text.append(word).append("(");
    for (size_t i = 0; i < formula.arguments().size(); ++i) {
      if (i > 0) text += ", ";
      append(text, formula.arguments()[i], 0);
    }
    text += ')';
  };
  switch (formula.kind()) {
    case NumberKind::constant:
      append_float(text, formula.constant());
      break;
    case NumberKind::named:
      text += formula.name();
      break;
    case NumberKind::negate:  // "-lr" would be a word
      call("-");
      break;
    case NumberKind::single:
      call("float");
      break;
    case NumberKind::root:
      call("sqrt");
      break;
    case NumberKind::power:
      call("pow");
      break;
    default: {
      const int own = strength(formula);
      append(text, formula.arguments()[0], own);
      text.append(sign_of(formula.kind()));
      append(text, formula.arguments()[1], own + 1);
    }
  }
  if (bracket) text += ')';
}

class NumberReader : public FormulaReader<NumberReader, NumberFormula> {
 public:
  using FormulaReader::FormulaReader;
  static constexpr bool kDivides = true;

  NumberFormula inner() {
    if (lexer_.accept("-")) return -factor();
    const Token token = lexer_.peek();
    if (token.kind != TokenKind::number && token.kind != TokenKind::word)
      lexer_.fail_expected("a number, its name, or a function of numbers");
    lexer_.take();
    if (token.kind == TokenKind::word && lexer_.accept("(")) return function(token);
    if (const auto number = parse_float(token.text)) return *number;
    if (token.kind == TokenKind::number || !is_word(token.text))
      lexer_.fail(token.offset, "expected a number or its name");
    return NumberFormula::named(std::string(token.text));
  }

 private:
  NumberFormula function(const Token& word) {
    NumberFormula first = sum();
    if (word.text == "pow") {
      lexer_.expect(",");
      NumberFormula second = sum();
      lexer_.expect(")");
      return pow(std::move(first), std::move(second));
    }
    const bool is_single = word.text == "float";
    if (!is_single && word.text != "sqrt")
      lexer_.fail(word.offset, "expected 'pow', 'sqrt' or 'float'");
    lexer_.expect(")");
    return NumberFormula::call(is_single ? NumberKind::single : NumberKind::root,
                               {std::move(first)});
  }
};

}  // namespace

struct NumberFormula::Part {
  Kind kind = Kind::constant;
  double number = 0;
  std::string name = {};
  std::vector<NumberFormula> arguments = {};
};

NumberFormula::NumberFormula(double constant)
    : part_(std::make_shared<const Part>(Part{.number = constant})) {}

NumberFormula NumberFormula::named(std::string name) {
  return NumberFormula(
      std::make_shared<const Part>(Part{.kind = Kind::named, .name = std::move(name)}));
}

NumberFormula NumberFormula::call(Kind function, std::vector<NumberFormula> arguments) {
  COMPOSIT_ASSERT(arity(function) > 0 && arity(function) == arguments.size(),
                  "a function of another number of arguments");
  return NumberFormula(
      std::make_shared<const Part>(Part{.kind = function, .arguments = std::move(arguments)}));
}

NumberFormula::Kind NumberFormula::kind() const { return part_->kind; }
double NumberFormula::constant() const { return part_->number; }
const std::string& NumberFormula::name() const { return part_->name; }
const std::vector<NumberFormula>& NumberFormula::arguments() const { return part_->arguments; }

double NumberFormula::evaluate(const NumberOf& number_of) const {
  if (kind() == Kind::constant) return constant();
  if (kind() == Kind::named) return number_of(name());
  const double first = arguments()[0].evaluate(number_of);
  return apply(kind(), first, arguments().size() > 1 ? arguments()[1].evaluate(number_of) : 0);
}

void NumberFormula::for_each_name(const std::function<void(const std::string&)>& visit) const {
  if (kind() == Kind::named) visit(name());
  for (const NumberFormula& argument : arguments()) argument.for_each_name(visit);
}

Hash NumberFormula::hash() const {
  Hasher hasher;
  hasher.add(static_cast<uint64_t>(kind()));
  hasher.add(std::bit_cast<uint64_t>(constant()));
  hasher.add(name());
  for (const NumberFormula& argument : arguments()) hasher.add(argument.hash());
  return hasher.finish();
}

NumberFormula operator-(NumberFormula argument) {
  return NumberFormula::call(NumberKind::negate, {std::move(argument)});
}
NumberFormula operator+(NumberFormula left, NumberFormula right) {
  return NumberFormula::call(NumberKind::add, {std::move(left), std::move(right)});
}
NumberFormula operator-(NumberFormula left, NumberFormula right) {
  return NumberFormula::call(NumberKind::subtract, {std::move(left), std::move(right)});
}
NumberFormula operator*(NumberFormula left, NumberFormula right) {
  return NumberFormula::call(NumberKind::multiply, {std::move(left), std::move(right)});
}
NumberFormula operator/(NumberFormula left, NumberFormula right) {
  return NumberFormula::call(NumberKind::divide, {std::move(left), std::move(right)});
}
NumberFormula pow(NumberFormula base, NumberFormula exponent) {
  return NumberFormula::call(NumberKind::power, {std::move(base), std::move(exponent)});
}
NumberFormula sqrt(NumberFormula argument) {
  return NumberFormula::call(NumberKind::root, {std::move(argument)});
}

NumberFormula in_single(const NumberFormula& formula) {
  if (formula.kind() == NumberKind::named) return formula;
  if (formula.kind() == NumberKind::single) return in_single(formula.arguments()[0]);
  if (formula.kind() == NumberKind::constant)
    return static_cast<double>(static_cast<float>(formula.constant()));
  std::vector<NumberFormula> arguments;
  for (const NumberFormula& argument : formula.arguments())
    arguments.push_back(in_single(argument));
  const NumberFormula whole = NumberFormula::call(formula.kind(), std::move(arguments));
  const bool is_exact = formula.kind() == NumberKind::negate;
  return is_exact ? whole : NumberFormula::call(NumberKind::single, {whole});
}

NumberFormula substitute(const NumberFormula& formula, const std::string& name,
                         const NumberFormula& number) {
  if (formula.kind() == NumberKind::named) return formula.name() == name ? number : formula;
  if (formula.arguments().empty()) return formula;
  std::vector<NumberFormula> arguments;
  for (const NumberFormula& argument : formula.arguments())
    arguments.push_back(substitute(argument, name, number));
  return NumberFormula::call(formula.kind(), std::move(arguments));
}

std::string number_name(std::string_view text) {
  std::string name;
  for (const char c : text) name += is_word_char(c) ? c : '_';
  if (name.empty() || !is_word_start(name[0])) name.insert(0, 1, '_');
  return name;
}

NumberKey::NumberKey(std::string_view key) : name(key.substr(0, key.find('['))) {
  if (name.size() == key.size()) return;
  size_t index = 0;
  std::from_chars(key.data() + name.size() + 1, key.data() + key.size(), index);
  element = index;
}
std::string print(const NumberKey& key) {
  return key.element ? key.name + "[" + std::to_string(*key.element) + "]" : key.name;
}

std::string print(const NumberFormula& formula) {
  std::string text;
  append(text, formula, 0);
  return text;
}

NumberFormula read_number_formula(Lexer& lexer) { return NumberReader(lexer).sum(); }

}  // namespace composit
