#include "composit/interchange/definition.h"

#include "composit/interchange/scans.h"
#include "composit/interchange/tensorize.h"
#include "composit/ir/error.h"
#include "composit/ops/functions.h"
#include "composit/passes/definition.h"

namespace composit::interchange {
namespace {

// A result with the dtype and sizes that the node says.
LazyTensor fitting(const LazyTensor& result, const Type& type) {
  if (!is_defined(type)) return {};
  if (!result || result.sizes() != type.sizes)
    throw UserError("its loops give a result of other sizes than it has");
  return to(result, type.dtype);
}

}  // namespace

std::optional<Graph> definition_of(const Node& node) {
  if (auto parts = decomposition(node)) return parts;
  const Operation* operation = row_for(node);
  if (operation == nullptr) return std::nullopt;
  LazyTensors blocks, operands;  // loops count the items of a list that are missing as well
  for (const LazyTensor& operand : node.operands()) {
    if (operand)
      blocks.push_back(input(std::to_string(blocks.size()),
                             tensor_type(operand.dtype(), operand.sizes()), InputKind::block));
    operands.push_back(operand ? blocks.back() : LazyTensor());
  }
  LazyTensors whole;
  const Call call = call_of(node, operation->schema, blocks_for(node, whole));
  if (const auto scan = scan_by_doubling(call, node.outputs()))
    return Graph({.inputs = whole, .outputs = *scan});
  const auto loops = loops_of(*operation, call_of(node, operation->schema));
  if (!loops || loops->results.size() != node.outputs().size()) return std::nullopt;
  LazyTensors outputs;
  const LazyTensors results = tensorize(*loops, operands);
  for (size_t i = 0; i < results.size(); ++i)
    outputs.push_back(fitting(results[i], node.outputs()[i]));
  return Graph({.inputs = blocks, .outputs = outputs});
}

std::optional<Graph> body_of(const Node& node) {
  const Attribute* body = node.find_run("body");
  if (body == nullptr) return std::nullopt;
  const Graph& graph = *body->as<Region>();
  return Graph({.inputs = graph.inputs(), .outputs = graph.outputs()});
}

bool sizes_follow_values(const Node& node) {
  const Operation* operation = operation_of(node);
  if (operation == nullptr) return false;
  try {
    infer(*operation, call_of(node, operation->schema));
  } catch (const SizesDependOnValues&) {
    return true;
  } catch (const UserError&) {  // a row that does not know this case
  }
  return false;
}

}  // namespace composit::interchange
