#include <algorithm>
#include <map>

#include "composit/ir/error.h"
#include "composit/ir/lexer.h"
#include "composit/ir/literal.h"
#include "composit/ir/parse.h"
#include "flashlight/loops/program_text.h"
#include "flashlight/loops/program_words.h"
#include "flashlight/loops/sizes.h"
#include "flashlight/loops/statement.h"

namespace flashlight::loops {
namespace {

using composit::Attribute;
using composit::Lexer;
using composit::TokenKind;

constexpr std::string_view kText = "program";

// Reads the fields in braces.
class FieldReader {
 public:
  explicit FieldReader(Lexer& lexer) {
    lexer.expect("{");
    while (!lexer.accept("}")) {
      std::string key(lexer.take(TokenKind::word, "a field").text);
      lexer.expect("=");
      values_.insert_or_assign(std::move(key), composit::read_constant(lexer));
      if (!lexer.at("}")) lexer.expect(",");
    }
  }

  template <class T>
  T get(const char* key, T fallback) const {
    const Attribute* value = find(key);
    return value == nullptr ? fallback : value->as<T>();
  }
  const Attribute* find(const char* key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? nullptr : &found->second;
  }
  std::vector<int64_t> integers(const char* key) const {
    const Attribute* value = find(key);
    return value == nullptr ? std::vector<int64_t>() : composit::to_ints(*value);
  }
  template <class I = ValueId>
  std::vector<I> numbers(const char* key) const {
    std::vector<I> list;
    for (const int64_t one : integers(key)) list.emplace_back(static_cast<size_t>(one));
    return list;
  }
  std::optional<int64_t> integer(const char* key) const {
    const Attribute* value = find(key);
    return value == nullptr ? std::nullopt : std::optional(value->as_int());
  }
  std::optional<ValueId> number(const char* key) const {
    const auto value = integer(key);
    return value ? std::optional(ValueId(static_cast<size_t>(*value))) : std::nullopt;
  }
  Origin origin() const {
    return {get<std::string>("operation", ""), get<std::string>("module", ""),
            get<std::string>("source", "")};
  }

 private:
  std::map<std::string, Attribute, std::less<>> values_;
};

// The enumerator whose number is the index of `word` in `words`; fails if there is none.
template <class Enum>
Enum one_of(const std::array<std::string_view, 5>& words, Lexer& lexer, std::string_view word,
            size_t offset) {
  const auto found = std::find(words.begin(), words.end(), word);
  if (found != words.end()) return static_cast<Enum>(found - words.begin());
  auto sorted = words;
  std::sort(sorted.begin(), sorted.end());
  std::string expected;
  for (const std::string_view each : sorted)
    expected += (expected.empty() ? "" : ", ") + std::string(each);
  lexer.fail(offset, "expected one of " + expected + ", received '" + std::string(word) + "'");
}

size_t integer(Lexer& lexer) {
  const composit::Token token = lexer.take(TokenKind::number, "an integer");
  const auto value = composit::parse_int(token.text);
  if (!value || *value < 0) lexer.fail(token.offset, "expected a number from 0");
  return static_cast<size_t>(*value);
}

ValueId value(Lexer& lexer) {
  const composit::Token token = lexer.take(TokenKind::name, "a value");
  const auto number = composit::parse_int(token.text);
  if (!number || *number < 0) lexer.fail(token.offset, "expected the number of a value");
  return ValueId(static_cast<size_t>(*number));
}

ValueIds values(Lexer& lexer) {
  ValueIds list;
  while (lexer.peek().kind == TokenKind::name) list.push_back(value(lexer));
  return list;
}

class ProgramParser {
 public:
  explicit ProgramParser(std::string_view text) : rest_(text) {}

  Program run() {
    while (next_line()) {
      Lexer lexer(line_, kText, number_);
      if (lexer.peek().kind == TokenKind::end) continue;
      lexer.accept("size") ? size(lexer) : function(lexer);
    }
    return std::move(program_);
  }

 private:
  bool next_line() {
    if (rest_.empty()) return false;
    const size_t end = rest_.find('\n');
    line_ = rest_.substr(0, end);
    rest_ = end == rest_.npos ? std::string_view() : rest_.substr(end + 1);
    ++number_;
    return true;
  }

  void size(Lexer& lexer) {
    NamedSize size;
    size.name = lexer.take(TokenKind::word, "the name of a size").text;
    lexer.expect("=");
    size.example = composit::read_constant(lexer).as_int();
    const FieldReader fields(lexer);
    size.of = fields.numbers<SizeId>("of");
    size.least = fields.integer("least").value_or(0);
    size.most = fields.integer("most").value_or(0);
    size.factor = fields.integer("factor").value_or(1);
    size.divisor = fields.integer("divisor").value_or(1);
    size.added = fields.integer("added").value_or(0);
    program_.sizes.add(std::move(size));
    if (lexer.peek().kind != TokenKind::end) lexer.fail_expected("the end of the line");
  }
  std::optional<SizeId> size_of(std::string_view name) const {
    for (const SizeId i : program_.sizes.ids())
      if (program_.sizes[i].name == name) return i;
    return std::nullopt;
  }

  void function(Lexer& lexer) {
    lexer.expect("function");
    Routine& function = program_.functions.emplace_back();
    function.name = lexer.take_string("the name of a function");
    const FieldReader fields(lexer);
    function.inputs = fields.numbers("inputs");
    function.results = fields.numbers("results");
    function.is_part = fields.get("is_part", false);
    function.is_loop_body = fields.get("is_loop_body", false);
    function.in_parts = fields.get("in_parts", false);
    if (const auto most = fields.number("most_steps_in_loop")) function.most_steps_in_loop = *most;
    while (next_line()) {
      Lexer inner(line_, kText, number_);
      if (inner.accept("end")) return;
      if (inner.peek().kind != TokenKind::end) part(inner, function);
    }
    lexer.fail_expected("'end' behind the steps of the function");
  }

  void part(Lexer& lexer, Routine& function) {
    if (lexer.peek().kind == TokenKind::name) return add_value(lexer, function);
    if (lexer.accept("kept")) {
      const ValueId kept = value(lexer);
      function.kept[kept] = lexer.take_string("a reason");
    } else if (lexer.accept("overwrites")) {
      const ValueId result = value(lexer);
      function.overwrites[result] = value(lexer);
    } else if (lexer.accept("nest")) {
      function.steps.emplace_back(nest(lexer));
    } else if (lexer.accept("call")) {
      Invocation call;
      call.function = FunctionId(integer(lexer));
      call.arguments = values(lexer);
      lexer.expect("to");
      call.results = values(lexer);
      call.origin = FieldReader(lexer).origin();
      function.steps.emplace_back(std::move(call));
    } else if (lexer.accept("runtime")) {
      function.steps.emplace_back(runtime_call(lexer));
    } else if (lexer.accept("control")) {
      function.steps.emplace_back(control(lexer));
    } else {
      lexer.fail_expected("a value, a step or 'end'");
    }
    if (lexer.peek().kind != TokenKind::end) lexer.fail_expected("the end of the line");
  }

  void add_value(Lexer& lexer, Routine& function) {
    const size_t offset = lexer.peek().offset;
    if (value(lexer) != function.values.size())
      lexer.fail(offset, "expected value %" + std::to_string(function.values.size()));
    Value& one = function.values.emplace_back();
    lexer.expect(":");
    read_type(lexer, one);
    lexer.expect("=");
    const composit::Token role = lexer.take(TokenKind::word, "a role");
    one.role = one_of<Role>(kRoles, lexer, role.text, role.offset);
    one.name = lexer.take_string("the name of the value");
    const FieldReader fields(lexer);
    one.constant = fields.get("constant", Array());
    const Attribute* sizes = fields.find("model_sizes");
    if (sizes == nullptr) return;
    for (const Attribute& item : sizes->as<composit::List>().items)
      one.model_sizes.push_back(length(lexer, &item, one.model_named.emplace_back()));
    without_numbers_only(one.model_named);
  }
  // A size in a list, or the length of control: a number, or the name of a size.
  int64_t length(Lexer& lexer, const Attribute* length, std::optional<SizeId>& named) const {
    if (length == nullptr) return 0;
    const auto* name = length->get_if<std::string>();
    if (name == nullptr) return length->as_int();
    named = size_of(*name);
    if (!named) lexer.fail(0, "expected the name of a size, received '" + *name + "'");
    return program_.sizes[*named].example;
  }
  static void without_numbers_only(SizeIds& named) {
    const auto is_named = [](const auto& one) { return one.has_value(); };
    if (std::none_of(named.begin(), named.end(), is_named)) named = {};
  }

  // Reads a type; with named sizes it is row-major.
  void read_type(Lexer& lexer, Value& value) const {
    Lexer ahead = lexer;
    const auto dtype = composit::dtype_from_name(ahead.peek().text);
    if (program_.sizes.empty() || !dtype) return value.type = composit::read_type(lexer), void();
    ahead.take();
    composit::Dims sizes;
    ahead.expect("[");
    while (!ahead.accept("]")) {
      if (const auto size = size_of(ahead.peek().text)) {
        ahead.take();
        value.named.push_back(size);
        sizes.push_back(program_.sizes[*size].example);
      } else {
        value.named.emplace_back();
        sizes.push_back(static_cast<int64_t>(integer(ahead)));
      }
      if (!ahead.at("]")) ahead.expect(",");
    }
    without_numbers_only(value.named);
    if (value.named.empty()) return value.type = composit::read_type(lexer), void();
    value.type = composit::tensor_type(*dtype, std::move(sizes));
    lexer = ahead;
  }

  Nest nest(Lexer& lexer) {
    const ValueIds read = values(lexer);
    lexer.expect("to");
    const ValueIds written = values(lexer);
    const FieldReader fields(lexer);
    Nest nest = {.statement = {}, .origin = fields.origin()};
    if (const Attribute* fused = fields.find("fused")) {
      const auto& parts = fused->as<composit::List>().items;
      for (size_t i = 0; i + 2 < parts.size(); i += 3)
        nest.fused.push_back({parts[i].as<std::string>(), parts[i + 1].as<std::string>(),
                              parts[i + 2].as<std::string>()});
    }
    composit::SizeNames sizes = {size_names(program_), size_examples(program_)};
    const composit::Loops loops = loops_below(lexer, sizes);
    if (loops.operands.size() != read.size() || loops.results.size() != written.size() ||
        loops.statements.size() != 1)
      lexer.fail(0, "expected loops of one statement over " + std::to_string(read.size()) +
                        " operands and " + std::to_string(written.size()) + " results");
    nest.statement = replaced(loops.statements[0], [&](const Expr& part) {
      if (part.kind() != ExprKind::load) return Expr();
      return Expr::load(read.at(part.number()), part.dtype(), part.arguments());
    });
    for (composit::Store& store : nest.statement.stores) store.result = written.at(store.result);
    for (const auto& size : sizes.axes.at(0))
      nest.named.push_back(size ? std::optional(SizeId(*size)) : std::nullopt);
    without_numbers_only(nest.named);
    return nest;
  }

  // Parses the lines up to a closing brace that is indented as the first line.
  composit::Loops loops_below(Lexer& lexer, composit::SizeNames& sizes) {
    const int first = number_ + 1;
    std::string text;
    std::string close;
    while (next_line()) {
      if (close.empty()) close = std::string(line_.find_first_not_of(' '), ' ') + "}";
      text += std::string(line_) + "\n";
      if (line_ == close) break;
    }
    if (text.empty()) lexer.fail_expected("loops below a nest");
    try {
      return composit::parse_loops(text, sizes);
    } catch (const composit::UserError& error) {
      throw composit::UserError("[parse] " + std::string(kText) + ": in the loops from line " +
                                std::to_string(first) + " on: " + error.what());
    }
  }

  static RuntimeCall runtime_call(Lexer& lexer) {
    RuntimeCall call;
    call.function = composit::Symbol(lexer.take_string("the name of a function"));
    call.arguments = values(lexer);
    lexer.expect("to");
    call.results = values(lexer);
    lexer.expect("(");
    while (!lexer.accept(")")) {
      const composit::Symbol key(lexer.take(TokenKind::word, "an option").text);
      lexer.expect("=");
      call.options.push_back({key, composit::read_constant(lexer)});
      if (!lexer.at(")")) lexer.expect(",");
    }
    const FieldReader fields(lexer);
    call.draws = fields.get("draws", false);
    call.effect = fields.get("effect", false);
    call.on_numbers = fields.get("on_numbers", false);
    if (const Attribute* schema = fields.find("schema"))
      call.schema = std::make_shared<const composit::Schema>(
          composit::parse_schema(schema->as<std::string>()));
    call.origin = fields.origin();
    return call;
  }

  Control control(Lexer& lexer) const {
    Control control;
    const size_t offset = lexer.peek().offset;
    const std::string kind = lexer.take_string("a kind of control");
    control.kind = one_of<Control::Kind>(kControlKinds, lexer, kind, offset);
    const FieldReader fields(lexer);
    control.functions = fields.numbers<FunctionId>("functions");
    control.carried = fields.numbers("carried");
    control.sequences = fields.numbers("sequences");
    control.outside = fields.numbers("outside");
    control.predicate = fields.number("predicate");
    control.trips = fields.number("trips");
    control.length = length(lexer, fields.find("length"), control.named_length);
    control.limit = fields.integer("limit");
    control.reverse = fields.get("reverse", false);
    control.results = fields.numbers("results");
    control.next = fields.numbers("next");
    control.block = fields.integer("block").value_or(0);
    for (const int64_t dimension : fields.integers("along"))
      control.along.push_back(dimension < 0 ? std::nullopt
                                            : std::optional(static_cast<size_t>(dimension)));
    control.origin = fields.origin();
    return control;
  }

  std::string_view rest_, line_;
  int number_ = 0;  // of the line
  Program program_;
};

}  // namespace

Program parse_program(std::string_view text) { return ProgramParser(text).run(); }

}  // namespace flashlight::loops
