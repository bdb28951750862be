#include "flashlight/value_sizes.h"

#include <algorithm>
#include <optional>
#include <set>

#include "composit/family/bind.h"
#include "composit/ir/error.h"

namespace flashlight {
namespace {

using composit::Graph;
using composit::LazyTensor;
using composit::LazyTensors;
using composit::Node;
using composit::NodePtr;

class Finder {
 public:
  Finder(const composit::Family& family, const std::vector<composit::Type>& types,
         const std::function<std::vector<at::Tensor>(const Graph&)>& run)
      : family_(family), types_(types), run_(run), numbers_() {
    for (const composit::ValueSize& size : family.value_sizes) {
      numbers_.push_back(size.shown.at(0));  // until it is known
      unknown_.insert(size.value.node.get());
    }
  }

  std::vector<int64_t> find() {
    while (!unknown_.empty()) {
      const std::vector<NodePtr> ready = ready_nodes();
      COMPOSIT_ASSERT(!ready.empty(), "sizes that depend on values depend on themselves");
      LazyTensors results;
      for (const NodePtr& node : ready)
        for (uint32_t i = 0; i < node->outputs().size(); ++i) results.push_back({node, i});
      const std::vector<at::Tensor> values = values_of(results);
      for (size_t i = 0; i < results.size(); ++i) set_numbers(results[i], values[i]);
      for (const NodePtr& node : ready) unknown_.erase(node.get());
    }
    return std::move(numbers_);
  }

 private:
  // Nodes of unknown sizes that depend on no other.
  std::vector<NodePtr> ready_nodes() const {
    std::vector<NodePtr> ready;
    for (const NodePtr& node : family_.example.nodes()) {
      if (!unknown_.contains(node.get())) continue;
      const Graph part = composit::part_of(family_, node->operands());
      const bool waits = std::any_of(part.nodes().begin(), part.nodes().end(),
                                     [&](const NodePtr& n) { return unknown_.contains(n.get()); });
      if (!waits) ready.push_back(node);
    }
    return ready;
  }

  std::vector<at::Tensor> values_of(const LazyTensors& values) const {
    const composit::Binding bound =
        composit::bind_part(family_, composit::part_of(family_, values), types_, numbers_);
    Graph::Parts parts;
    parts.inputs = bound.graph.inputs();
    for (const LazyTensor& value : values) parts.outputs.push_back(bound.of(value));
    return run_(Graph(std::move(parts)));
  }

  void set_numbers(const LazyTensor& result, const at::Tensor& value) {
    for (size_t i = 0; i < numbers_.size(); ++i) {
      const composit::ValueSize& size = family_.value_sizes[i];
      if (size.value.node == result.node && size.value.index == result.index)
        numbers_[i] = value.size(static_cast<int64_t>(size.axis));
    }
  }

  const composit::Family& family_;
  const std::vector<composit::Type>& types_;
  const std::function<std::vector<at::Tensor>(const Graph&)>& run_;
  std::vector<int64_t> numbers_;
  std::set<const Node*> unknown_;
};

}  // namespace

std::vector<int64_t> value_sizes_at(
    const composit::Family& family, const std::vector<composit::Type>& types,
    const std::function<std::vector<at::Tensor>(const Graph&)>& run) {
  return Finder(family, types, run).find();
}

}  // namespace flashlight
