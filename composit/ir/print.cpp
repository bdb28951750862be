#include "composit/ir/print.h"

#include <variant>

#include "composit/ir/error.h"
#include "composit/ir/literal.h"
#include "composit/ir/printer.h"

namespace composit {
namespace {

constexpr size_t kLineLength = 100;
constexpr ptrdiff_t kInputAttributes = 2;  // name and kind, printed in a form of their own
constexpr size_t kFlushSize = 1 << 16;

// `text` with everything else than letters, digits and underscores replaced.
std::string make_word(std::string_view text) {
  std::string word(text.empty() ? "value" : text);
  for (char& c : word)
    if (c == '.' || c == ':' || !(is_word_char(c))) c = '_';
  return word;
}

std::string with_number(std::string word, uint32_t number) {
  if (number > 0) word.append("_").append(std::to_string(number));
  return word;
}

// Works for illegal inputs as well, since messages about a fault print names.
std::string_view name_of_input(const Node& node) {
  const Attribute* name = node.find_attribute("name");
  const auto* text = name != nullptr ? name->get_if<std::string>() : nullptr;
  return text != nullptr ? std::string_view(*text) : "input";
}

size_t end_of(const Argument& argument) { return size_t{argument.begin} + argument.size; }

bool is_keyword(std::string_view text) {
  return text == "mutate" || text == "return" || text == "none";
}

// True if the value of an annotation needs no quotes.
bool is_bare(std::string_view text) {
  for (const char c : text)
    if (c <= ' ' || c > '~' || c == '"' || c == '\\') return false;
  return !text.empty();
}

}  // namespace

// The first value with a word gets the word itself; the others get it with a number that does not
// make up another word.
class Names::Maker {
 public:
  explicit Maker(Names& names) : names_(names) {}

  uint32_t word(std::string_view text) {
    std::string made = make_word(text);
    const auto id = static_cast<uint32_t>(names_.words_.size());
    if (!ids_.insert(made, id)) return *ids_.find(made);
    names_.words_.push_back(std::move(made));
    return id;
  }
  uint32_t word(Symbol op) {
    if (const uint32_t* known = of_op_.find(op)) return *known;
    const uint32_t id = word(op.base_name());
    of_op_.insert(op, id);
    return id;
  }
  // When all words are known.
  void number_names() {
    std::vector<uint32_t> next(names_.words_.size(), 0);
    for (Name& name : names_.names_) {
      uint32_t& number = next[name.word];
      while (number > 0 && ids_.contains(with_number(names_.words_[name.word], number))) ++number;
      name.number = number++;
    }
  }

 private:
  Names& names_;
  FlatMap<std::string, uint32_t> ids_;
  FlatMap<Symbol, uint32_t> of_op_;
};

Names::Names(const Graph& graph) {
  Maker maker(*this);
  const auto add = [&](const Node& node, auto text) {
    if (first_.insert(&node, names_.size()))
      names_.insert(names_.end(), node.outputs().size(), {maker.word(text), 0});
  };
  for (const LazyTensor& input : graph.inputs())
    if (input) add(*input.node, name_of_input(*input.node));
  for (const NodePtr& node : graph.nodes()) add(*node, node->op());
  maker.number_names();
}

std::string Names::of(const LazyTensor& tensor) const {
  return tensor ? of(*tensor.node, tensor.index) : "none";
}

std::string Names::of(const Node& node, size_t output) const {
  const size_t* first = first_.find(&node);
  if (first == nullptr || output >= node.outputs().size()) return "%?";
  const auto [word, number] = names_[*first + output];
  return with_number("%" + words_[word], number);
}

// ---- graphs -------------------------------------------------------------------------------------

void Printer::flush() {
  if (sink_ == nullptr) return;
  *sink_ << text_;
  text_.clear();
}

void Printer::separate(bool& first) {
  if (!first) text_ += ", ";
  first = false;
}

void Printer::graph(const Graph& graph, std::string_view keyword) {
  const Names names(graph);
  header(graph, names, keyword);
  ++indent_;
  statements(graph, names);
  --indent_;
  new_line();
  text_ += '}';
}

// On one line where it fits and no input has a remark.
void Printer::header(const Graph& graph, const Names& names, std::string_view keyword) {
  const InputKind unmarked = keyword == "region" ? InputKind::block : InputKind::user_input;
  std::vector<std::string> texts;
  size_t length = 2 * indent_ + keyword.size();
  bool remarks = false;
  for (const LazyTensor& tensor : graph.inputs()) {
    COMPOSIT_ASSERT(tensor && is_input(*tensor.node), "a graph's input is not an input");
    Printer part(options_);
    part.input(*tensor.node, names, unmarked);
    texts.push_back(part.take());
    length += texts.back().size() + 2;
    remarks |= options_.annotations && !tensor.node->annotations().empty();
  }
  const bool one_line = !remarks && length <= kLineLength;
  text_.append(keyword).append("(");
  ++indent_;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (!one_line) new_line();
    text_ += texts[i];
    if (i + 1 < texts.size()) text_ += one_line ? ", " : ",";
    annotations(*graph.inputs()[i].node);
  }
  --indent_;
  if (!one_line) new_line();
  text_ += ") {";
}

void Printer::input(const Node& node, const Names& names, InputKind unmarked) {
  const std::string name = names.of(node, 0);
  text_ += name + ": ";
  type(node.outputs().at(0));
  if (input_kind(node) != unmarked) text_.append(" ").append(composit::name(input_kind(node)));
  if (name.substr(1) != input_name(node)) {
    text_ += ' ';
    append_quoted(text_, input_name(node));
  }
  const Attributes more(node.attributes().begin() + kInputAttributes, node.attributes().end());
  if (more.empty()) return;
  text_ += " (";
  bool first = true;
  attributes(more, IntegerFormula::Of::attribute, input_name(node), first);
  text_ += ')';
}

void Printer::statements(const Graph& graph, const Names& names) {
  FlatMap<const Node*, std::monostate> in_header;
  for (const LazyTensor& input : graph.inputs()) in_header.insert(input.node.get(), {});
  for (const NodePtr& each : graph.nodes()) {
    if (in_header.contains(each.get())) continue;
    new_line();
    node(*each, names);
    if (text_.size() > kFlushSize) flush();
  }
  for (const auto& [target, value] : graph.mutations()) {
    new_line();
    text_ += "mutate " + names.of(target) + " = " + names.of(value);
  }
  new_line();
  text_ += graph.outputs().empty() ? "return" : "return ";
  bool first = true;
  for (const LazyTensor& output : graph.outputs()) {
    separate(first);
    text_ += names.of(output);
  }
}

// ---- nodes --------------------------------------------------------------------------------------

void Printer::node(const Node& node, const Names& names) {
  const Place outer = place_;  // of the node whose region this node is in
  place_ = {};
  if (options_.formulas != nullptr) place_ = {options_.formulas->find(&node), &names};
  bool first = true;
  for (size_t i = 0; i < node.outputs().size(); ++i) {
    separate(first);
    text_ += names.of(node, i);
  }
  if (!first) text_ += ": ";
  first = true;
  place_.of = IntegerFormula::Of::output;
  for (place_.number = 0; place_.number < node.outputs().size(); ++place_.number) {
    separate(first);
    place_.position = 0;
    type(node.outputs()[place_.number]);
  }
  if (!first) text_ += " = ";
  key(node.op().str());
  text_ += '(';
  first = true;
  operands(node, names, first);
  std::string hint(node.annotation("name"));
  if (hint.empty()) hint = names.of(node, 0).substr(1);
  attributes(node.attributes(), IntegerFormula::Of::attribute, hint, first);
  text_ += ')';
  if (!node.execution().empty()) {
    text_ += " {";
    first = true;
    attributes(node.execution(), IntegerFormula::Of::execution, hint, first);
    text_ += '}';
  }
  annotations(node);
  place_ = outer;
}

void Printer::operands(const Node& node, const Names& names, bool& first) {
  for (const Argument& argument : node.arguments()) {
    separate(first);
    if (argument.kind == Argument::Kind::absent) {
      text_ += "none";
      continue;
    }
    const bool list = argument.kind == Argument::Kind::list;
    if (list) text_ += '[';
    bool first_item = true;
    // An illegal argument ends where the operands do.
    for (size_t i = argument.begin; i < node.operands().size() && i < end_of(argument); ++i) {
      separate(first_item);
      text_ += names.of(node.operands()[i]);
    }
    if (list) text_ += ']';
  }
}

void Printer::attributes(const Attributes& attributes, IntegerFormula::Of of,
                         std::string_view array_hint, bool& first) {
  place_.of = of;
  for (size_t i = 0; i < attributes.size(); ++i) {
    separate(first);
    key(attributes[i].name.str());
    text_ += '=';
    array_hint_ = array_hint;
    place_.number = i;
    place_.position = 0;
    value(attributes[i].value);
  }
}

void Printer::annotations(const Node& node) {
  if (!options_.annotations || node.annotations().empty()) return;
  text_ += "  #";
  for (const Annotation& annotation : node.annotations()) {
    text_ += ' ';
    if (annotation.operand >= 0) text_ += std::to_string(annotation.operand) + ".";
    key(annotation.key.str());
    text_ += '=';
    if (is_bare(annotation.value))
      text_ += annotation.value;
    else
      append_quoted(text_, annotation.value);
  }
}

void Printer::key(std::string_view key) {
  if (is_word(key) && !is_keyword(key))
    text_ += key;
  else
    append_quoted(text_, key);
}

// ---- entry points -------------------------------------------------------------------------------

void print(std::ostream& out, const Graph& graph, const PrintOptions& options) {
  Printer printer(options, &out);
  printer.graph(graph, "graph");
  printer.flush();
  out << '\n';
}

std::string print(const Graph& graph, const PrintOptions& options) {
  Printer printer(options);
  printer.graph(graph, "graph");
  return printer.take() + '\n';
}

std::string print(const Node& node, const Names& names, const PrintOptions& options) {
  Printer printer(options);
  printer.node(node, names);
  return printer.take();
}

std::string print(const Type& type) {
  const PrintOptions options;
  Printer printer(options);
  printer.type(type);
  return printer.take();
}

std::string print(const Attribute& attribute, const PrintOptions& options) {
  Printer printer(options);
  printer.value(attribute);
  return printer.take();
}

}  // namespace composit
