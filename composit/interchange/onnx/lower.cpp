#include "composit/interchange/onnx/lower.h"

#include "composit/interchange/onnx/ops.h"
#include "composit/interchange/onnx/rows.h"

namespace composit::onnx {
namespace {

// Sizes that follow from values have to be what they were.
void hold_sizes(Lowered& lowered) {
  static const Symbol kNonZero(std::string(kDomain) + "::NonZero");
  Graph::Parts parts = lowered.graph.parts();
  for (const NodePtr& node : lowered.graph.nodes()) {
    if (node->op() != kNonZero) continue;
    const LazyTensor value{node, 0};
    const int64_t elements = value.type().numel();
    const LazyTensor size = call("Size", {value}, {}, tensor_type(DType::int64, {}));
    parts.outputs.push_back(
        compare("Equal", size, number(static_cast<double>(elements), DType::int64)));
    lowered.guards.push_back("the number of elements of nonzero" + interchange::place_of(*node) +
                             " is " + std::to_string(elements));
  }
  lowered.graph = Graph(std::move(parts));
}

}  // namespace

Lowered lower(const Graph& graph) {
  Lowered lowered = interchange::lower(graph, {.name = "ONNX", .domain = kDomain, .rows = rows()});
  hold_sizes(lowered);
  return lowered;
}

}  // namespace composit::onnx
