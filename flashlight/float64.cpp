#include "flashlight/float64.h"

#include <ATen/core/Tensor.h>

#include <unordered_map>

#include "tracer/convert.h"

namespace flashlight {
namespace {

using composit::Attribute;
using composit::DType;
using composit::LazyTensor;
using composit::Node;
using composit::NodeSpec;

Attribute widened(const Attribute& attribute) {
  if (const DType* dtype = attribute.get_if<DType>())
    return *dtype == DType::float32 ? DType::float64 : *dtype;
  if (const auto* list = attribute.get_if<composit::List>()) {
    composit::List result{list->element, {}};
    for (const Attribute& item : list->items) result.items.push_back(widened(item));
    return result;
  }
  if (const auto* region = attribute.get_if<composit::Region>())
    return std::make_shared<const composit::Graph>(in_float64(**region));
  if (const auto* array = attribute.get_if<composit::Array>()) {
    if (array->type().dtype != DType::float32) return attribute;
    return tracer::to_array(tracer::to_tensor(*array).to(c10::kDouble));
  }
  return attribute;
}

composit::Type widened(composit::Type type) {
  if (type.dtype == DType::float32) type.dtype = DType::float64;
  return type;
}

class Widening {
 public:
  LazyTensor operator()(const LazyTensor& value) const {
    return value ? LazyTensor{nodes_.at(value.node.get()), value.index} : LazyTensor();
  }
  const composit::NodePtr& operator()(const composit::NodePtr& node) const {
    return nodes_.at(node.get());
  }

  void add(const Node& node) {
    NodeSpec spec(node.op());
    spec.arguments = node.arguments();
    spec.annotations = node.annotations();
    for (const LazyTensor& operand : node.operands()) spec.operands.push_back((*this)(operand));
    for (const auto& [name, value] : node.attributes())
      spec.attributes.push_back({name, widened(value)});
    for (const auto& [name, value] : node.execution())
      spec.execution.push_back({name, widened(value)});
    for (const composit::Type& type : node.outputs()) spec.outputs.push_back(widened(type));
    nodes_.emplace(&node, std::move(spec).make_node());
  }

 private:
  std::unordered_map<const Node*, composit::NodePtr> nodes_;
};

}  // namespace

composit::Graph in_float64(const composit::Graph& graph) {
  Widening widen;
  for (const composit::NodePtr& node : graph.nodes()) widen.add(*node);
  composit::Graph::Parts parts;
  for (const LazyTensor& input : graph.inputs()) parts.inputs.push_back(widen(input));
  for (const LazyTensor& output : graph.outputs()) parts.outputs.push_back(widen(output));
  for (const auto& [target, value] : graph.mutations())
    parts.mutations.push_back({widen(target), widen(value)});
  for (const composit::NodePtr& effect : graph.effects()) parts.effects.push_back(widen(effect));
  return composit::Graph(std::move(parts));
}

}  // namespace flashlight
