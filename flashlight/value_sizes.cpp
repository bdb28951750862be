#include "flashlight/value_sizes.h"

#include <algorithm>
#include <optional>
#include <set>

#include "composit/family/bind.h"
#include "composit/ir/error.h"
#include "composit/ops/operations.h"
#include "tracer/convert.h"
#include "tracer/replay.h"

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
      : family_(family), types_(types), run_(run), numbers_(family.value_sizes.size(), 0) {
    for (const composit::ValueSize& size : family.value_sizes)
      unknown_.insert(size.value.node.get());
  }

  std::vector<int64_t> find() {
    while (!unknown_.empty()) {
      const std::vector<NodePtr> ready = ready_nodes();
      COMPOSIT_ASSERT(!ready.empty(), "sizes that depend on values depend on themselves");
      LazyTensors operands;
      for (const NodePtr& node : ready)
        operands.insert(operands.end(), node->operands().begin(), node->operands().end());
      const std::vector<at::Tensor> values = values_of(operands);
      size_t next = 0;
      for (const NodePtr& node : ready) {
        set_numbers(*node, {values.begin() + static_cast<ptrdiff_t>(next),
                            values.begin() + static_cast<ptrdiff_t>(next + node->operands().size())});
        next += node->operands().size();
        unknown_.erase(node.get());
      }
    }
    return std::move(numbers_);
  }

 private:
  // The part of the example that these values need, with what formulas in it read.
  Graph part_of(const LazyTensors& values) const {
    LazyTensors outputs = values;
    for (;;) {
      const Graph part({.inputs = family_.example.inputs(), .outputs = outputs});
      std::set<const Node*> inside;
      for (const NodePtr& node : part.nodes()) inside.insert(node.get());
      const size_t before = outputs.size();
      for (const NodePtr& node : part.nodes())
        for (const composit::IntegerFormula& one : family_.formulas_of(*node))
          one.formula.for_each_size([&](const LazyTensor& tensor, size_t) {
            if (inside.insert(tensor.node.get()).second) outputs.push_back(tensor);
          });
      if (outputs.size() == before) return part;
    }
  }

  // Nodes of unknown sizes that depend on no other.
  std::vector<NodePtr> ready_nodes() const {
    std::vector<NodePtr> ready;
    for (const NodePtr& node : family_.example.nodes()) {
      if (!unknown_.contains(node.get())) continue;
      const Graph part = part_of(node->operands());
      const bool waits = std::any_of(part.nodes().begin(), part.nodes().end(),
                                     [&](const NodePtr& n) { return unknown_.contains(n.get()); });
      if (!waits) ready.push_back(node);
    }
    return ready;
  }

  std::vector<at::Tensor> values_of(const LazyTensors& values) const {
    const composit::Binding bound =
        composit::bind_part(family_, part_of(values), types_, numbers_);
    Graph::Parts parts;
    parts.inputs = bound.graph.inputs();
    for (const LazyTensor& value : values) parts.outputs.push_back(bound.of(value));
    return run_(Graph(std::move(parts)));
  }

  void set_numbers(const Node& node, const std::vector<at::Tensor>& operands) {
    const composit::Operation& operation = *composit::operation_of(node);
    if (!operation.row.native)
      throw composit::UserError("[bind] sizes of " + tracer::place_of(node) +
                                " depend on values, and nothing but its run tells them");
    std::vector<composit::Array> arrays;
    LazyTensors inputs;
    for (const at::Tensor& tensor : operands) {
      arrays.push_back(tensor.defined() ? tracer::to_array(tensor.detach()) : composit::Array());
      inputs.push_back(tensor.defined() ? composit::input(std::to_string(inputs.size()),
                                                          arrays.back().type())
                                        : LazyTensor());
    }
    const composit::Call call = composit::call_of(node, operation.schema, inputs);
    const auto results = operation.row.native({.call = &call, .values = &arrays});
    for (size_t i = 0; i < numbers_.size(); ++i) {
      const composit::ValueSize& size = family_.value_sizes[i];
      if (size.value.node.get() == &node)
        numbers_[i] = results.at(size.value.index).type().sizes.at(size.axis);
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
