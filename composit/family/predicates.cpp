#include "composit/family/predicates.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "composit/eval/evaluate.h"
#include "composit/family/merge_branches.h"
#include "composit/ir/error.h"
#include "composit/ir/transform.h"
#include "composit/ops/functions.h"

namespace composit {
namespace {

const Symbol kNumberRead("aten::_local_scalar_dense"), kExpected("expected"), kFree("read");

// The number that a node reads on the host; nothing: it reads a bool, or nothing.
std::optional<Scalar::Value> number_read_by(const Node& node) {
  const std::optional<Scalar> read = node.op() == kNumberRead ? scalar_read_by(node) : std::nullopt;
  const bool is_number = read && (std::holds_alternative<double>(read->value) ||
                                  std::holds_alternative<int64_t>(read->value));
  return is_number ? std::optional(read->value) : std::nullopt;
}

// "model.cpp:12" and "model.cpp:12 in f" are at "model.cpp:12".
bool is_at(const Node& node, const std::string& place) {
  const std::string_view source = node.annotation("source");
  return source.starts_with(place) &&
         (source.size() == place.size() || source[place.size()] == ' ');
}

const Predicate* predicate_of(const Node& node, const std::vector<Predicate>& predicates) {
  if (!number_read_by(node)) return nullptr;
  const auto found = std::find_if(predicates.begin(), predicates.end(),
                                  [&](const Predicate& one) { return is_at(node, one.place); });
  return found == predicates.end() ? nullptr : &*found;
}

// The predicate as a graph of a tensor of this type.
Graph question_of(const Predicate& predicate, const Type& type) {
  const LazyTensor read = input("0", type, InputKind::block);
  const DType dtype = is_floating_point(type.dtype) ? DType::float64 : DType::int64;
  const LazyTensor answer = predicate.holds(to(read, dtype));
  if (!answer || answer.dtype() != DType::bool_ || answer.numel() != 1)
    throw UserError("[unify] the predicate at " + predicate.place +
                    ": expected one bool of the number");
  return Graph({.inputs = {read}, .outputs = {answer}});
}

bool answer_for(const Graph& question, const Scalar::Value& number) {
  const Type& type = question.inputs()[0].type();
  const LazyTensor value = to(std::holds_alternative<double>(number)
                                  ? full(type.sizes, std::get<double>(number), DType::float64)
                                  : full(type.sizes, std::get<int64_t>(number), DType::int64),
                              type.dtype);
  const Array answer = evaluate(inlined(question, {value})).at(0);
  return *reinterpret_cast<const bool*>(answer.contiguous().data());
}

// The same read, whatever the number is.
NodePtr free_read(const Node& node, const LazyTensor& tensor) {
  NodeSpec spec = copy_of(node, {tensor});
  std::erase_if(spec.execution,
                [](const NamedAttribute& attribute) { return attribute.name == kExpected; });
  spec.run(kFree.str(), Scalar(*number_read_by(node)));
  return std::move(spec).make_node();
}

// The read of the predicate's bool, where the old one stood.
NodePtr read_of_answer(const Node& node, const LazyTensor& tensor, const Predicate& predicate) {
  const Graph question = question_of(predicate, tensor.type());
  const auto stay = [&](NodeSpec& spec) {
    spec.place = node.place();
    for (const Annotation& annotation : node.annotations()) spec.annotations.push_back(annotation);
  };
  NodeSpec spec = copy_of(node, inlined(question, {tensor}, stay));
  List expected;
  expected.items.emplace_back(Scalar(answer_for(question, *number_read_by(node))));
  for (NamedAttribute& attribute : spec.execution)
    if (attribute.name == kExpected) attribute.value = expected;
  return std::move(spec).make_node();
}

}  // namespace

Predicate predicate(std::string place, std::string_view comparison) {
  if (comparison == "any") return {std::move(place), nullptr, "any"};
  const size_t end = comparison.find_first_not_of("<>=!");
  const std::string_view op = comparison.substr(0, std::min(end, comparison.size()));
  std::string_view text = comparison.substr(op.size());
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  double number = 0;
  const auto [read, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::set<std::string_view> known = {">", ">=", "<", "<=", "==", "!="};
  if (!known.contains(op) || error != std::errc() || read != text.data() + text.size())
    throw UserError("[unify] the predicate at " + place +
                    ": expected a comparison with a number, as '> 0', or 'any', received '" +
                    std::string(comparison) + "'");
  const auto holds = [op = std::string(op), number](const LazyTensor& x) {
    if (op == ">") return x > number;
    if (op == ">=") return x >= number;
    if (op == "<") return x < number;
    if (op == "<=") return x <= number;
    return op == "==" ? eq(x, number) : ne(x, number);
  };
  return {std::move(place), holds, std::string(comparison)};
}

std::string print(const Predicate& predicate) {
  return "the number read at " + predicate.place + ": " +
         (predicate.text.empty() ? "what a function asks"
          : predicate.holds      ? "whether it is " + predicate.text
                                 : "nothing is asked of it");
}

Graph with_predicates(const Graph& graph, const std::vector<Predicate>& predicates) {
  if (predicates.empty()) return graph;
  return rebuild(graph, [&](const Node& node, const LazyTensors& operands) {
    std::optional<Replacement> now;
    if (const Predicate* asked = predicate_of(node, predicates))
      now = Replacement{{},
                        {asked->holds ? read_of_answer(node, operands.at(0), *asked)
                                      : free_read(node, operands.at(0))}};
    return now;
  });
}

void expect_places(const std::vector<Graph>& graphs, const std::vector<Predicate>& predicates) {
  std::set<std::string> lines;
  for (const Graph& graph : graphs)
    for (const NodePtr& node : graph.effects())
      if (number_read_by(*node)) lines.insert(std::string(node->annotation("source")));
  for (const Predicate& one : predicates) {
    bool found = false;
    for (const Graph& graph : graphs)
      for (const NodePtr& node : graph.effects())
        found = found || (number_read_by(*node) && is_at(*node, one.place));
    if (found) continue;
    std::string all;
    for (const std::string& line : lines)
      all += (all.empty() ? "" : ", ") + (line.empty() ? "a line that is not known" : line);
    throw UserError("[unify] no example reads a number at " + one.place +
                    "; they read numbers at " + (all.empty() ? "no line" : all));
  }
}

}  // namespace composit
