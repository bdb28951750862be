#include "flashlight/devices/partition.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "composit/ir/error.h"
#include "composit/ir/print.h"
#include "composit/ir/scope.h"
#include "composit/ir/transform.h"
#include "composit/ops/operations.h"

namespace flashlight::devices {

using composit::Graph;
using composit::LazyTensor;
using composit::LazyTensors;
using composit::Node;
using composit::NodePtr;

namespace {

// The values that the graph gives back: outputs that are there, then mutations.
LazyTensors results_of(const Graph& graph) {
  LazyTensors results;
  for (const LazyTensor& output : graph.outputs())
    if (output) results.push_back(output);
  for (const composit::Mutation& mutation : graph.mutations()) results.push_back(mutation.value);
  return results;
}

bool moves_only(const Node& node) {
  const composit::Operation* operation = composit::operation_of(node);
  return operation != nullptr && operation->row.kind == composit::OpKind::movement &&
         node.outputs().size() == 1 && node.effect() < 0;
}

// Nodes that each part may make again: constants, and views of inputs that are no larger.
class Repeated {
 public:
  Repeated(const Graph& graph, const LazyTensors& results) {
    std::set<const Node*> kept;  // parts make what the graph gives back
    for (const LazyTensor& result : results) kept.insert(result.node.get());
    for (const NodePtr& node : graph.nodes()) {
      if (kept.count(node.get()) > 0 && is_computed(*node)) continue;
      if (composit::is_input(*node)) continue;
      if (!is_computed(*node) || is_view(*node)) nodes_.insert(node.get(), true);
    }
  }
  bool contains(const Node& node) const { return nodes_.contains(&node); }

 private:
  bool is_view(const Node& node) const {
    if (node.operands().empty() || !moves_only(node)) return false;
    return std::all_of(node.operands().begin(), node.operands().end(), [&](const LazyTensor& x) {
      return (composit::is_input(*x.node) || contains(*x.node)) &&
             x.type().nbytes() >= node.outputs()[0].nbytes();
    });
  }
  composit::FlatMap<const Node*, bool> nodes_;
};

// ---- stages -------------------------------------------------------------------------------------

// The earliest stage of each node that parts compute.
class Stages {
 public:
  Stages(const Graph& graph, const Placement& placement, const Repeated& repeated)
      : placement_(placement) {
    const Node* last_effect = nullptr;
    for (const NodePtr& node : graph.nodes()) {
      if (!is_computed(*node) || repeated.contains(*node)) continue;
      size_t stage = 0;
      const auto follow = [&](const Node& before) {
        const size_t* known = stages_.find(&before);
        if (known == nullptr) return;
        stage = std::max(stage, *known + (device(before) == device(*node) ? 0 : 1));
      };
      for (const LazyTensor& operand : node->operands()) follow(*operand.node);
      if (node->effect() >= 0) {
        if (last_effect != nullptr) follow(*last_effect);
        last_effect = node.get();
      }
      stages_.insert(node.get(), stage);
    }
  }
  const size_t* find(const Node& node) const { return stages_.find(&node); }

 private:
  size_t device(const Node& node) const { return placement_.device_of(node); }
  const Placement& placement_;
  composit::FlatMap<const Node*, size_t> stages_;
};

// ---- parts --------------------------------------------------------------------------------------

class Partitioner {
 public:
  Partitioner(const Graph& graph, const NodeNames& names, const Placement& placement)
      : graph_(graph),
        names_(names),
        placement_(placement),
        results_(results_of(graph)),
        repeated_(graph, results_),
        stages_(graph, placement, repeated_) {}

  Partition run() {
    all_.devices = placement_.devices;
    for (const LazyTensor& input : graph_.inputs()) {
      pass_on(input, composit::input_name(*input.node), PassedValue::kCaller);
      const composit::InputKind kind = composit::input_kind(*input.node);
      all_.values.back().is_weight =
          (kind == composit::InputKind::parameter || kind == composit::InputKind::buffer) &&
          !is_written(*input.node) && !is_result(*input.node);
    }
    assign_nodes();
    find_passed_values();
    for (size_t i = 0; i < all_.parts.size(); ++i) build(i);
    for (const LazyTensor& result : results_) all_.results.push_back(number_of(result));
    return std::move(all_);
  }

 private:
  using Key = std::pair<const Node*, uint32_t>;
  static Key key(const LazyTensor& value) { return {value.node.get(), value.index}; }

  bool is_written(const Node& input) const {
    const auto& mutations = graph_.mutations();
    return std::any_of(mutations.begin(), mutations.end(), [&](const composit::Mutation& one) {
      return one.target.node.get() == &input;
    });
  }

  bool is_result(const Node& input) const {
    return std::any_of(results_.begin(), results_.end(),
                       [&](const LazyTensor& result) { return result.node.get() == &input; });
  }

  size_t pass_on(const LazyTensor& value, const std::string& name, size_t maker) {
    const auto [found, is_new] = numbers_.emplace(key(value), all_.values.size());
    if (!is_new) return found->second;
    all_.values.push_back({composit::unused_name(name, taken_), value.type(), maker});
    passed_.push_back(value);
    return found->second;
  }
  size_t number_of(const LazyTensor& value) const { return numbers_.at(key(value)); }

  // A part for each stage and device, in this order.
  void assign_nodes() {
    std::map<std::pair<size_t, size_t>, size_t> parts;  // by stage and device
    std::vector<std::pair<std::pair<size_t, size_t>, NodePtr>> nodes;
    for (const NodePtr& node : graph_.nodes())
      if (const size_t* stage = stages_.find(*node)) {
        nodes.push_back({{*stage, placement_.device_of(*node)}, node});
        parts.emplace(nodes.back().first, 0);
        all_.decided.insert(*placement_.lines.find(node.get()));
      }
    for (auto& [place, number] : parts) {
      number = all_.parts.size();
      all_.parts.push_back({.device = place.second, .stage = place.first});
    }
    members_.resize(all_.parts.size());
    for (const auto& [place, node] : nodes) {
      part_of_.insert(node.get(), parts.at(place));
      members_[parts.at(place)].push_back(node);
    }
  }

  void find_passed_values() {
    for (const LazyTensor& result : results_) pass_result(result);
    for (size_t i = 0; i < members_.size(); ++i)
      for (const NodePtr& node : members_[i])
        for (const LazyTensor& operand : node->operands()) pass_operand(operand, i);
  }
  void pass_result(const LazyTensor& result) {
    const Node& node = *result.node;
    if (composit::is_input(node)) return;
    const size_t* part = part_of_.find(&node);
    if (part == nullptr) return pass_constant(result);
    pass_on(result, name_of(result), *part);
  }
  // A constant that the graph gives back belongs to the first part.
  void pass_constant(const LazyTensor& constant) {
    if (all_.parts.empty()) {
      if (all_.devices.empty()) all_.devices.push_back({"reference", {"reference"}});
      all_.parts.push_back({});
      members_.emplace_back();
    }
    pass_on(constant, "constant", 0);
  }
  // Values that come from another part, also by views.
  void pass_operand(const LazyTensor& value, size_t part) {
    const size_t* maker = part_of_.find(value.node.get());
    if (maker != nullptr && *maker != part) pass_on(value, name_of(value), *maker);
  }

  std::string name_of(const LazyTensor& value) const {
    const std::string& name = names_.name(*value.node);
    return value.node->outputs().size() == 1 ? name : name + "_" + std::to_string(value.index);
  }

  void build(size_t number);

  const Graph& graph_;
  const NodeNames& names_;
  const Placement& placement_;
  const LazyTensors results_;
  const Repeated repeated_;
  const Stages stages_;
  composit::FlatMap<const Node*, size_t> part_of_;
  std::vector<std::vector<NodePtr>> members_;  // by part
  std::map<Key, size_t> numbers_;
  std::set<std::string> taken_;
  LazyTensors passed_;  // as the graph has them, by number
  Partition all_;

  class Builder;
};

// Makes the graph of one part.
class Partitioner::Builder {
 public:
  Builder(Partitioner& owner, size_t part) : owner_(owner), part_(part) {}

  LazyTensor value_of(const LazyTensor& value) {
    if (composit::is_input(*value.node) || is_foreign(*value.node)) return passed(value);
    return {made(value.node), value.index};
  }

  NodePtr made(const NodePtr& node) {
    if (const NodePtr* known = nodes_.find(node.get())) return *known;
    LazyTensors operands;
    bool is_same = true;
    for (const LazyTensor& operand : node->operands()) {
      operands.push_back(value_of(operand));
      is_same = is_same && operands.back().node == operand.node;
    }
    NodePtr result = is_same ? node : composit::copy_of(*node, std::move(operands)).make_node();
    nodes_.insert(node.get(), result);
    return result;
  }

  Graph::Parts parts;
  Numbers reads;

 private:
  bool is_foreign(const Node& node) const {
    const size_t* maker = owner_.part_of_.find(&node);
    return maker != nullptr && *maker != part_;
  }
  LazyTensor passed(const LazyTensor& value) {
    const size_t number = owner_.number_of(value);
    const auto [found, is_new] = inputs_.emplace(number, LazyTensor());
    if (!is_new) return found->second;
    found->second = input_for(value, number);
    reads.push_back(number);
    parts.inputs.push_back(found->second);
    return found->second;
  }
  // An input that the program writes, or gives back, is no weight for a part.
  LazyTensor input_for(const LazyTensor& value, size_t number) const {
    const bool is_argument = composit::is_input(*value.node) &&
                             composit::input_kind(*value.node) == composit::InputKind::user_input;
    if (is_argument || owner_.all_.values[number].is_weight) return value;
    const LazyTensor plain = composit::input(owner_.all_.values[number].name, value.type());
    composit::NodeSpec spec = composit::copy_of(*plain.node, {});
    spec.place = value.node->place();  // users of the value come later
    return std::move(spec).make();
  }

  Partitioner& owner_;
  size_t part_;
  composit::FlatMap<const Node*, NodePtr> nodes_;
  std::map<size_t, LazyTensor> inputs_;  // by number of the value
};

void Partitioner::build(size_t number) {
  Part& part = all_.parts[number];
  Builder builder(*this, number);
  for (const NodePtr& node : members_[number]) {
    const NodePtr made = builder.made(node);
    if (made->effect() >= 0) builder.parts.effects.push_back(made);
  }
  for (size_t i = 0; i < passed_.size(); ++i)
    if (all_.values[i].maker == number) {
      part.makes.push_back(i);
      builder.parts.outputs.push_back(builder.value_of(passed_[i]));
    }
  part.operations = members_[number].size();
  part.has_effects = !builder.parts.effects.empty();
  part.reads = std::move(builder.reads);
  part.graph = Graph(std::move(builder.parts));
}

}  // namespace

std::string section(const Partition& partition, size_t part, const std::string& source) {
  const DeviceChoice& device = partition.devices[partition.parts[part].device];
  std::string text = "// ---- part " + std::to_string(part) + " on " + device.name + "\n\n";
  if (!source.empty()) return text + source + "\n";
  std::ostringstream graph;
  composit::print(graph, partition.parts[part].graph, {.annotations = false, .brief = true});
  std::istringstream lines(graph.str());
  for (std::string line; std::getline(lines, line);) text += "// " + line + "\n";
  return text + "\n";
}

Partition partition(const Graph& graph, const NodeNames& names, const Placement& placement) {
  return Partitioner(graph, names, placement).run();
}

}  // namespace flashlight::devices
