#include "composit/ir/parse.h"

#include <algorithm>
#include <optional>

#include "composit/ir/parser.h"
#include "composit/ir/verify.h"

namespace composit {
namespace {

// Reads `key=value` pairs from a comment.
class RemarkReader {
 public:
  explicit RemarkReader(std::string_view text) : text_(text) {}

  // Nothing when the comment is something else.
  std::optional<std::vector<Annotation>> read() {
    std::vector<Annotation> annotations;
    for (skip_space(); !text_.empty(); skip_space()) {
      Annotation annotation;
      if (!read_operand(annotation.operand)) return std::nullopt;
      const auto key = read_key();
      if (!key || text_.empty() || text_.front() != '=') return std::nullopt;
      text_.remove_prefix(1);
      auto value = read_value();
      if (!value) return std::nullopt;
      annotation.key = Symbol(*key);
      annotation.value = std::move(*value);
      annotations.push_back(std::move(annotation));
    }
    return annotations;
  }

 private:
  static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }
  void skip_space() {
    while (!text_.empty() && is_space(text_.front())) text_.remove_prefix(1);
  }
  template <class Predicate>
  std::string_view take_while(Predicate predicate) {
    const auto end = std::find_if_not(text_.begin(), text_.end(), predicate);
    const std::string_view run = text_.substr(0, static_cast<size_t>(end - text_.begin()));
    text_.remove_prefix(run.size());
    return run;
  }
  std::optional<std::string> read_quoted() {
    size_t end = 1;
    while (end < text_.size() && text_[end] != '"') end += text_[end] == '\\' ? 2 : 1;
    if (end >= text_.size()) return std::nullopt;
    const std::string_view quoted = text_.substr(0, end + 1);
    text_.remove_prefix(quoted.size());
    return parse_quoted(quoted);
  }
  bool read_operand(int& operand) {
    const std::string_view digits = take_while([](char c) { return c >= '0' && c <= '9'; });
    if (digits.empty()) return true;
    const auto number = parse_int(digits);
    if (!number || *number > INT32_MAX || text_.empty() || text_.front() != '.') return false;
    text_.remove_prefix(1);
    operand = static_cast<int>(*number);
    return true;
  }
  std::optional<std::string> read_key() {
    if (!text_.empty() && text_.front() == '"') return read_quoted();
    const std::string_view word = take_while(is_word_char);
    return is_word(word) ? std::optional<std::string>(word) : std::nullopt;
  }
  std::optional<std::string> read_value() {
    if (!text_.empty() && text_.front() == '"') return read_quoted();
    const std::string_view bare = take_while([](char c) { return !is_space(c); });
    return bare.empty() ? std::nullopt : std::optional<std::string>(bare);
  }

  std::string_view text_;
};

}  // namespace

// ---- graphs -------------------------------------------------------------------------------------

Graph Parser::run() {
  lexer_.expect("graph");
  Graph graph = body(InputKind::user_input);
  if (rest_)
    rest_(lexer_, [this](std::string_view name) {
      const LazyTensor* found = names_.find(name);
      return found == nullptr ? LazyTensor() : *found;
    });
  if (lexer_.peek().kind != TokenKind::end) lexer_.fail_expected("the end of the text");
  return graph;
}

Graph Parser::body(InputKind unmarked) {
  Frame frame;
  Frame* const outer = frame_;
  frame_ = &frame;
  const size_t offset = lexer_.peek().offset;
  lexer_.expect("(");
  while (!lexer_.accept(")")) input(unmarked);
  lexer_.expect("{");
  while (!lexer_.accept("return")) statement();
  frame.parts.outputs = values("}");
  frame_ = outer;
  auto& effects = frame.parts.effects;
  std::stable_sort(effects.begin(), effects.end(),
                   [](const NodePtr& a, const NodePtr& b) { return a->effect() < b->effect(); });
  if (const auto fault = fault_of(frame.parts)) lexer_.fail(offset, "in this graph, " + *fault);
  names_ = std::move(frame.names);
  return Graph(std::move(frame.parts));
}

void Parser::input(InputKind unmarked) {
  const Token token = lexer_.take(TokenKind::name, "an input or ')'");
  lexer_.expect(":");
  Type input_type = type();
  InputKind kind = unmarked;
  if (lexer_.peek().kind == TokenKind::word) {
    const auto marked = input_kind_from_name(lexer_.peek().text);
    if (!marked) lexer_.fail_expected("a kind of input");
    kind = *marked;
    lexer_.take();
  }
  const bool named = lexer_.peek().kind == TokenKind::string;
  std::string name = named ? lexer_.take_string("a name") : std::string(token.text);
  NodeSpec spec(ops::kInput);
  spec.attribute("name", std::move(name)).attribute("kind", std::string(composit::name(kind)));
  if (lexer_.accept("(")) attributes(spec.attributes, ")");
  separator(")");
  remark(spec);
  spec.output(std::move(input_type));
  const NodePtr node = publish(std::move(spec), token.offset);
  frame_->parts.inputs.push_back({node, 0});
  define(token, {node, 0});
}

void Parser::statement() { lexer_.at("mutate") ? mutation() : node(); }

void Parser::mutation() {
  lexer_.expect("mutate");
  LazyTensor target = value();
  lexer_.expect("=");
  frame_->parts.mutations.push_back({std::move(target), value()});
}

// ---- nodes --------------------------------------------------------------------------------------

void Parser::node() {
  Place outer = std::move(place_);  // of the node whose region this node is in
  place_ = {};
  const size_t offset = lexer_.peek().offset;
  std::vector<Token> names;
  std::vector<Type> types;
  if (lexer_.peek().kind == TokenKind::name) {
    do names.push_back(lexer_.take(TokenKind::name, "a name"));
    while (lexer_.accept(","));
    lexer_.expect(":");
    do {
      place_.of = IntegerFormula::Of::output;
      place_.number = types.size();
      place_.position = 0;
      types.push_back(type());
    } while (lexer_.accept(","));
    if (types.size() != names.size()) lexer_.fail_expected(std::to_string(names.size()) + " types");
    lexer_.expect("=");
  }
  NodeSpec spec(key("a statement or 'return'"));
  if (spec.op == ops::kInput) lexer_.fail(offset, "expected inputs in the list of the graph only");
  spec.outputs = std::move(types);
  lexer_.expect("(");
  while (!lexer_.accept(")")) {
    argument(spec);
    separator(")");
  }
  if (lexer_.accept("{"))
    while (!lexer_.accept("}")) {
      node_attribute(spec.execution, IntegerFormula::Of::execution);
      separator("}");
    }
  remark(spec);
  const NodePtr node = publish(std::move(spec), offset);
  if (!place_.formulas.empty()) formulas_->insert(node.get(), std::move(place_.formulas));
  place_ = std::move(outer);
  for (uint32_t i = 0; i < names.size(); ++i) define(names[i], {node, i});
  if (node->effect() >= 0) frame_->parts.effects.push_back(node);
}

void Parser::argument(NodeSpec& spec) {
  if (lexer_.peek().kind == TokenKind::name || lexer_.at("none")) {
    spec.tensor(value());
  } else if (lexer_.accept("[")) {
    spec.list(values("]"));
  } else {
    node_attribute(spec.attributes, IntegerFormula::Of::attribute);
  }
}

void Parser::node_attribute(Attributes& attributes, IntegerFormula::Of of) {
  place_.of = of;
  place_.number = attributes.size();
  place_.position = 0;
  attributes.push_back(attribute());
}

NamedAttribute Parser::attribute() {
  const Symbol name = key("a tensor or an attribute's name");
  lexer_.expect("=");
  return {name, constant()};
}

void Parser::attributes(Attributes& attributes, std::string_view end) {
  while (!lexer_.accept(end)) {
    attributes.push_back(attribute());
    separator(end);
  }
}

void Parser::remark(NodeSpec& spec) const {
  if (lexer_.comment().empty()) return;
  if (auto annotations = RemarkReader(lexer_.comment()).read())
    spec.annotations = std::move(*annotations);
}

LazyTensor Parser::value() {
  if (lexer_.accept("none")) return {};
  const Token name = lexer_.take(TokenKind::name, "a tensor");
  const LazyTensor* found = frame_->names.find(name.text);
  if (found == nullptr)
    lexer_.fail(name.offset,
                "expected a name defined before, received '%" + std::string(name.text) + "'");
  return *found;
}

LazyTensors Parser::values(std::string_view end) {
  LazyTensors values;
  while (!lexer_.accept(end)) {
    values.push_back(value());
    separator(end);
  }
  return values;
}

void Parser::separator(std::string_view end) {
  if (!lexer_.at(end) && !lexer_.accept(","))
    lexer_.fail_expected("',' or '" + std::string(end) + "'");
}

Symbol Parser::key(std::string_view expected) {
  if (lexer_.peek().kind == TokenKind::string) return Symbol(lexer_.take_string(expected));
  return Symbol(lexer_.take(TokenKind::word, expected).text);
}

NodePtr Parser::publish(NodeSpec&& spec, size_t offset) {
  NodePtr node = std::move(spec).make_node();
  if (const auto fault = fault_of(*node))
    lexer_.fail(offset, "[" + node->op().str() + "] " + *fault);
  return node;
}

void Parser::define(const Token& name, LazyTensor value) {
  if (!frame_->names.insert(name.text, std::move(value)))
    lexer_.fail(name.offset, "expected a new name, received '%" + std::string(name.text) +
                                 "', which is defined before");
}

// ---- entry points -------------------------------------------------------------------------------

Graph parse(std::string_view text, const ParseOptions& options) {
  return Parser(text, options).run();
}

Graph parse(std::string_view text, const ArrayStore* arrays) {
  return parse(text, ParseOptions{.arrays = arrays});
}

Type read_type(Lexer& lexer) {
  Parser parser(lexer);
  Type type = parser.type();
  lexer = parser.lexer_;
  return type;
}

Attribute read_constant(Lexer& lexer) {
  Parser parser(lexer);
  Attribute constant = parser.constant();
  lexer = parser.lexer_;
  return constant;
}

}  // namespace composit
