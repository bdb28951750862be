#include "composit/ir/graph.h"

#include <algorithm>
#include <unordered_set>

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

}  // namespace

Graph::Graph(Parts parts) : state_(std::make_shared<State>()) { state_->parts = std::move(parts); }

const std::vector<NodePtr>& Graph::nodes() const {
  std::call_once(state_->ordered, [this] { state_->nodes = topological_order(roots_of(state_->parts)); });
  return state_->nodes;
}

const std::vector<Use>& Graph::successors(const Node& node) const {
  std::call_once(state_->linked, [this] {
    for (const NodePtr& user : nodes()) {
      const auto& operands = user->operands();
      for (uint32_t i = 0; i < operands.size(); ++i)
        if (operands[i]) state_->uses[operands[i].node.get()].push_back({user.get(), i, operands[i].index});
    }
  });
  static const std::vector<Use> kNone;
  const auto found = state_->uses.find(&node);
  return found == state_->uses.end() ? kNone : found->second;
}

Hash Graph::hash() const {
  Hasher hasher;
  const auto add_all = [&](const std::vector<LazyTensor>& tensors) {
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
  std::unordered_set<const Node*> seen;
  const auto visit = [&](const NodePtr& node) {
    if (node && seen.insert(node.get()).second) order.push_back(node);
  };
  for (const NodePtr& root : roots) visit(root);
  for (size_t next = 0; next < order.size(); ++next) {
    const NodePtr node = order[next];  // a copy: `order` grows
    for (const LazyTensor& operand : node->operands()) visit(operand.node);
  }
  std::sort(order.begin(), order.end(), [](const NodePtr& a, const NodePtr& b) { return a->serial() < b->serial(); });
  return order;
}

}  // namespace composit
