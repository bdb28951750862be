#include "composit/interchange/stablehlo/lower.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "composit/interchange/checks.h"
#include "composit/interchange/stablehlo/ops.h"
#include "composit/interchange/stablehlo/rows.h"
#include "composit/ir/transform.h"
#include "composit/ops/native.h"

namespace composit::stablehlo {
namespace {

bool is(const Node& node, std::string_view op) {
  const std::string_view name = node.op().str();
  return node.op().domain() == kDomain && name.substr(kDomain.size() + 2) == op;
}

bool is_constant(const LazyTensor& x) { return x.node->op() == ops::kConstant; }

std::vector<int64_t> values_of(const LazyTensor& constant) {
  return elements<int64_t>(constant.node->attribute("value").as<Array>());
}

// The least and the largest number that integers can be, as far as their operators show.
struct Interval {
  std::optional<int64_t> least = {}, largest = {};
};

Interval interval_of(const LazyTensor& x, int depth);

// `of_max`: maximum, else minimum.
Interval bounded(const Interval& a, const Interval& b, bool of_max) {
  const auto pick = [&](std::optional<int64_t> p, std::optional<int64_t> q, bool needs_both) {
    if (p && q) return std::optional(of_max ? std::max(*p, *q) : std::min(*p, *q));
    return needs_both ? std::nullopt : (p ? p : q);
  };
  return {pick(a.least, b.least, !of_max), pick(a.largest, b.largest, of_max)};
}

Interval hull_of(const Interval& a, const Interval& b) {
  Interval both;
  if (a.least && b.least) both.least = std::min(*a.least, *b.least);
  if (a.largest && b.largest) both.largest = std::max(*a.largest, *b.largest);
  return both;
}

// `select(i < 0, i + size, i)` of what is never below 0 is what it was.
std::optional<Interval> unwrapped(const Node& select, int depth) {
  const LazyTensor& kept = select.operands()[2];
  const Node& other = *select.operands()[1].node;
  if (!is(other, "add") || !(other.operands()[0] == kept)) return std::nullopt;
  const Interval range = interval_of(kept, depth);
  return range.least && *range.least >= 0 ? std::optional(range) : std::nullopt;
}

Interval interval_of(const LazyTensor& x, int depth) {
  if (depth == 0) return {};
  const Node& node = *x.node;
  if (is_constant(x)) {
    const std::vector<int64_t> values = values_of(x);
    if (values.empty()) return {0, 0};
    const auto [least, largest] = std::minmax_element(values.begin(), values.end());
    return {*least, *largest};
  }
  const auto of = [&](size_t operand) { return interval_of(node.operands()[operand], depth - 1); };
  if (is(node, "iota"))
    return {0, x.sizes()[static_cast<size_t>(node.attribute("dim").as_int())] - 1};
  for (const char* op : {"reshape", "broadcast_in_dim", "transpose", "slice", "reverse"})
    if (is(node, op)) return of(0);
  if (is(node, "convert"))
    return is_floating_point(node.operands()[0].dtype()) ? Interval{} : of(0);
  if (is(node, "maximum") || is(node, "minimum")) return bounded(of(0), of(1), is(node, "maximum"));
  if (is(node, "concatenate")) {
    Interval all = of(0);
    for (size_t i = 1; i < node.operands().size(); ++i) all = hull_of(all, of(i));
    return all;
  }
  if (is(node, "select")) {
    if (const auto range = unwrapped(node, depth - 1)) return *range;
    return hull_of(of(1), of(2));
  }
  return {};
}

// ---- what has to hold ---------------------------------------------------------------------------

// What `in_range` asks; nothing where operators show the answer.
LazyTensor answer_of(const LazyTensor& indices, int64_t limit) {
  constexpr int kDepth = 12;
  const LazyTensor yes = number(1, DType::bool_);
  const Interval range = interval_of(indices, kDepth);
  if (range.least && range.largest && *range.least >= 0 && *range.largest < limit) return yes;
  const LazyTensor low = compare("GE", indices, number(0, DType::int64));
  const LazyTensor high = compare("LT", indices, number(static_cast<double>(limit), DType::int64));
  return over_all("and", binary("and", low, high), yes);
}

Graph with_answers(const Graph& graph) {
  return rebuild(
      rebuild_regions(graph, with_answers), [](const Node& node, const LazyTensors& operands) {
        std::optional<Replacement> replacement;
        if (is(node, "in_range"))
          replacement =
              Replacement{.outputs = {answer_of(operands[0], node.attribute("limit").as_int())}};
        return replacement;
      });
}

// ---- places that nobody asks for ----------------------------------------------------------------

// The reduction of the first operand alone, by "maximum" or "minimum".
LazyTensor values_alone(const Node& node, const LazyTensors& operands, const std::string& op) {
  const bool over_windows = is(node, "reduce_window");
  Attributes attributes;
  for (const NamedAttribute& one : node.attributes())
    if (one.key() != "body" && one.key() != "of_values") attributes.push_back(one);
  const Type& type = node.outputs()[0];
  attributes.push_back(over_windows ? attribute("body", combiner(type.dtype, op))
                                    : attribute("applies", op));
  return call(over_windows ? "reduce_window" : "reduce", {operands[0], operands[2]},
              std::move(attributes), type);
}

// A search for the largest element and its place, of which only the element is used, is a plain
// reduction: compilers are better at these.
Graph without_unused_places(const Graph& graph) {
  std::set<std::pair<const Node*, uint32_t>> used;
  const auto use = [&](const LazyTensors& values) {
    for (const LazyTensor& value : values)
      if (value) used.insert({value.node.get(), value.index});
  };
  for (const NodePtr& node : graph.nodes()) use(node->operands());
  use(graph.outputs());
  for (const Mutation& mutation : graph.mutations()) use({mutation.value});
  return rebuild(graph, [&](const Node& node, const LazyTensors& operands) {
    std::optional<Replacement> replacement;
    const Attribute* plain = node.find_attribute("of_values");
    if (plain != nullptr && !used.contains({&node, 1}))
      replacement =
          Replacement{.outputs = {values_alone(node, operands, plain->as<std::string>()), {}}};
    return replacement;
  });
}

}  // namespace

Lowered lower(const Graph& graph, bool drop_guards) {
  Lowered lowered =
      interchange::lower(graph, {.name = "StableHLO", .domain = kDomain, .rows = rows()});
  lowered.graph = with_answers(lowered.graph);
  interchange::guard_checks(lowered, "stablehlo::and", drop_guards);
  lowered.graph = without_unused_places(lowered.graph);
  return lowered;
}

}  // namespace composit::stablehlo
