#include "composit/passes/straight_through.h"

#include "composit/ir/transform.h"
#include "composit/ops/functions.h"

namespace composit {
namespace {

bool begins(const Node& node, std::string_view text) { return node.op().str().starts_with(text); }

}  // namespace

Graph straight_through(const Graph& graph) {
  return rebuild(graph, [](const Node& node, const LazyTensors& operands) {
    std::optional<Replacement> replacement;
    if (!begins(node, "quantized_decomposed::dequantize_")) return replacement;
    const Node& integers = *operands[0].node;
    if (!begins(integers, "quantized_decomposed::quantize_")) return replacement;
    const LazyTensor value{copy_of(node, operands).make_node(), 0};
    const LazyTensor x = to(integers.operands()[0], value.dtype());
    if (!is_floating_point(value.dtype()) || x.sizes() != value.sizes()) return replacement;
    const LazyTensor through = apply_one("composit::straight_through", {value, x});
    NodeSpec spec = copy_of(*through.node, {value, x});
    spec.place = node.place();
    spec.annotations = node.annotations();
    replacement = replace_by(std::move(spec).make_node());
    return replacement;
  });
}

}  // namespace composit
