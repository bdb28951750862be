#include "composit/interchange/pt2_read/sizes.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <vector>

#include "composit/interchange/pt2/format.h"
#include "composit/ir/error.h"
#include "composit/ir/literal.h"
#include "composit/ir/verify.h"

namespace composit::pt2_read {
namespace {

__extension__ typedef __int128 Wide;

constexpr int kDeepestExpression = 100;

// A fraction in lowest terms with a denominator above zero: expressions divide before they
// multiply.
struct Fraction {
  int64_t top = 0, bottom = 1;
};

[[noreturn]] void refuse_size(const std::string& what) {
  throw UserError("a size that is an expression: " + what);
}

int64_t narrow(Wide value) {
  if (value > INT64_MAX || value < INT64_MIN) refuse_size("a number of more than 64 bits");
  return static_cast<int64_t>(value);
}

Fraction fraction(Wide top, Wide bottom) {
  if (bottom == 0) refuse_size("a division by zero");
  if (bottom < 0) top = -top, bottom = -bottom;
  Wide a = top < 0 ? -top : top, b = bottom;
  while (b != 0) {
    const Wide rest = a % b;
    a = b, b = rest;
  }
  if (a == 0) a = 1;
  return {narrow(top / a), narrow(bottom / a)};
}

Fraction operator+(Fraction a, Fraction b) {
  return fraction(Wide(a.top) * b.bottom + Wide(b.top) * a.bottom, Wide(a.bottom) * b.bottom);
}
Fraction operator*(Fraction a, Fraction b) {
  return fraction(Wide(a.top) * b.top, Wide(a.bottom) * b.bottom);
}
bool is_less(Fraction a, Fraction b) { return Wide(a.top) * b.bottom < Wide(b.top) * a.bottom; }

int64_t floor_of(Fraction a) { return a.top / a.bottom - (a.top % a.bottom < 0 ? 1 : 0); }
int64_t ceil_of(Fraction a) { return a.top / a.bottom + (a.top % a.bottom > 0 ? 1 : 0); }
Fraction quotient(Fraction a, Fraction b) {
  return fraction(Wide(a.top) * b.bottom, Wide(a.bottom) * b.top);
}
Fraction minus(Fraction a) { return a * Fraction{-1}; }
// The remainder with the sign of the divisor, as Python's.
Fraction remainder(Fraction a, Fraction b) {
  return a + minus(Fraction{floor_of(quotient(a, b))} * b);
}

Fraction power(Fraction base, Fraction exponent) {
  constexpr int64_t kGreatest = 64;
  if (exponent.bottom != 1 || exponent.top > kGreatest || exponent.top < -kGreatest)
    refuse_size("a power that is not a small integer");
  Fraction result{1};
  for (int64_t i = 0; i < std::abs(exponent.top); ++i)
    result = exponent.top > 0 ? result * base : quotient(result, base);
  return result;
}

using Values = std::vector<Fraction>;
using Two = Fraction (*)(Fraction, Fraction);

// Functions of two numbers by their names in sympy and in torch's utils.
const std::map<std::string, Two, std::less<>>& functions() {
  static const auto* table = new std::map<std::string, Two, std::less<>>{
      {"FloorDiv", [](Fraction a, Fraction b) { return Fraction{floor_of(quotient(a, b))}; }},
      {"CleanDiv", [](Fraction a, Fraction b) { return Fraction{floor_of(quotient(a, b))}; }},
      {"CeilDiv", [](Fraction a, Fraction b) { return Fraction{ceil_of(quotient(a, b))}; }},
      {"Mod", remainder},
      {"PythonMod", remainder},
      {"Pow", power},
      {"PowByNatural", power},
      {"IntTrueDiv", quotient}};
  return *table;
}

// Reads text like "Mul(Integer(2), Symbol('s0', positive=True, integer=True))".
class Expression {
 public:
  using SymbolOf = std::function<Fraction(const std::string&)>;
  Expression(std::string_view text, SymbolOf symbol) : text_(text), symbol_(std::move(symbol)) {}

  Fraction value() {
    const Fraction result = term(0);
    if (at_ != text_.size()) fail("its end");
    return result;
  }

 private:
  [[noreturn]] void fail(const std::string& expected) const {
    refuse_size("expected " + expected + ", received '" + std::string(text_.substr(at_, 40)) + "'");
  }
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(std::string("'") + c + "'");
  }
  std::string_view word() {
    skip();
    const size_t begin = at_;
    while (at_ < text_.size() && (is_word_char(text_[at_]) || text_[at_] == '-')) ++at_;
    return text_.substr(begin, at_ - begin);
  }
  int64_t integer() {
    const auto value = parse_int(word());
    if (!value) fail("an integer");
    return *value;
  }
  std::string quoted() {
    expect('\'');
    const size_t end = text_.find('\'', at_);
    if (end == std::string_view::npos) fail("a name in quotes");
    std::string name(text_.substr(at_, end - at_));
    at_ = end + 1;
    return name;
  }
  // The assumptions of a symbol, such as positive=True.
  void skip_assumptions() {
    while (take(',')) {
      word();
      expect('=');
      word();
    }
  }

  Fraction term(int depth) {
    if (depth > kDeepestExpression) refuse_size("nested more than 100 levels deep");
    const std::string name(word());
    expect('(');
    Fraction result;
    if (name == "Integer") {
      result = {integer()};
    } else if (name == "Rational") {
      const int64_t top = integer();
      expect(',');
      result = fraction(top, integer());
    } else if (name == "Symbol") {
      const std::string symbol = quoted();
      skip_assumptions();
      result = symbol_(symbol);
    } else {
      Values values = {term(depth + 1)};
      while (take(',')) values.push_back(term(depth + 1));
      result = applied(name, values);
    }
    expect(')');
    return result;
  }

  static Fraction applied(const std::string& name, const Values& values) {
    const auto all = [&](auto combine) {
      return std::accumulate(values.begin() + 1, values.end(), values[0], combine);
    };
    if (name == "Add") return all([](Fraction a, Fraction b) { return a + b; });
    if (name == "Mul") return all([](Fraction a, Fraction b) { return a * b; });
    if (name == "Min") return all([](Fraction a, Fraction b) { return is_less(b, a) ? b : a; });
    if (name == "Max") return all([](Fraction a, Fraction b) { return is_less(a, b) ? b : a; });
    if (values.size() == 1) {
      if (name == "floor" || name == "FloorToInt") return {floor_of(values[0])};
      if (name == "ceiling" || name == "CeilToInt") return {ceil_of(values[0])};
      if (name == "TruncToInt")
        return {values[0].top < 0 ? ceil_of(values[0]) : floor_of(values[0])};
    }
    if (const auto known = functions().find(name); known != functions().end()) {
      if (values.size() != 2) refuse_size("'" + name + "' of " + std::to_string(values.size()));
      return known->second(values[0], values[1]);
    }
    refuse_size("the function '" + name + "' is not known");
  }

  std::string_view text_;
  SymbolOf symbol_;
  size_t at_ = 0;
};

DType dtype_of(const Json& number) {
  if (const auto dtype = pt2::dtype_of(int_of(number))) return *dtype;
  throw UserError("there is no dtype of number " + shown(number));
}

}  // namespace

int64_t evaluate(std::string_view expression, const SymbolValues& symbols) {
  const Fraction value = Expression(expression, [&](const std::string& name) {
                           const auto known = symbols.find(name);
                           if (known == symbols.end())
                             refuse_size("'" + name + "' follows from values, or has no example");
                           return Fraction{known->second};
                         }).value();
  if (value.bottom != 1) refuse_size("'" + std::string(expression) + "' is no integer here");
  return value.top;
}

std::set<std::string> symbols_of(std::string_view expression) {
  constexpr std::string_view kSymbol = "Symbol('";
  std::set<std::string> names;
  for (size_t at = expression.find(kSymbol); at != std::string_view::npos;) {
    const size_t begin = at + kSymbol.size(), end = expression.find('\'', begin);
    names.emplace(expression.substr(begin, end - begin));
    at = expression.find(kSymbol, begin);
  }
  return names;
}

int64_t Sizes::value(const Json& size) const {
  const auto [kind, content] = only_field(size);
  if (kind == "as_int") return int_of(*content);
  if (kind == "as_expr") return evaluate(text_of(field(*content, "expr_str")), values_);
  throw UserError("expected a size, received " + shown(size));
}

std::vector<int64_t> Sizes::all(const Json& list) const {
  std::vector<int64_t> values;
  for (const Json& size : list_of(list)) values.push_back(value(size));
  return values;
}

Type Sizes::type(const Json& meta) const {
  Type type;
  type.dtype = dtype_of(field(meta, "dtype"));
  if (int_of(field(meta, "layout")) != pt2::number_of(Layout::strided))
    throw UserError("a sparse tensor; composit has dense ones");
  const std::string& device = text_of(field(field(meta, "device"), "type"));
  if (device != "cpu")
    throw UserError("a tensor on the device '" + device +
                    "'; move the program first: torch.export.passes.move_to_device_pass(program, "
                    "\"cpu\")");
  type.sizes = all(field(meta, "sizes"));
  type.strides = all(field(meta, "strides"));
  if (const auto fault = fault_of(type)) throw UserError("a tensor whose type is none: " + *fault);
  return type;
}

}  // namespace composit::pt2_read
