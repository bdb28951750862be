#include "composit/ad/walk.h"

#include <algorithm>

#include "composit/ad/expr_derivative.h"
#include "composit/ad/vjp.h"
#include "composit/ir/annotation_scope.h"
#include "composit/ir/flat_map.h"
#include "composit/ops/functions.h"

namespace composit {
namespace {

using HashSet = FlatMap<Hash, std::monostate>;

class Walk {
 public:
  Walk(const LazyTensors& outputs, const LazyTensors& inputs, const LazyTensors& boundary) {
    for (const LazyTensor& tensor : boundary)
      if (tensor) boundary_.insert(tensor.hash(), {});
    for (const LazyTensor& tensor : inputs) {
      if (!tensor) continue;
      active_.insert(tensor.hash(), {});
      reached_.insert(tensor.hash(), {});
    }
    collect(outputs);
    for (const NodePtr& node : nodes_) mark(node);
  }

  // A gradient is of its tensor's dtype, also where promotion made the operation's another; a real
  // tensor's is the real part.
  void add(const LazyTensor& tensor, const LazyTensor& gradient) {
    if (!gradient.defined()) return;
    const LazyTensor typed = to(gradient, tensor.dtype());
    LazyTensor& sum = cotangents_[tensor.hash()];
    sum = sum.defined() ? sum + typed : typed;
  }

  void run() {
    for (size_t i = nodes_.size(); i-- > 0;) {
      const NodePtr& node = nodes_[i];
      const LazyTensors cotangents = cotangents_of(node);
      if (std::none_of(cotangents.begin(), cotangents.end(),
                       [](const LazyTensor& tensor) { return tensor.defined(); }))
        continue;
      if (const Attribute* custom = node->find_run("custom_grad")) refuse(*node, *custom);
      for (const LazyTensor& operand : node->operands())
        if (const Node* const* by = operand ? rounded_.find(operand.hash()) : nullptr)
          refuse_rounding(**by);
      std::vector<bool> wanted;
      for (const LazyTensor& operand : node->operands()) wanted.push_back(is_active(operand));
      if (std::find(wanted.begin(), wanted.end(), true) == wanted.end()) continue;
      const AnnotationScope scope(*node);
      const LazyTensors gradients =
          runs_without_grad(*node) ? LazyTensors{cotangents[0]} : vjp_of(node, cotangents, wanted);
      for (size_t k = 0; k < gradients.size(); ++k)
        if (wanted[k]) add(node->operands()[k], gradients[k]);
    }
  }

  LazyTensor cotangent(const LazyTensor& tensor) {
    const LazyTensor* found = tensor ? cotangents_.find(tensor.hash()) : nullptr;
    return found == nullptr ? LazyTensor() : *found;
  }

 private:
  // Nodes from the boundary to the outputs, operands first; equal ones once. Not recursive.
  void collect(const LazyTensors& outputs) {
    std::vector<std::pair<NodePtr, size_t>> stack;
    const auto push = [&](const LazyTensor& tensor) {
      if (tensor && !boundary_.contains(tensor.hash()) && !seen_.contains(tensor.node->hash()))
        stack.emplace_back(tensor.node, 0);
    };
    for (const LazyTensor& output : outputs) {
      push(output);
      while (!stack.empty()) {
        auto& [node, next] = stack.back();
        if (next < node->operands().size()) {
          const LazyTensor operand = node->operands()[next++];
          push(operand);
          continue;
        }
        if (seen_.insert(node->hash(), {})) nodes_.push_back(node);
        stack.pop_back();
      }
    }
  }
  // Tensors that depend on an input and carry gradients.
  void mark(const NodePtr& node) {
    const auto& operands = node->operands();
    const auto is_reached = [&](const LazyTensor& operand) {
      return operand && (reached_.contains(operand.hash()) || rounded_.contains(operand.hash()));
    };
    if (std::none_of(operands.begin(), operands.end(), is_reached)) return;
    insert_outputs(reached_, node);
    // What is made of rounded numbers carries a gradient as well, which `run` refuses to lose.
    const bool carries =
        runs_without_grad(*node)
            ? is_rewritten(*node) && is_active(operands[0])
            : std::any_of(operands.begin(), operands.end(), [&](const LazyTensor& x) {
                return is_active(x) || (x && rounded_.contains(x.hash()));
              });
    if (carries || node->find_run("custom_grad") != nullptr) insert_outputs(active_, node);
    mark_rounded(node, carries);
  }
  // Integers that stand for numbers with a gradient, and what is made of them: by whom.
  void mark_rounded(const NodePtr& node, bool carries) {
    const Node* by = carries && quantizes(*node) ? node.get() : nullptr;
    for (const LazyTensor& operand : node->operands())
      if (const Node* const* found = operand ? rounded_.find(operand.hash()) : nullptr) by = *found;
    if (by == nullptr) return;
    for (uint32_t i = 0; i < node->outputs().size(); ++i)
      if (!is_differentiable(node->outputs()[i].dtype))
        rounded_.insert(LazyTensor{node, i}.hash(), by);
  }
  static bool quantizes(const Node& node) {
    return node.op().str().starts_with("quantized_decomposed::quantize_");
  }
  [[noreturn]] static void refuse_rounding(const Node& node) {
    throw UserError("[grad] the gradient goes through '" + node.op().str() +
                    "', which rounds: its derivative is 0 almost everywhere; the pass "
                    "'straight_through' takes it for 1, as quantization-aware training does");
  }
  static bool runs_without_grad(const Node& node) {
    const Attribute* grad = node.find_run("grad");
    return grad != nullptr && !grad->as<bool>();
  }
  // A tensor that is written in place under no_grad keeps its gradient, as if the write had not
  // happened. That is autograd's rule; clipping and renormalisation of weights rely on it.
  static bool is_rewritten(const Node& node) {
    const bool in_place = node.find_run("via") != nullptr || node.find_run("rewrites") != nullptr;
    return in_place && !node.operands().empty() && node.operands()[0] &&
           node.outputs().size() == 1 && node.outputs()[0].sizes == node.operands()[0].type().sizes;
  }
  static void insert_outputs(HashSet& set, const NodePtr& node) {
    for (uint32_t i = 0; i < node->outputs().size(); ++i)
      if (is_differentiable(node->outputs()[i].dtype) || is_memory(*node))
        set.insert(LazyTensor{node, i}.hash(), {});
  }
  // Bytes of numbers: who reads them has no derivative, and shall not be taken for constant.
  static bool is_memory(const Node& node) {
    static const std::string kStorage = "composit::storage";
    return node.op().str().compare(0, kStorage.size(), kStorage) == 0;
  }
  [[noreturn]] static void refuse(const Node& node, const Attribute& custom) {
    throw UserError("[grad] the gradient goes through '" + custom.as<std::string>() +
                    "', a custom autograd function around '" + node.op().str() +
                    "': its backward is host code that the graph does not have; capture the "
                    "program with backward() inside, or differentiate on either side of it");
  }
  bool is_active(const LazyTensor& tensor) const {
    return tensor && active_.contains(tensor.hash());
  }
  LazyTensors cotangents_of(const NodePtr& node) {
    LazyTensors cotangents;
    for (uint32_t i = 0; i < node->outputs().size(); ++i) {
      const LazyTensor output{node, i};
      // The walk does not go past a boundary tensor.
      cotangents.push_back(boundary_.contains(output.hash()) ? LazyTensor() : cotangent(output));
    }
    return cotangents;
  }

  HashSet boundary_, seen_;
  HashSet reached_;  // depend on an input
  HashSet active_;   // and carry gradients
  FlatMap<Hash, const Node*> rounded_;
  std::vector<NodePtr> nodes_;
  FlatMap<Hash, LazyTensor> cotangents_;
};

}  // namespace

LazyTensors walk_back(const LazyTensors& outputs, const LazyTensors& inputs,
                      const LazyTensors& boundary,
                      const std::function<LazyTensor(size_t)>& cotangent) {
  Walk walk(outputs, inputs, boundary);
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i]) walk.add(outputs[i], cotangent(i));
  walk.run();
  LazyTensors gradients;
  for (const LazyTensor& input : inputs) gradients.push_back(walk.cotangent(input));
  return gradients;
}

}  // namespace composit
