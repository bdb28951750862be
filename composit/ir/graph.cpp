#include "composit/ir/graph.h"

#include <algorithm>
#include <tuple>
#include <variant>

namespace composit {
namespace {

std::vector<NodePtr> roots_of(const Graph::Parts& parts) {
  std::vector<NodePtr> roots;
  for (const LazyTensor& input : parts.inputs) roots.push_back(input.node);
  for (const LazyTensor& output : parts.outputs) roots.push_back(output.node);
  for (const Mutation& mutation : parts.mutations) {
    roots.push_back(mutation.target.node);
    roots.push_back(mutation.value.node);
  }
  roots.insert(roots.end(), parts.effects.begin(), parts.effects.end());
  return roots;
}

// Sorts keys beside their nodes: a comparison of the nodes themselves would miss the cache each
// time.
void sort_by_place(std::vector<NodePtr>& nodes) {
  struct Entry {
    uint64_t place, serial;
    NodePtr node;
  };
  std::vector<Entry> entries;
  entries.reserve(nodes.size());
  for (NodePtr& node : nodes) {
    const uint64_t place = node->place(), serial = node->serial();
    entries.push_back({place, serial, std::move(node)});
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.place, a.serial) < std::tie(b.place, b.serial);
  });
  std::transform(entries.begin(), entries.end(), nodes.begin(),
                 [](Entry& entry) { return std::move(entry.node); });
}

void visit_regions(const Attributes& attributes, const std::function<void(const Region&)>& visit) {
  for (const NamedAttribute& attribute : attributes)
    if (const auto* region = attribute.value.get_if<Region>(); region != nullptr && *region)
      visit(*region);
}

}  // namespace

Graph::Graph(Parts parts) : state_(std::make_shared<State>()) { state_->parts = std::move(parts); }

const std::vector<NodePtr>& Graph::nodes() const {
  std::call_once(state_->ordered,
                 [this] { state_->nodes = topological_order(roots_of(state_->parts)); });
  return state_->nodes;
}

const std::vector<Use>& Graph::successors(const Node& node) const {
  std::call_once(state_->linked, [this] {
    for (const NodePtr& user : nodes()) {
      const auto& operands = user->operands();
      for (uint32_t i = 0; i < operands.size(); ++i)
        if (operands[i])
          state_->uses[operands[i].node.get()].push_back({user.get(), i, operands[i].index});
    }
  });
  static const std::vector<Use> kNone;
  const auto* uses = state_->uses.find(&node);
  return uses == nullptr ? kNone : *uses;
}

Hash Graph::hash() const {
  Hasher hasher;
  const auto add_all = [&](const LazyTensors& tensors) {
    hasher.add(static_cast<uint64_t>(tensors.size()));
    for (const LazyTensor& tensor : tensors) hasher.add(tensor.hash());
  };
  add_all(inputs());
  add_all(outputs());
  hasher.add(static_cast<uint64_t>(mutations().size()));
  for (const Mutation& mutation : mutations()) {
    hasher.add(mutation.target.hash());
    hasher.add(mutation.value.hash());
  }
  hasher.add(static_cast<uint64_t>(effects().size()));
  for (const NodePtr& effect : effects()) hasher.add(effect->hash());
  return hasher.finish();
}

std::vector<NodePtr> topological_order(const std::vector<NodePtr>& roots) {
  std::vector<NodePtr> order;
  FlatMap<const Node*, std::monostate> seen;
  const auto visit = [&](const NodePtr& node) {
    if (node && seen.insert(node.get(), {})) order.push_back(node);
  };
  for (const NodePtr& root : roots) visit(root);
  for (size_t next = 0; next < order.size(); ++next) {
    const Node& node = *order[next];  // not the pointer: `order` grows
    for (const LazyTensor& operand : node.operands()) visit(operand.node);
  }
  sort_by_place(order);
  return order;
}

void for_each_region(const Node& node, const std::function<void(const Region&)>& visit) {
  visit_regions(node.attributes(), visit);
  visit_regions(node.execution(), visit);
}

}  // namespace composit
