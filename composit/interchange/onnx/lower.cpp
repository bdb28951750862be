#include "composit/interchange/onnx/lower.h"

#include "composit/interchange/checks.h"
#include "composit/interchange/onnx/ops.h"
#include "composit/interchange/onnx/rows.h"
#include "composit/ir/error.h"
#include "composit/ir/transform.h"

namespace composit::onnx {
namespace {

const Symbol& non_zero() {
  static const Symbol op(std::string(kDomain) + "::NonZero");
  return op;
}

// Sizes that follow from values have to be what they were.
void hold_sizes(Lowered& lowered) {
  Graph::Parts parts = lowered.graph.parts();
  for (const NodePtr& node : lowered.graph.nodes()) {
    if (node->op() != non_zero()) continue;
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

// Within branches and loops nobody can ask.
Graph without_open_sizes(const Graph& region) {
  for (const NodePtr& node : region.nodes())
    if (node->op() == non_zero())
      throw UserError("within a branch or a loop nobody can ask how long a result is" +
                      interchange::place_of(*node));
  return rebuild_regions(region, without_open_sizes);
}

}  // namespace

Lowered lower(const Graph& graph, int opset) {
  Lowered lowered =
      interchange::lower(graph, {.name = "ONNX", .domain = kDomain, .rows = rows(opset)});
  interchange::guard_checks(lowered, kDomain, "And");
  rebuild_regions(lowered.graph, without_open_sizes);
  hold_sizes(lowered);
  return lowered;
}

}  // namespace composit::onnx
