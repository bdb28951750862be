#include "composit/passes/outline_nodes.h"

#include <algorithm>
#include <set>

#include "composit/ir/flat_map.h"
#include "composit/ir/scope.h"
#include "composit/ir/transform.h"
#include "composit/op/call.h"
#include "composit/passes/definition.h"
#include "composit/passes/inline_calls.h"

namespace composit {
namespace {

// Tells which of its outputs are used.
std::set<uint32_t> used_outputs(const Graph& graph, const Node& node) {
  std::set<uint32_t> used;
  for (const Use& use : graph.successors(node)) used.insert(use.output);
  const auto add = [&](const LazyTensor& tensor) {
    if (tensor.node.get() == &node) used.insert(tensor.index);
  };
  for (const LazyTensor& output : graph.outputs()) add(output);
  for (const Mutation& mutation : graph.mutations()) add(mutation.value);
  return used;
}

// Equal for nodes that differ in nothing but where their operands come from.
Hash kind_of(const Node& node, const std::set<uint32_t>& used) {
  Hasher hasher;
  hasher.add(node.op().str());
  for (const NamedAttribute& attribute : node.attributes()) {
    hasher.add(attribute.key());
    attribute.value.add_to(hasher);
  }
  for (const LazyTensor& operand : node.operands())
    if (operand) operand.type().add_to(hasher);
  for (const Type& output : node.outputs()) output.add_to(hasher);
  for (const uint32_t output : used) hasher.add(uint64_t{output});
  return hasher.finish();
}

class Outlining {
 public:
  explicit Outlining(const std::function<bool(const Node&)>& wanted) : wanted_(wanted) {}

  void count(const Graph& graph) {
    for (const NodePtr& node : graph.nodes()) {
      if (node->op() == ops::kCall) {
        taken_.insert(node->attribute("name").as<std::string>());
        const Region& body = node->find_run("body")->as<Region>();
        if (counted_.insert(body.get()).second) count(*body);
      }
      if (!can_stand_alone(*node)) continue;
      const Hash kind = kind_of(*node, used_outputs(graph, *node));
      if (!counts_.insert(kind, 1)) ++*counts_.find(kind);
    }
  }

  Graph run(const Graph& graph) {
    const Graph inner = rebuild_regions(graph, [&](const Graph& body) { return run(body); });
    return rebuild(inner, [&](const Node& node, const LazyTensors& operands) {
      std::optional<Replacement> replacement;
      if (!can_stand_alone(node)) return replacement;
      const std::set<uint32_t> used = used_outputs(inner, node);
      const Region body = region_for(node, used);
      if (body == nullptr) return replacement;
      const NodePtr made = call(node, operands, body);
      replacement.emplace().outputs.resize(node.outputs().size());
      uint32_t next = 0;
      for (const uint32_t output : used) replacement->outputs[output] = LazyTensor{made, next++};
      return replacement;
    });
  }

 private:
  // Tensors that are all there make others, and nothing else happens.
  static bool can_stand_alone(const Node& node) {
    const auto absent = [](const LazyTensor& operand) { return !operand; };
    return !is_input(node) && node.op() != ops::kConstant && node.op() != ops::kCall &&
           node.effect() < 0 &&
           std::none_of(node.operands().begin(), node.operands().end(), absent);
  }

  // The body of the calls that nodes like `node` become; nothing where they stay.
  Region region_for(const Node& node, const std::set<uint32_t>& used) {
    const Hash kind = kind_of(node, used);
    const size_t* count = counts_.find(kind);
    if (count == nullptr || *count < 2) return nullptr;
    if (const Region* known = regions_.find(kind)) return *known;
    const Region region = wanted_(node) ? body_of(node, used) : nullptr;
    regions_.insert(kind, region);
    if (region != nullptr) names_.insert(region.get(), unused_name(name_for(node), taken_));
    return region;
  }

  // "layer_norm" of aten::native_layer_norm.
  static std::string name_for(const Node& node) {
    std::string_view name = node.op().base_name();
    for (const std::string_view prefix : {"_", "native_"})
      if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
    return std::string(name);
  }

  // The first tensor is an argument, numbered as in regions; others have the schema's names.
  static Region body_of(const Node& node, const std::set<uint32_t>& used) {
    Graph::Parts parts;
    const Operation* operation = row_for(node);
    for (size_t i = 0; i < node.operands().size(); ++i) {
      std::string name = std::to_string(i);
      if (i > 0 && operation != nullptr) name = name_of_operand(node, operation->schema, i);
      parts.inputs.push_back(input(name, node.operands()[i].type(), InputKind::block));
    }
    NodeSpec spec = copy_of(node, parts.inputs);
    spec.place = 0;
    spec.annotations.clear();
    const NodePtr made = std::move(spec).make_node();
    for (const uint32_t output : used) parts.outputs.push_back(LazyTensor{made, output});
    return std::make_shared<const Graph>(std::move(parts));
  }

  static std::string name_of_operand(const Node& node, const Schema& schema, size_t operand) {
    const Call call = call_of(node, schema);
    for (size_t i = 0; i < call.size(); ++i) {
      if (!schema.arguments[i].is_tensor() || !call[i].is_tensor()) continue;
      if (call[i].tensor().defined() && call.operand(call.first_tensor(i)) == operand)
        return schema.arguments[i].name;
    }
    return std::to_string(operand);
  }

  NodePtr call(const Node& node, const LazyTensors& operands, const Region& body) {
    NodeSpec spec(ops::kCall);
    for (const LazyTensor& operand : operands) spec.tensor(operand);
    spec.attribute("name", *names_.find(body.get())).run("body", body);
    for (const LazyTensor& output : body->outputs()) spec.output(output.type());
    spec.annotations = node.annotations();
    spec.place = node.place();
    return std::move(spec).make_node();
  }

  const std::function<bool(const Node&)>& wanted_;
  std::set<const Graph*> counted_;
  std::set<std::string> taken_;
  FlatMap<Hash, size_t> counts_;
  FlatMap<Hash, Region> regions_;
  FlatMap<const Graph*, std::string> names_;
};

}  // namespace

Graph outline_nodes(const Graph& graph, const std::function<bool(const Node&)>& wanted) {
  Outlining outlining(wanted);
  outlining.count(graph);
  return outlining.run(graph);
}

}  // namespace composit
