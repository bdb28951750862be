#include "composit/interchange/onnx_read/known.h"

#include <algorithm>
#include <vector>

#include "composit/eval/evaluate.h"

namespace composit::onnx_read {
namespace {

constexpr int64_t kSmall = 1 << 16;    // elements of a constant that is folded
constexpr int64_t kLargest = 1 << 22;  // elements of what is evaluated, and of all on the way

bool is_given(const Node& node) { return is_input(node) || node.op() == ops::kConstant; }

// True if all that has to be computed for `tensor` is small; weights are there already.
bool is_computable_at_once(const LazyTensor& tensor) {
  const std::vector<NodePtr> nodes = topological_order({tensor.node});
  return std::all_of(nodes.begin(), nodes.end(), [](const NodePtr& node) {
    if (is_given(*node)) return true;
    return std::all_of(node->outputs().begin(), node->outputs().end(), [](const Type& type) {
      return !is_defined(type) || type.numel() <= kLargest;
    });
  });
}

}  // namespace

Known::Source Known::source_of(const NodePtr& node) {
  std::vector<NodePtr> open = {node};
  while (!open.empty()) {
    const NodePtr next = open.back();
    if (sources_.contains(next.get())) {
      open.pop_back();
      continue;
    }
    Source source = Source::constants;
    if (is_input(*next)) {
      const bool integers = !is_floating_point(next->outputs()[0].dtype);
      source = !next->held().defined() ? Source::inputs
               : integers              ? Source::constants
                                       : Source::weights;
    }
    bool ready = true;
    for (const LazyTensor& operand : next->operands()) {
      const auto known = sources_.find(operand.node.get());
      if (known == sources_.end()) {
        open.push_back(operand.node);
        ready = false;
      } else {
        source = std::max(source, known->second.second);
      }
    }
    if (!ready) continue;
    sources_.emplace(next.get(), std::make_pair(next, source));
    open.pop_back();
  }
  return sources_.at(node.get()).second;
}

std::optional<Array> Known::find(const LazyTensor& tensor) {
  if (tensor.node->op() == ops::kConstant) return tensor.node->attribute("value").as<Array>();
  if (tensor.node->held().defined()) return tensor.node->held();
  if (source_of(tensor.node) == Source::inputs) return std::nullopt;
  std::map<uint32_t, Array>& found = found_[tensor.node.get()];
  if (const auto known = found.find(tensor.index); known != found.end()) return known->second;
  if (!is_computable_at_once(tensor)) return std::nullopt;
  return found[tensor.index] = evaluate({tensor})[0];
}

LazyTensor Known::folded(const LazyTensor& tensor) {
  if (!tensor || is_given(*tensor.node) || tensor.numel() > (folds_ ? kSmall : 1)) return tensor;
  if (source_of(tensor.node) != Source::constants || !is_computable_at_once(tensor)) return tensor;
  return constant(evaluate({tensor})[0]);
}

}  // namespace composit::onnx_read
