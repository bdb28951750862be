#include "composit/passes/share_parts.h"

#include <algorithm>
#include <variant>

#include "composit/ir/flat_map.h"
#include "composit/passes/common_subexpressions.h"
#include "composit/passes/definition.h"

namespace composit {
namespace {

using HashSet = FlatMap<Hash, std::monostate>;

// True if every node that computes `outputs` from the operands of `whole` is in the graph.
bool are_there(const LazyTensors& outputs, const Node& whole, const HashSet& graph) {
  std::vector<NodePtr> open;
  const auto is_operand = [&](const NodePtr& node) {
    return std::any_of(whole.operands().begin(), whole.operands().end(),
                       [&](const LazyTensor& operand) { return operand.node == node; });
  };
  const auto need = [&](const LazyTensor& tensor) {
    if (tensor && !is_operand(tensor.node) && tensor.node->op() != ops::kConstant)
      open.push_back(tensor.node);
  };
  for (const LazyTensor& output : outputs) need(output);
  if (open.empty()) return false;
  while (!open.empty()) {
    const NodePtr node = open.back();
    open.pop_back();
    if (!graph.contains(node->hash())) return false;
    for (const LazyTensor& operand : node->operands()) need(operand);
  }
  return true;
}

}  // namespace

Graph share_parts(const Graph& graph) {
  HashSet present;
  for (const NodePtr& node : graph.nodes()) present.insert(node->hash(), {});
  const Rewrite open = [&](const Node& node, const LazyTensors& operands) {
    std::optional<Replacement> replacement;
    if (!is_replaceable(node)) return replacement;
    const auto parts = decomposition(node);
    if (parts && are_there(in_place_of(node, *parts), node, present))
      replacement =
          Replacement{.outputs = in_place_of(*copy_of(node, operands).make_node(), *parts)};
    return replacement;
  };
  return common_subexpressions(rebuild(graph, unless_refused(open)));
}

}  // namespace composit
