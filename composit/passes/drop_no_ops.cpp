#include "composit/passes/drop_no_ops.h"

#include "composit/passes/definition.h"

namespace composit {
namespace {

const Symbol kReshape("aten::reshape"), kSlice("aten::slice.Tensor"), kPermute("aten::permute"),
    kNeg("aten::neg"), kMul("aten::mul.Tensor"), kDiv("aten::div.Tensor"), kSub("aten::sub.Tensor");

// The operand that the row's decomposition gives back.
LazyTensor passed_on(const Node& node) {
  const auto parts = decomposition(node);
  if (!parts || parts->outputs().size() != 1) return {};
  size_t place = 0;
  for (const LazyTensor& operand : node.operands())
    if (operand && parts->outputs()[0].node == parts->inputs()[place++].node) return operand;
  return {};
}

// True if the loop form of `node` copies its first operand, which has the same type.
bool copies(const Node& node) {
  return node.op() == kReshape ||
         same_loops(node, *respelled(node, "aten::alias", {node.operands()[0]}));
}

bool has_alpha_one(const Node& node) {
  const Attribute* alpha = node.find_attribute("alpha");
  return alpha == nullptr || is_literal(Expr(alpha->as<Scalar>()), 1);
}

LazyTensor unchanged_by_number(const Node& node) {
  const auto& operands = node.operands();
  // (inf + 0i) * (1 + 0i) is NaN.
  const bool real = !is_complex(node.outputs()[0].dtype);
  if (real && node.op() == kMul && is_filled_with(operands[0], 1)) return operands[1];
  if (real && (node.op() == kMul || node.op() == kDiv) && is_filled_with(operands[1], 1))
    return operands[0];
  if (node.op() == kSub && has_alpha_one(node) && is_filled_with(operands[1], 0))
    return operands[0];
  return {};
}

// The operand that `node` may be equal to: it is if the types agree.
LazyTensor candidate(const Node& node, const DropOptions& options) {
  const auto& operands = node.operands();
  const Operation* operation = row_for(node);
  if (operation == nullptr || operands.empty() || !operands[0]) return {};
  if (node.op() == kMul || node.op() == kDiv || node.op() == kSub) return unchanged_by_number(node);
  if (node.op() == kNeg && operands[0].node->op() == kNeg &&
      is_replaceable(*operands[0].node, false))
    return operands[0].node->operands()[0];
  const Row& row = operation->row;
  if (row.decompose) return passed_on(node);
  if (!row.nondifferentiable.empty() && !options.detach) return {};
  if (options.keep_slices && node.op() == kSlice) return {};
  const bool may_copy = row.loops && operands[0].type() == node.outputs()[0] && copies(node);
  return may_copy ? operands[0] : LazyTensor();
}

// permute(permute(x)) and reshape(reshape(x)) as one.
NodePtr merged(const Node& node) {
  if ((node.op() != kPermute && node.op() != kReshape) || row_for(node) == nullptr) return nullptr;
  const Node& before = *node.operands()[0].node;
  if (before.op() != node.op() || row_for(before) == nullptr || !is_replaceable(before, false))
    return nullptr;
  const LazyTensor x = before.operands()[0];
  if (node.op() == kReshape) return respelled(node, "aten::reshape", {x, node.attribute("shape")});
  const auto first = to_ints(before.attribute("dims"));
  auto axes = to_ints(node.attribute("dims"));
  for (int64_t& axis : axes)
    axis = wrap_axis(first[static_cast<size_t>(wrap_axis(axis, x.rank()))], x.rank());
  return respelled(node, "aten::permute", {x, axes});
}

}  // namespace

Graph drop_no_ops(const Graph& graph, const DropOptions& options) {
  const Graph inner =
      rebuild_regions(graph, [&](const Graph& region) { return drop_no_ops(region, options); });
  const auto drop = [&](const Node& node, const LazyTensors& operands) {
    std::optional<Replacement> replacement;
    if (!is_replaceable(node, options.detach) || node.outputs().size() != 1) return replacement;
    NodePtr now = copy_of(node, operands).make_node();
    if (const NodePtr shorter = merged(*now)) {
      now = shorter;
      replacement = replace_by(now);
    }
    const LazyTensor same = candidate(*now, options);
    // A number that was seen to be one would count less in promotion than what it stands in for.
    if (same && same.type() == node.outputs()[0] && !is_wrapped_number(same))
      replacement = Replacement{.outputs = {same}};
    return replacement;
  };
  return rebuild(inner, unless_refused(drop));
}

}  // namespace composit
