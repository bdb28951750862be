#include "composit/family/family.h"

#include <algorithm>
#include <numeric>

#include "composit/ir/error.h"
#include "composit/ir/transform.h"
#include "composit/ops/draws.h"
#include "composit/passes/definition.h"

namespace composit {
namespace {

const Symbol kBody("body"), kEffect("effect");

Region body_of(const Node& node) {
  const Attribute* body = node.find_run("body");
  const auto* region = body == nullptr ? nullptr : body->get_if<Region>();
  return region == nullptr ? nullptr : *region;
}

// What composit alone runs, by its body, is no operator that could be called instead.
bool is_own(const Node& node) { return node.op().str().starts_with("composit::"); }

// A row says what the node means, and its operator can be called with the node's operands: a
// composite may also take what its inside refers to.
bool has_row(const Node& node) {
  try {
    return row_for(node) != nullptr;
  } catch (const UserError&) {
    return false;
  }
}

bool has_droppable_body(const Node& node) {
  const Region body = body_of(node);
  return body != nullptr && body->effects().empty() && !is_own(node) && has_row(node);
}

// A composite of which no row says what it means and that draws nothing: its nodes say it. Those
// that ask about values are opened, too: item, is_nonzero, nonzero_numpy.
bool is_opened(const Node& node) {
  const Region body = body_of(node);
  if (body == nullptr || is_own(node) || body->effects().size() > 1) return false;
  if (body->effects().empty()) return !has_row(node);
  const Node& effect = *body->effects()[0];
  return body_of(effect) == nullptr ? find_draw(effect.op()) == nullptr : is_opened(effect);
}

// Copies the node where something changes.
Replacement plain(const Node& node, const LazyTensors& operands) {
  NodeSpec spec = copy_of(node, operands);
  if (has_droppable_body(node))
    std::erase_if(spec.execution,
                  [](const NamedAttribute& attribute) { return attribute.name == kBody; });
  for (Type& type : spec.outputs) type = with_plain_unit_strides(std::move(type));
  return replace_by(std::move(spec).make_node());
}

// The nodes of the body of such a composite in its place.
Replacement opened(const Node& node, const LazyTensors& operands) {
  const Region body = body_of(node);
  FlatMap<const Node*, Replacement> made;
  const auto value = [&](const LazyTensor& old) {
    return old ? made.find(old.node.get())->outputs.at(old.index) : LazyTensor();
  };
  size_t next = 0;
  for (const LazyTensor& input : body->inputs()) {
    while (!operands.at(next)) ++next;  // absent operands are no inputs of the body
    made.insert(input.node.get(), Replacement{.outputs = {operands[next++]}});
  }
  Replacement whole;
  for (const NodePtr& inner : body->nodes()) {
    if (is_input(*inner)) continue;
    LazyTensors arguments;
    for (const LazyTensor& operand : inner->operands()) arguments.push_back(value(operand));
    NodeSpec spec = copy_of(*inner, arguments);
    spec.place = node.place();
    for (NamedAttribute& attribute : spec.execution)
      if (attribute.name == kEffect) attribute.value = node.effect();
    const NodePtr copy = std::move(spec).make_node();
    Replacement replacement = is_opened(*copy) ? opened(*copy, arguments) : plain(*copy, arguments);
    if (inner->effect() >= 0) whole.effects = replacement.effects;
    made.insert(inner.get(), std::move(replacement));
  }
  for (const LazyTensor& output : body->outputs()) whole.outputs.push_back(value(output));
  return whole;
}

bool is_plain(const Node& node) {
  for (const Type& type : node.outputs())
    if (with_plain_unit_strides(type) != type) return false;
  return !has_droppable_body(node);
}

}  // namespace

size_t Family::formula_count() const {
  size_t count = 0;
  for (const NodePtr& node : example.nodes()) count += formulas_of(*node).size();
  return count;
}

const NodeFormulas& Family::formulas_of(const Node& node) const {
  static const NodeFormulas none;
  const NodeFormulas* found = formulas.find(&node);
  return found == nullptr ? none : *found;
}

void widen(Family& family, const SizeValues& sizes) {
  for (FreeSize& size : family.sizes) {
    const auto found = sizes.find(size.name);
    if (found == sizes.end()) continue;
    size.step = std::gcd(size.step, found->second - size.low);
    size.low = std::min(size.low, found->second);
    size.high = std::max(size.high, found->second);
  }
}

std::string describe(const Node& node, const Names& names) {
  std::string text = node.outputs().empty() ? "" : names.of(node, 0) + " = ";
  text += node.op().str();
  if (const auto source = node.annotation("source"); !source.empty())
    text += " at " + std::string(source);
  return text;
}

namespace {

void add_formula_lines(const Family& family, const Graph& graph, std::vector<std::string>& lines) {
  const Names names(graph);
  for (const NodePtr& node : graph.nodes()) {
    for (const IntegerFormula& one : family.formulas_of(*node)) {
      if (one.formula.kind() == SizeFormula::Kind::size) continue;
      const auto& attributes =
          one.of == IntegerFormula::Of::attribute ? node->attributes() : node->execution();
      const std::string what = one.of == IntegerFormula::Of::output
                                   ? "axis " + std::to_string(one.position) + " of the result"
                                   : "'" + attributes.at(one.number).name.str() + "'";
      lines.push_back(what + " is " + print(one.formula, names) + ": " + describe(*node, names));
    }
    for_each_region(*node,
                    [&](const Region& region) { add_formula_lines(family, *region, lines); });
  }
}

}  // namespace

std::vector<std::string> formula_lines(const Family& family) {
  std::vector<std::string> lines;
  add_formula_lines(family, family.example, lines);
  return lines;
}

Type with_plain_unit_strides(Type type) {
  if (type.layout != Layout::strided || !is_defined(type)) return type;
  for (size_t axis = type.rank(); axis-- > 0;) {
    if (type.sizes[axis] != 1) continue;
    const bool last = axis + 1 == type.rank();
    type.strides[axis] =
        last ? 1 : std::max<int64_t>(type.sizes[axis + 1], 1) * type.strides[axis + 1];
  }
  return type;
}

Graph without_incidentals(const Graph& graph) {
  const Graph outer = rebuild(graph, [](const Node& node, const LazyTensors& operands) {
    std::optional<Replacement> replacement;
    if (is_input(node) && input_kind(node) != InputKind::block) return replacement;
    if (is_opened(node))
      replacement = opened(node, operands);
    else if (!is_plain(node))
      replacement = plain(node, operands);
    return replacement;
  });
  return rebuild_regions(outer, without_incidentals);
}

}  // namespace composit
