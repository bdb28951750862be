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

LazyTensors call_region_as_node(const std::string& name, const Region& body,
                                const LazyTensors& operands) {
  NodeSpec spec(ops::kCall);
  for (const LazyTensor& operand : operands) spec.tensor(operand);
  spec.attribute("name", name).run("body", body);
  for (const LazyTensor& output : body->outputs()) spec.output(output.type());
  const NodePtr node = std::move(spec).make_node();
  LazyTensors results;
  for (uint32_t i = 0; i < node->outputs().size(); ++i) results.push_back({node, i});
  return results;
}

LazyTensors call_as_node(const std::string& name, const Graph& graph, const LazyTensors& operands) {
  Graph::Parts parts;
  LazyTensors blocks;
  for (const LazyTensor& one : graph.inputs()) {
    blocks.push_back(input(std::to_string(blocks.size()), one.type(), InputKind::block));
    parts.inputs.push_back(blocks.back());
  }
  for (const LazyTensor& output : inlined(graph, blocks)) parts.outputs.push_back(output);
  return call_region_as_node(name, std::make_shared<const Graph>(std::move(parts)), operands);
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
