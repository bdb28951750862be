#include "composit/passes/straight_through.h"

#include <algorithm>

#include "composit/ir/transform.h"
#include "composit/ops/functions.h"
#include "composit/passes/definition.h"

namespace composit {
namespace {

const Symbol kThrough("composit::straight_through");

bool begins(const Node& node, std::string_view text) { return node.op().str().starts_with(text); }

}  // namespace

Graph straight_through(const Graph& graph) {
  const auto is_done = [&](const Node& node) {
    const std::vector<Use>& uses = graph.successors(node);
    return std::any_of(uses.begin(), uses.end(), [](const Use& use) {
      return use.node->op() == kThrough && use.operand == 0;
    });
  };
  const Rewrite rewrite = [&](const Node& node, const LazyTensors& operands) {
    std::optional<Replacement> replacement;
    if (!begins(node, "quantized_decomposed::dequantize_") || operands.empty() || !operands[0] ||
        is_done(node))
      return replacement;
    const Node& integers = *operands[0].node;
    if (!begins(integers, "quantized_decomposed::quantize_")) return replacement;
    const LazyTensor value{copy_of(node, operands).make_node(), 0};
    const LazyTensor x = to(integers.operands()[0], value.dtype());
    if (!is_floating_point(value.dtype()) || x.sizes() != value.sizes()) return replacement;
    const LazyTensor through = apply_one(kThrough.str(), {value, x});
    NodeSpec spec = copy_of(*through.node, {value, x});
    spec.place = node.place();
    spec.annotations = node.annotations();
    replacement = replace_by(std::move(spec).make_node());
    return replacement;
  };
  return rebuild(graph, unless_refused(rewrite));
}

}  // namespace composit
