// Families as text.
#include <algorithm>
#include <map>
#include <numeric>

#include "composit/family/family.h"
#include "composit/ir/error.h"
#include "composit/ir/integers.h"
#include "composit/ir/lexer.h"
#include "composit/ir/literal.h"
#include "composit/op/nest.h"

namespace composit {
namespace {

// The index of an input of the graph.
std::optional<size_t> input_of(const Graph& graph, const LazyTensor& value) {
  for (size_t i = 0; i < graph.inputs().size(); ++i)
    if (graph.inputs()[i].node == value.node) return i;
  return std::nullopt;
}

// A line of the text.
struct SizeLine {
  Token name;
  std::vector<int64_t> shown;
  std::vector<std::pair<LazyTensor, size_t>> axes;
  std::vector<int64_t> within = {};  // low, high, step where `shown` does not say it
};

int64_t number(Lexer& lexer) {
  const Token token = lexer.take(TokenKind::number, "an integer");
  const auto value = parse_int(token.text);
  if (!value) lexer.fail(token.offset, "expected an integer of 64 bits");
  return *value;
}

std::vector<int64_t> numbers(Lexer& lexer) {
  std::vector<int64_t> all;
  lexer.expect("[");
  do all.push_back(number(lexer));
  while (lexer.accept(","));
  lexer.expect("]");
  return all;
}

SizeLine read_line(Lexer& lexer, const ParseOptions::Find& find) {
  SizeLine line{.name = lexer.take(TokenKind::word, "the name of a size"), .shown = {}, .axes = {}};
  while (lexer.accept("=")) {
    const size_t offset = lexer.peek().offset;
    const SizeFormula formula = read_formula(lexer, find);
    if (formula.kind() != SizeFormula::Kind::size)
      lexer.fail(offset, "expected the size of an axis, as size(%x, 0)");
    line.axes.emplace_back(formula.tensor(), formula.axis());
  }
  if (line.axes.empty()) lexer.fail_expected("'=' and the axis that has this size");
  lexer.expect("shown");
  line.shown = numbers(lexer);
  if (lexer.accept("within")) {
    const size_t offset = lexer.peek().offset;
    line.within = numbers(lexer);
    if (line.within.size() != 3 || line.within[0] > line.within[1] || line.within[2] < 1)
      lexer.fail(offset, "expected the least number, the greatest, and the step between");
  }
  return line;
}

std::vector<SizeLine> read_lines(Lexer& lexer, const ParseOptions::Find& find) {
  std::vector<SizeLine> lines;
  lexer.expect("sizes");
  lexer.expect("(");
  while (!lexer.accept(")")) {
    lines.push_back(read_line(lexer, find));
    if (!lexer.at(")")) lexer.expect(",");
  }
  return lines;
}

void add_line(Family& family, const SizeLine& line) {
  const std::string name(line.name.text);
  FreeSize size = free_size(name, line.shown);
  for (const auto& [value, axis] : line.axes) {
    const auto input = input_of(family.example, value);
    if (!input) {
      family.value_sizes.push_back({name, value, axis, line.shown});
      return;
    }
    size.axes.push_back({*input, axis});
  }
  if (!line.within.empty()) {
    size.low = line.within[0];
    size.high = line.within[1];
    size.step = line.within[2];
  }
  family.sizes.push_back(std::move(size));
}

// ---- numbers that are no sizes ------------------------------------------------------------------

double real_number(Lexer& lexer) {
  const Token token = lexer.take();
  const auto value = parse_float(token.text);
  if (!value) lexer.fail(token.offset, "expected a number");
  return *value;
}

FreeNumber read_free_number(Lexer& lexer, const std::string& word, const ParseOptions::Find& find) {
  FreeNumber free{.name = word};
  bool known = false;
  for (const NumberOrigin origin :
       {NumberOrigin::given, NumberOrigin::source, NumberOrigin::counted, NumberOrigin::read})
    if (!known && lexer.accept(name(origin))) {
      free.origin = origin;
      known = true;
    }
  if (!known) lexer.fail_expected("'of', or where the number comes from");
  if (free.origin == NumberOrigin::read) {
    const Token tensor = lexer.take(TokenKind::name, "a tensor");
    free.read = find(tensor.text);
    if (!free.read) lexer.fail(tensor.offset, "expected a value of the graph");
  }
  lexer.expect("shown");
  lexer.expect("[");
  do free.shown.push_back(real_number(lexer));
  while (lexer.accept(","));
  lexer.expect("]");
  return free;
}

NumberUse read_use(Lexer& lexer, const std::string& key, const ParseOptions::Find& find) {
  const Token at = lexer.take(TokenKind::name, "the result of an operator");
  const LazyTensor result = find(at.text);
  const Attribute* attribute = result ? result.node->find_attribute(key) : nullptr;
  if (attribute == nullptr || !real_number_of(*attribute))
    lexer.fail(at.offset, "expected an operator with a number '" + key + "'");
  lexer.expect("=");
  return {result.node, key, read_number_formula(lexer)};
}

// Where numbers are read: nodes without results, which have no names in the text.
void add_reads(Family& family) {
  std::vector<NumberUse> reads;
  for (const NodePtr& node : family.example.nodes())
    for (const FreeNumber& number : family.numbers)
      if (number.origin == NumberOrigin::read && node->find_run("read") != nullptr &&
          node->operands().at(0) == number.read)
        reads.push_back({node, "read", NumberFormula::named(number.name), number.shown});
  family.number_uses.insert(family.number_uses.begin(), reads.begin(), reads.end());
}

void read_numbers(Lexer& lexer, Family& family, const ParseOptions::Find& find) {
  if (!lexer.accept("numbers")) return;
  lexer.expect("(");
  while (!lexer.accept(")")) {
    const std::string word(lexer.take(TokenKind::word, "the name of a number").text);
    if (lexer.accept("of"))
      family.number_uses.push_back(read_use(lexer, word, find));
    else
      family.numbers.push_back(read_free_number(lexer, word, find));
    if (!lexer.at(")")) lexer.expect(",");
  }
  add_reads(family);
}

void add_number_lines(const Family& family, const Names& names, std::vector<std::string>& lines) {
  for (const FreeNumber& number : family.numbers)
    lines.push_back("  " + number.name + " " + std::string(name(number.origin)) +
                    (number.read ? " " + names.of(number.read) : "") + " shown " + "[" +
                    list_of_numbers(number.shown) + "]");
  for (const NumberUse& use : family.number_uses)
    if (use.node->find_attribute(use.key) != nullptr)
      lines.push_back("  " + use.key + " of " + names.of(*use.node, 0) + " = " +
                      print(use.formula));
}

std::string block_of(const std::string& word, const std::vector<std::string>& lines) {
  std::string text = word + "(\n";
  for (size_t i = 0; i < lines.size(); ++i)
    text += lines[i] + (i + 1 < lines.size() ? ",\n" : "\n");
  return text + ")\n";
}

std::string line_of(const std::string& name, const std::vector<int64_t>& shown,
                    const std::vector<std::pair<LazyTensor, size_t>>& axes, const Names& names) {
  std::string text = "  " + name;
  for (const auto& [value, axis] : axes) text += " = " + print(size_of(value, axis), names);
  return text + " shown " + str(shown);
}

}  // namespace

std::string text_of(const SizeValues& sizes) {
  std::string text;
  for (const auto& [name, number] : sizes)
    text += (text.empty() ? "" : ", ") + name + " = " + std::to_string(number);
  return text;
}

std::string list_of(const std::vector<int64_t>& numbers) {
  const std::string bracketed = str(numbers);
  return bracketed.substr(1, bracketed.size() - 2);
}

std::string list_of_numbers(const std::vector<double>& numbers) {
  std::string text;
  for (const double number : numbers) {
    text += text.empty() ? "" : ", ";
    append_float(text, number);
  }
  return text;
}

FreeSize free_size(std::string name, std::vector<int64_t> shown) {
  FreeSize size{.name = std::move(name), .axes = {}, .shown = std::move(shown)};
  size.low = *std::min_element(size.shown.begin(), size.shown.end());
  size.high = *std::max_element(size.shown.begin(), size.shown.end());
  size.step = 0;
  for (const int64_t one : size.shown) size.step = std::gcd(size.step, one - size.low);
  size.step = std::max<int64_t>(size.step, 1);
  return size;
}

std::string sizes_text(const Family& family) {
  const Names names(family.example);
  std::vector<std::string> lines;
  for (const FreeSize& size : family.sizes) {
    std::vector<std::pair<LazyTensor, size_t>> axes;
    for (const InputAxis& axis : size.axes)
      axes.emplace_back(family.example.inputs().at(axis.input), axis.axis);
    lines.push_back(line_of(size.name, size.shown, axes, names));
    const FreeSize of_examples = free_size(size.name, size.shown);
    const Ints range = {size.low, size.high, size.step};
    if (range != Ints{of_examples.low, of_examples.high, of_examples.step})
      lines.back() += " within " + str(range);
  }
  for (const ValueSize& size : family.value_sizes)
    lines.push_back(line_of(size.name, size.shown, {{size.value, size.axis}}, names));
  std::vector<std::string> numbers;
  add_number_lines(family, names, numbers);
  return block_of("sizes", lines) + (numbers.empty() ? "" : block_of("numbers", numbers));
}

std::string print(const Family& family, const PrintOptions& options) {
  PrintOptions with_formulas = options;
  with_formulas.formulas = &family.formulas;
  return print(family.example, with_formulas) + sizes_text(family);
}

Family parse_family(std::string_view text, const ParseOptions& options) {
  Family family;
  std::vector<SizeLine> lines;
  ParseOptions with_sizes = options;
  with_sizes.formulas = &family.formulas;
  with_sizes.rest = [&](Lexer& lexer, const ParseOptions::Find& find) {
    lines = read_lines(lexer, find);
    read_numbers(lexer, family, find);
  };
  family.example = parse(text, with_sizes);
  for (const SizeLine& line : lines) add_line(family, line);
  return family;
}

std::map<std::string, LazyTensor> values_by_name(const Graph& graph) {
  const Names names(graph);
  std::map<std::string, LazyTensor> values;
  for (const NodePtr& node : graph.nodes())
    for (uint32_t i = 0; i < node->outputs().size(); ++i)
      values.emplace(names.of(*node, i).substr(1), LazyTensor{node, i});
  return values;
}

Family family_of(Graph example, Formulas formulas, const std::string& sizes) {
  Family family{.example = std::move(example),
                .sizes = {},
                .value_sizes = {},
                .formulas = std::move(formulas)};
  const std::map<std::string, LazyTensor> values = values_by_name(family.example);
  Lexer lexer(sizes, "sizes", 1);
  const ParseOptions::Find find = [&](std::string_view name) {
    const auto found = values.find(std::string(name));
    return found == values.end() ? LazyTensor() : found->second;
  };
  const auto lines = read_lines(lexer, find);
  read_numbers(lexer, family, find);
  if (lexer.peek().kind != TokenKind::end) lexer.fail_expected("the end of the sizes");
  for (const SizeLine& line : lines) add_line(family, line);
  return family;
}

}  // namespace composit
