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

DType widened(DType dtype, bool halves) {
  const bool is_half = dtype == DType::bfloat16 || dtype == DType::float16;
  return dtype == DType::float32 || (halves && is_half) ? DType::float64 : dtype;
}

Attribute widened(const Attribute& attribute, bool halves) {
  if (const DType* dtype = attribute.get_if<DType>()) return widened(*dtype, halves);
  if (const auto* list = attribute.get_if<composit::List>()) {
    composit::List result{list->element, {}};
    for (const Attribute& item : list->items) result.items.push_back(widened(item, halves));
    return result;
  }
  if (const auto* region = attribute.get_if<composit::Region>())
    return std::make_shared<const composit::Graph>(in_float64(**region, halves));
  if (const auto* array = attribute.get_if<composit::Array>()) {
    if (widened(array->type().dtype, halves) == array->type().dtype) return attribute;
    return tracer::to_array(tracer::to_tensor(*array).to(c10::kDouble));
  }
  return attribute;
}

composit::Type widened(composit::Type type, bool halves) {
  type.dtype = widened(type.dtype, halves);
  return type;
}

class Widening {
 public:
  explicit Widening(bool halves) : halves_(halves) {}
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
      spec.attributes.push_back({name, widened(value, halves_)});
    for (const auto& [name, value] : node.execution())
      spec.execution.push_back({name, widened(value, halves_)});
    for (const composit::Type& type : node.outputs())
      spec.outputs.push_back(widened(type, halves_));
    nodes_.emplace(&node, std::move(spec).make_node());
  }

 private:
  bool halves_;
  std::unordered_map<const Node*, composit::NodePtr> nodes_;
};

}  // namespace

composit::Graph in_float64(const composit::Graph& graph, bool halves) {
  Widening widen(halves);
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
