#include "composit/passes/inline_calls.h"

#include "composit/ir/transform.h"

namespace composit {
namespace {

void move_into(NodeSpec& spec, std::string_view outer) {
  if (outer.empty()) return;
  for (Annotation& annotation : spec.annotations)
    if (annotation.key == Symbol("scope") && annotation.operand < 0) {
      annotation.value = std::string(outer) + "." + annotation.value;
      return;
    }
  spec.annotate("scope", std::string(outer));
}

}  // namespace

LazyTensors inlined_body(const Node& node, const LazyTensors& operands) {
  LazyTensors arguments;
  for (const LazyTensor& operand : operands)
    if (operand) arguments.push_back(operand);
  const bool call = node.op() == ops::kCall;
  return inlined(*node.find_run("body")->as<Region>(), arguments, [&](NodeSpec& spec) {
    spec.place = node.place();
    if (call) move_into(spec, node.annotation("scope"));
  });
}

Graph inline_calls(const Graph& graph) {
  const Graph inner = rebuild_regions(graph, inline_calls);
  return rebuild(inner, [](const Node& node, const LazyTensors& operands) {
    std::optional<Replacement> replacement;
    if (node.op() == ops::kCall && node.effect() < 0)
      replacement = Replacement{.outputs = inlined_body(node, operands)};
    return replacement;
  });
}

}  // namespace composit
