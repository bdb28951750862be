// Grammar, as torch prints it (and native_functions.yaml, which it came from, writes it):
//
//   schema    = name "(" [ argument { "," argument } ] ")" "->" results
//   argument  = "*" | "..." | type name [ "=" default ]     behind "*": by keyword only
//   results   = result | "(" [ result { "," result } ] ")"
//   result    = "..." | type [ name ]
//   type      = element [ alias ] [ "?" ] { "[" [ length ] "]" [ alias ] [ "?" ] }
//   element   = word | word "(" types ")" | "(" types ")"   Dict(str, t), (int, t)
//   alias     = "(" sets [ "->" sets ] ")"                  (a!), (a -> *), (a|b)
//   default   = constant | "[" [ constant { "," constant } ] "]"
#include "composit/op/schema.h"

#include <algorithm>
#include <array>
#include <utility>

#include "composit/ir/error.h"
#include "composit/ir/lexer.h"
#include "composit/ir/verify.h"

namespace composit {
namespace {

constexpr std::string_view kRest = "...";  // any number of further arguments or results

struct TypeName {
  std::string_view name;
  ArgumentType type;
  AttributeKind item;  // how the tracer types a list of it
};
constexpr std::array kTypes = {
    TypeName{"Tensor", ArgumentType::tensor, AttributeKind::none},
    TypeName{"Scalar", ArgumentType::scalar, AttributeKind::scalar},
    TypeName{"int", ArgumentType::integer, AttributeKind::dim},
    TypeName{"SymInt", ArgumentType::symint, AttributeKind::dim},
    TypeName{"float", ArgumentType::floating, AttributeKind::float_},
    TypeName{"bool", ArgumentType::boolean, AttributeKind::boolean},
    TypeName{"complex", ArgumentType::complex, AttributeKind::complex},
    TypeName{"str", ArgumentType::string, AttributeKind::string},
    TypeName{"ScalarType", ArgumentType::dtype, AttributeKind::dtype},
    TypeName{"Layout", ArgumentType::layout, AttributeKind::none},
    TypeName{"Device", ArgumentType::device, AttributeKind::none},
    TypeName{"MemoryFormat", ArgumentType::memory_format, AttributeKind::none},
    TypeName{"Generator", ArgumentType::generator, AttributeKind::none},
    TypeName{"Dimname", ArgumentType::dimname, AttributeKind::none},
    TypeName{"Stream", ArgumentType::stream, AttributeKind::none},
    TypeName{"Storage", ArgumentType::storage, AttributeKind::none}};

// Parentheses after these words hold types; after all others they hold an alias annotation.
constexpr std::array<std::string_view, 8> kGenerics = {"Dict",  "Future",   "Await", "RRef",
                                                       "Union", "Optional", "List",  "Tuple"};

template <class Table, class Key, class Field>
auto find_in(const Table& table, const Key& key, Field field) {
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const auto& entry) { return entry.*field == key; });
  return found == table.end() ? nullptr : &*found;
}

// ---- defaults -----------------------------------------------------------------------------------

struct NamedDType {
  std::string_view name;
  DType dtype;
};
// torch's names that differ from composit's.
constexpr std::array kTorchDTypes = {
    NamedDType{"byte", DType::uint8},        NamedDType{"char", DType::int8},
    NamedDType{"short", DType::int16},       NamedDType{"int", DType::int32},
    NamedDType{"long", DType::int64},        NamedDType{"half", DType::float16},
    NamedDType{"float", DType::float32},     NamedDType{"double", DType::float64},
    NamedDType{"chalf", DType::complex32},   NamedDType{"cfloat", DType::complex64},
    NamedDType{"cdouble", DType::complex128}};

// An enumerator by the number torch gives it.
template <class Enum>
std::optional<Attribute> numbered(std::string_view text) {
  const auto number = parse_int(text);
  if (!number || *number < 0 || *number >= static_cast<int64_t>(Enum::count_)) return std::nullopt;
  return static_cast<Enum>(*number);
}

template <class Value>
std::optional<Attribute> attribute(const std::optional<Value>& value) {
  return value ? std::optional<Attribute>(*value) : std::nullopt;
}

std::optional<Attribute> dtype_default(std::string_view text) {
  if (const auto* torch = find_in(kTorchDTypes, text, &NamedDType::name)) return torch->dtype;
  if (const auto dtype = dtype_from_name(text)) return *dtype;
  return numbered<DType>(text);
}

std::optional<Attribute> integer_default(std::string_view text) {
  if (text == "Mean" || text == "Sum") return Attribute(text == "Mean" ? 1 : 2);
  return attribute(parse_int(text));
}

std::optional<Attribute> boolean_default(std::string_view text) {
  if (text != "True" && text != "False") return std::nullopt;
  return text == "True";
}

std::optional<Attribute> scalar_default(std::string_view text) {
  if (const auto truth = boolean_default(text)) return Scalar(truth->as<bool>());
  if (const auto integer = parse_int(text)) return Scalar(*integer);
  if (const auto number = parse_float(text)) return Scalar(*number);
  return std::nullopt;
}

std::optional<char> escaped(char c) {
  constexpr std::string_view kEscapes = "abfnrtv\\\"'", kMeanings = "\a\b\f\n\r\t\v\\\"'";
  const size_t place = kEscapes.find(c);
  return place == std::string_view::npos ? std::nullopt : std::optional(kMeanings[place]);
}

std::optional<Attribute> string_default(std::string_view text) {
  if (text.size() < 2 || (text[0] != '"' && text[0] != '\'')) return std::nullopt;
  std::string value;
  for (size_t i = 1; i + 1 < text.size(); ++i) {
    const auto meant = text[i] == '\\' ? escaped(text[++i]) : text[i];
    if (!meant) return std::nullopt;
    value += *meant;
  }
  return Attribute(std::move(value));
}

// The default of an argument whose type is none of the above.
std::optional<Attribute> any_default(std::string_view text) {
  if (const auto truth = boolean_default(text)) return truth;
  if (const auto integer = parse_int(text)) return Attribute(*integer);
  if (const auto number = parse_float(text)) return Attribute(*number);
  return string_default(text);
}

std::optional<Attribute> item_default(ArgumentType type, std::string_view text) {
  if (text == "None") return Attribute();
  switch (type) {
    case ArgumentType::integer:
    case ArgumentType::symint:
      return integer_default(text);
    case ArgumentType::floating:
      return attribute(parse_float(text));
    case ArgumentType::complex:
      if (const auto real = parse_float(text)) return Attribute(std::complex<double>(*real));
      return std::nullopt;
    case ArgumentType::boolean:
      return boolean_default(text);
    case ArgumentType::scalar:
      return scalar_default(text);
    case ArgumentType::string:
      return string_default(text);
    case ArgumentType::dtype:
      return dtype_default(text);
    case ArgumentType::memory_format:
      if (const auto number = numbered<MemoryFormat>(text)) return number;
      return attribute(memory_format_from_name(text));
    case ArgumentType::layout:
      if (const auto number = numbered<Layout>(text)) return number;
      return attribute(layout_from_name(text));
    case ArgumentType::device:
      return attribute(device_from_name(text));
    case ArgumentType::other:
      return any_default(text);
    default:
      return std::nullopt;
  }
}

AttributeKind item_kind(const SchemaArgument& argument) {
  if (argument.type == ArgumentType::other)
    return argument.type_name.ends_with("]") ? AttributeKind::list : AttributeKind::none;
  const auto* type = find_in(kTypes, argument.type, &TypeName::type);
  return type == nullptr ? AttributeKind::none : type->item;
}

// A default as tokens: one constant, or those of a list.
struct DefaultText {
  bool list = false;
  std::vector<std::string_view> items;
};

std::optional<Attribute> value_of(const SchemaArgument& argument, const DefaultText& text) {
  std::vector<Attribute> items;
  for (std::string_view item : text.items) {
    const auto value = item_default(argument.type, item);
    if (!value) return std::nullopt;
    items.push_back(*value);
  }
  if (text.list) {
    if (!argument.list) return std::nullopt;
    return List{item_kind(argument), std::move(items)};
  }
  if (!argument.list || items[0].is_none()) return items[0];
  if (!argument.length) return std::nullopt;
  items.resize(static_cast<size_t>(*argument.length), items[0]);  // one for all
  return List{item_kind(argument), std::move(items)};
}

// ---- parsing ------------------------------------------------------------------------------------

class SchemaParser {
 public:
  SchemaParser(std::string_view text, std::string called)
      : called_(std::move(called)), text_(text), lexer_(text, called_, 1) {}

  Schema schema();
  DefaultText default_text();
  void end() {
    if (lexer_.peek().kind != TokenKind::end) lexer_.fail_expected("the end of the text");
  }

 private:
  void argument(Schema& schema, bool& keyword_only);
  void default_value(SchemaArgument& argument);
  std::string_view constant();
  void results(Schema& schema);
  SchemaArgument result();
  bool rest(SchemaArgument& argument);
  void type(SchemaArgument& argument);
  void element(SchemaArgument& argument);
  void parenthesis();
  std::string alias();
  std::string alias_sets();
  std::optional<int64_t> length();
  Token take() {
    const Token token = lexer_.take();
    end_ = token.offset + token.text.size();
    return token;
  }
  bool accept(std::string_view text) { return lexer_.at(text) && (take(), true); }
  void expect(std::string_view text) {
    if (!accept(text)) lexer_.expect(text);
  }
  std::string_view since(size_t begin) const { return text_.substr(begin, end_ - begin); }

  std::string called_;
  std::string_view text_;
  Lexer lexer_;
  size_t end_ = 0;  // of the token taken last
};

Schema SchemaParser::schema() {
  Schema schema;
  const Token name = lexer_.peek();
  if (name.kind != TokenKind::word || name.text.find("::") == std::string_view::npos)
    lexer_.fail_expected("an operation's name, as 'aten::add.Tensor'");
  schema.name = Symbol(take().text);
  expect("(");
  for (bool keyword_only = false; !accept(")");) {
    argument(schema, keyword_only);
    if (!lexer_.at(")") && !accept(",")) lexer_.fail_expected("',' or ')'");
  }
  expect("-");
  expect(">");
  results(schema);
  end();
  return schema;
}

void SchemaParser::argument(Schema& schema, bool& keyword_only) {
  if (!keyword_only && accept("*")) {
    keyword_only = true;
    if (lexer_.at(")")) lexer_.fail_expected("','");
    return;
  }
  SchemaArgument argument;
  argument.keyword_only = keyword_only;
  if (!rest(argument)) {
    type(argument);
    if (lexer_.peek().kind != TokenKind::word) lexer_.fail_expected("the name of an argument");
    argument.name = take().text;
    if (accept("=")) default_value(argument);
  }
  schema.arguments.push_back(std::move(argument));
}

void SchemaParser::default_value(SchemaArgument& argument) {
  const size_t begin = lexer_.peek().offset;
  const DefaultText text = default_text();
  argument.default_text = since(begin);
  if (!value_of(argument, text))
    lexer_.fail(begin, "expected a default of type " + argument.type_name +
                           (argument.list ? "[]" : "") + ", received '" + *argument.default_text +
                           "'");
}

DefaultText SchemaParser::default_text() {
  if (!accept("[")) return {false, {constant()}};
  DefaultText text{true, {}};
  while (!accept("]")) {
    text.items.push_back(constant());
    if (!lexer_.at("]") && !accept(",")) lexer_.fail_expected("',' or ']'");
  }
  return text;
}

std::string_view SchemaParser::constant() {
  const Token first = lexer_.peek();
  if (accept("'")) {  // native_functions.yaml has strings in single quotes
    while (!lexer_.at("'") && lexer_.peek().kind != TokenKind::end) take();
    expect("'");
    return since(first.offset);
  }
  if (first.kind != TokenKind::number && first.kind != TokenKind::word &&
      first.kind != TokenKind::string)
    lexer_.fail_expected("a default");
  return take().text;
}

void SchemaParser::results(Schema& schema) {
  if (!accept("(")) {
    schema.results.push_back(result());
    return;
  }
  while (!accept(")")) {
    schema.results.push_back(result());
    if (!lexer_.at(")") && !accept(",")) lexer_.fail_expected("',' or ')'");
  }
}

SchemaArgument SchemaParser::result() {
  SchemaArgument result;
  if (rest(result)) return result;
  type(result);
  if (lexer_.peek().kind == TokenKind::word) result.name = take().text;
  return result;
}

bool SchemaParser::rest(SchemaArgument& argument) {
  if (!accept(".")) return false;
  expect(".");
  expect(".");
  argument.type = ArgumentType::other;
  argument.type_name = kRest;
  return true;
}

void SchemaParser::type(SchemaArgument& argument) {
  const size_t begin = lexer_.peek().offset;
  element(argument);
  argument.alias = alias();
  argument.optional = accept("?");
  while (lexer_.at("[")) {
    if (argument.list) {  // only the outer list is taken apart
      SchemaArgument outer;
      outer.keyword_only = argument.keyword_only;
      outer.type = ArgumentType::other;
      outer.type_name = since(begin);
      argument = std::move(outer);
    }
    argument.list = true;
    argument.optional_items = std::exchange(argument.optional, false);
    argument.length = length();
    argument.list_alias = alias();
    argument.optional = accept("?");
  }
}

void SchemaParser::element(SchemaArgument& argument) {
  const Token word = lexer_.peek();
  argument.type = ArgumentType::other;
  if (word.kind != TokenKind::word && !lexer_.at("(")) lexer_.fail_expected("a type");
  if (word.kind == TokenKind::word) {
    take();
    if (const auto* known = find_in(kTypes, word.text, &TypeName::name))
      argument.type = known->type;
  }
  const bool generic = std::find(kGenerics.begin(), kGenerics.end(), word.text) != kGenerics.end();
  if (lexer_.at("(") && (generic || word.kind != TokenKind::word)) parenthesis();
  argument.type_name = since(word.offset);
}

// Types within a type: kept as they are written.
void SchemaParser::parenthesis() {
  size_t open = 0;
  do {
    if (lexer_.peek().kind == TokenKind::end) lexer_.fail_expected("')'");
    if (lexer_.at("(")) ++open;
    if (lexer_.at(")")) --open;
    take();
  } while (open > 0);
}

std::string SchemaParser::alias() {
  if (!accept("(")) return "";
  std::string alias = alias_sets();
  if (accept("-")) {
    expect(">");
    alias += " -> " + alias_sets();
  }
  expect(")");
  return alias;
}

std::string SchemaParser::alias_sets() {
  std::string sets;
  do {
    if (!sets.empty()) sets += '|';
    if (!lexer_.at("*") && lexer_.peek().kind != TokenKind::word)
      lexer_.fail_expected("an alias set, as 'a' or '*'");
    sets += take().text;
    if (accept("!")) sets += '!';
  } while (accept("|"));
  return sets;
}

std::optional<int64_t> SchemaParser::length() {
  expect("[");
  if (accept("]")) return std::nullopt;
  const Token token = lexer_.take(TokenKind::number, "a length or ']'");
  const auto length = parse_int(token.text);
  if (!length || *length < 0 || *length > static_cast<int64_t>(kMaxRank))
    lexer_.fail(token.offset, "expected a length of at most " + std::to_string(kMaxRank) +
                                  ", received '" + std::string(token.text) + "'");
  expect("]");
  return length;
}

// ---- printing -----------------------------------------------------------------------------------

std::string in_parentheses(const std::string& alias) {
  return alias.empty() ? "" : "(" + alias + ")";
}

std::string print(const SchemaArgument& argument) {
  std::string text = argument.type_name + in_parentheses(argument.alias);
  if (argument.list) {
    if (argument.optional_items) text += '?';
    text += '[' + (argument.length ? std::to_string(*argument.length) : "") + ']';
    text += in_parentheses(argument.list_alias);
  }
  if (argument.optional) text += '?';
  if (!argument.name.empty()) text += ' ' + argument.name;
  if (argument.default_text) text += '=' + *argument.default_text;
  return text;
}

}  // namespace

Schema parse_schema(std::string_view text) { return SchemaParser(text, "schema").schema(); }

std::string print(const Schema& schema) {
  std::string text = schema.name.str() + "(";
  bool keyword_only = false;
  for (const SchemaArgument& argument : schema.arguments) {
    if (&argument != &schema.arguments.front()) text += ", ";
    if (argument.keyword_only && !std::exchange(keyword_only, true)) text += "*, ";
    text += print(argument);
  }
  text += ") -> ";
  const auto& results = schema.results;
  const bool bare = results.size() == 1 && !results[0].type_name.starts_with('(');
  if (!bare) text += '(';
  for (size_t i = 0; i < results.size(); ++i) text += (i > 0 ? ", " : "") + print(results[i]);
  return bare ? text : text + ')';
}

std::optional<Attribute> default_of(const SchemaArgument& argument) {
  if (!argument.default_text) return std::nullopt;
  SchemaParser parser(*argument.default_text, "default of " + argument.name);
  const DefaultText text = parser.default_text();
  parser.end();
  const auto value = value_of(argument, text);
  if (!value)
    throw UserError("expected a default of type " + argument.type_name + ", received '" +
                    *argument.default_text + "'");
  return value;
}

}  // namespace composit
