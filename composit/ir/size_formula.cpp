#include "composit/ir/size_formula.h"

#include <algorithm>
#include <array>
#include <utility>

#include "composit/ir/error.h"
#include "composit/ir/formula_reader.h"
#include "composit/ir/print.h"

namespace composit {

using Kind = SizeFormula::Kind;

struct SizeFormula::Part {
  Kind kind = Kind::constant;
  int64_t number = 0;  // the constant, or the axis
  LazyTensor tensor = {};
  std::vector<SizeFormula> arguments = {};
};

namespace {

constexpr std::array<std::pair<std::string_view, Kind>, 6> kFunctions = {
    {{"div", Kind::div},
     {"ceil_div", Kind::ceil_div},
     {"exact_div", Kind::exact_div},
     {"mod", Kind::mod},
     {"min", Kind::min},
     {"max", Kind::max}}};

std::string_view word_of(Kind kind) {
  for (const auto& [word, function] : kFunctions)
    if (function == kind) return word;
  return {};
}

[[noreturn]] void too_large() {
  throw UserError("[size formula] expected a number of 64 bits, received a larger one");
}

int64_t floor_quotient(int64_t a, int64_t b) {
  if (b == 0) throw UserError("[size formula] expected a divisor other than 0");
  if (b == -1) {
    int64_t negative = 0;
    if (__builtin_sub_overflow(int64_t{0}, a, &negative)) too_large();
    return negative;
  }
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

int64_t remainder(int64_t a, int64_t b) {
  const int64_t quotient = floor_quotient(a, b);
  return b == -1 ? 0 : a - quotient * b;
}

int64_t apply(Kind kind, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (kind) {
    case Kind::add:
      if (__builtin_add_overflow(a, b, &result)) too_large();
      return result;
    case Kind::subtract:
      if (__builtin_sub_overflow(a, b, &result)) too_large();
      return result;
    case Kind::multiply:
      if (__builtin_mul_overflow(a, b, &result)) too_large();
      return result;
    case Kind::div:
      return floor_quotient(a, b);
    case Kind::ceil_div:
      result = floor_quotient(a, b);
      return remainder(a, b) == 0 ? result : result + 1;
    case Kind::exact_div:
      result = floor_quotient(a, b);
      if (remainder(a, b) != 0)
        throw UserError("[size formula] expected a multiple of " + std::to_string(b) +
                        ", received " + std::to_string(a));
      return result;
    case Kind::mod:
      return remainder(a, b);
    case Kind::min:
      return std::min(a, b);
    case Kind::max:
      return std::max(a, b);
    default:
      throw InternalError("a leaf is no function", __FILE__, __LINE__);
  }
}

// How tightly a formula binds in text: sums, products, all else.
int strength(const SizeFormula& formula) {
  switch (formula.kind()) {
    case Kind::add:
    case Kind::subtract:
      return 0;
    case Kind::multiply:
      return 1;
    case Kind::constant:
      return formula.constant() < 0 ? 0 : 2;
    default:
      return 2;
  }
}

void append(std::string& text, const SizeFormula& formula, const Names& names, int least) {
  const bool bracket = strength(formula) < least;
  if (bracket) text += '(';
  const auto between = [&](std::string_view sign, int right) {
    append(text, formula.left(), names, right - 1);
    text.append(sign);
    append(text, formula.right(), names, right);
  };
  switch (formula.kind()) {
    case Kind::constant:
      append_int(text, formula.constant());
      break;
    case Kind::size:
      text += "size(" + names.of(formula.tensor()) + ", " + std::to_string(formula.axis()) + ")";
      break;
    case Kind::add:
      between(" + ", 1);
      break;
    case Kind::subtract:
      between(" - ", 1);
      break;
    case Kind::multiply:
      between(" * ", 2);
      break;
    default:
      text.append(word_of(formula.kind())).append("(");
      append(text, formula.left(), names, 0);
      text += ", ";
      append(text, formula.right(), names, 0);
      text += ')';
  }
  if (bracket) text += ')';
}

class SizeReader : public FormulaReader<SizeReader, SizeFormula> {
 public:
  SizeReader(Lexer& lexer, const std::function<LazyTensor(std::string_view)>& find)
      : FormulaReader(lexer), find_(find) {}
  static constexpr bool kDivides = false;

  SizeFormula inner() {
    if (lexer_.peek().kind == TokenKind::number) return integer();
    if (lexer_.accept("size")) return size();
    for (const auto& [word, function] : kFunctions) {
      if (!lexer_.accept(word)) continue;
      lexer_.expect("(");
      SizeFormula left = sum();
      lexer_.expect(",");
      SizeFormula right = sum();
      lexer_.expect(")");
      return SizeFormula::call(function, std::move(left), std::move(right));
    }
    lexer_.fail_expected("an integer, a size or a function of sizes");
  }

 private:
  int64_t integer() {
    const Token token = lexer_.take(TokenKind::number, "an integer");
    const auto value = parse_int(token.text);
    if (!value) lexer_.fail(token.offset, "expected an integer of 64 bits");
    return *value;
  }

  SizeFormula size() {
    lexer_.expect("(");
    const Token name = lexer_.take(TokenKind::name, "a tensor");
    const LazyTensor tensor = find_(name.text);
    if (!tensor)
      lexer_.fail(name.offset,
                  "expected a name defined before, received '%" + std::string(name.text) + "'");
    lexer_.expect(",");
    const size_t offset = lexer_.peek().offset;
    const int64_t axis = integer();
    if (axis < 0 || axis >= tensor.rank())
      lexer_.fail(offset, "expected an axis below " + std::to_string(tensor.rank()) +
                              ", received " + std::to_string(axis));
    lexer_.expect(")");
    return SizeFormula::size(tensor, static_cast<size_t>(axis));
  }

  const std::function<LazyTensor(std::string_view)>& find_;
};

}  // namespace

SizeFormula::SizeFormula(int64_t constant)
    : part_(std::make_shared<const Part>(Part{.number = constant})) {}

SizeFormula SizeFormula::size(LazyTensor tensor, size_t axis) {
  COMPOSIT_ASSERT(tensor.defined(), "a size formula reads an absent tensor");
  return SizeFormula(std::make_shared<const Part>(
      Part{.kind = Kind::size, .number = static_cast<int64_t>(axis), .tensor = std::move(tensor)}));
}

SizeFormula SizeFormula::call(Kind function, SizeFormula left, SizeFormula right) {
  COMPOSIT_ASSERT(function > Kind::size, "a leaf is no function");
  return SizeFormula(std::make_shared<const Part>(
      Part{.kind = function, .arguments = {std::move(left), std::move(right)}}));
}

Kind SizeFormula::kind() const { return part_->kind; }
int64_t SizeFormula::constant() const { return part_->number; }
const LazyTensor& SizeFormula::tensor() const { return part_->tensor; }
size_t SizeFormula::axis() const { return static_cast<size_t>(part_->number); }
const SizeFormula& SizeFormula::left() const { return part_->arguments.at(0); }
const SizeFormula& SizeFormula::right() const { return part_->arguments.at(1); }

int64_t SizeFormula::evaluate(const SizeOf& size_of) const {
  switch (kind()) {
    case Kind::constant:
      return constant();
    case Kind::size:
      return size_of(tensor(), axis());
    default:
      return apply(kind(), left().evaluate(size_of), right().evaluate(size_of));
  }
}

void SizeFormula::for_each_size(
    const std::function<void(const LazyTensor&, size_t axis)>& visit) const {
  if (kind() == Kind::size) visit(tensor(), axis());
  for (const SizeFormula& argument : part_->arguments) argument.for_each_size(visit);
}

Hash SizeFormula::hash() const {
  Hasher hasher;
  hasher.add(static_cast<uint64_t>(kind()));
  hasher.add(static_cast<uint64_t>(part_->number));
  if (kind() == Kind::size) hasher.add(tensor().hash());
  for (const SizeFormula& argument : part_->arguments) hasher.add(argument.hash());
  return hasher.finish();
}

SizeFormula size_of(const LazyTensor& tensor, size_t axis) {
  return SizeFormula::size(tensor, axis);
}
SizeFormula operator+(SizeFormula left, SizeFormula right) {
  return SizeFormula::call(Kind::add, std::move(left), std::move(right));
}
SizeFormula operator-(SizeFormula left, SizeFormula right) {
  return SizeFormula::call(Kind::subtract, std::move(left), std::move(right));
}
SizeFormula operator*(SizeFormula left, SizeFormula right) {
  return SizeFormula::call(Kind::multiply, std::move(left), std::move(right));
}
SizeFormula div(SizeFormula left, SizeFormula right) {
  return SizeFormula::call(Kind::div, std::move(left), std::move(right));
}
SizeFormula ceil_div(SizeFormula left, SizeFormula right) {
  return SizeFormula::call(Kind::ceil_div, std::move(left), std::move(right));
}
SizeFormula exact_div(SizeFormula left, SizeFormula right) {
  return SizeFormula::call(Kind::exact_div, std::move(left), std::move(right));
}
SizeFormula mod(SizeFormula left, SizeFormula right) {
  return SizeFormula::call(Kind::mod, std::move(left), std::move(right));
}
SizeFormula min(SizeFormula left, SizeFormula right) {
  return SizeFormula::call(Kind::min, std::move(left), std::move(right));
}
SizeFormula max(SizeFormula left, SizeFormula right) {
  return SizeFormula::call(Kind::max, std::move(left), std::move(right));
}

std::string print(const SizeFormula& formula, const Names& names) {
  std::string text;
  append(text, formula, names, 0);
  return text;
}

SizeFormula read_formula(Lexer& lexer, const std::function<LazyTensor(std::string_view)>& find) {
  return SizeReader(lexer, find).sum();
}

bool at_formula(const Lexer& lexer) {
  if (lexer.at("size") || lexer.at("(")) return true;
  for (const auto& [word, function] : kFunctions)
    if (lexer.at(word)) return true;
  return false;
}

}  // namespace composit
