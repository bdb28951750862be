#include "composit/interchange/onnx/lower.h"

#include <map>

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

const Symbol& asked() {
  static const Symbol op(std::string(kDomain) + "::checked");
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
Graph without_questions(const Graph& region) {
  const Graph plain = rebuild_regions(region, without_questions);
  for (const NodePtr& node : plain.nodes())
    if (node->op() == non_zero() || node->op() == asked())
      throw UserError(
          "a model cannot ask within a branch or a loop how long a result is, or when a "
          "loop ends" +
          interchange::place_of(*node));
  return plain;
}

// What rows ask for (`checked`) becomes a guard, once for each question.
void hold_checks(Lowered& lowered) {
  std::map<std::string, LazyTensor> holds;
  const Graph plain = rebuild(rebuild_regions(lowered.graph, without_questions),
                              [&](const Node& node, const LazyTensors& operands) {
                                std::optional<Replacement> replacement;
                                if (node.op() != asked()) return replacement;
                                LazyTensor& all = holds[node.attribute("what").as<std::string>()];
                                all = all ? compare("And", all, operands[1]) : operands[1];
                                replacement = Replacement{.outputs = {operands[0]}};
                                return replacement;
                              });
  Graph::Parts parts = plain.parts();
  for (const auto& [what, answer] : holds) {
    parts.outputs.push_back(answer);
    lowered.guards.push_back(what);
  }
  lowered.graph = Graph(std::move(parts));
}

}  // namespace

Lowered lower(const Graph& graph) {
  Lowered lowered = interchange::lower(graph, {.name = "ONNX", .domain = kDomain, .rows = rows()});
  hold_checks(lowered);
  hold_sizes(lowered);
  return lowered;
}

}  // namespace composit::onnx
