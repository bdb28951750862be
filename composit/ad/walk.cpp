#include "composit/ad/walk.h"

#include <algorithm>

#include "composit/ad/expr_derivative.h"
#include "composit/ad/vjp.h"
#include "composit/ir/flat_map.h"
#include "composit/ops/functions.h"

namespace composit {
namespace {

using HashSet = FlatMap<Hash, std::monostate>;

class Walk {
 public:
  Walk(const std::vector<LazyTensor>& outputs, const std::vector<LazyTensor>& inputs,
       const std::vector<LazyTensor>& boundary) {
    for (const LazyTensor& tensor : boundary)
      if (tensor) boundary_.insert(tensor.hash(), {});
    for (const LazyTensor& tensor : inputs)
      if (tensor) active_.insert(tensor.hash(), {});
    collect(outputs);
    for (const NodePtr& node : nodes_) mark(node);
  }

  // A gradient is of its tensor's dtype, also where promotion made the operation's another; a real
  // tensor's is the real part.
  void add(const LazyTensor& tensor, const Tensor& gradient) {
    if (!gradient.defined()) return;
    const Tensor typed = to(gradient, tensor.dtype());
    Tensor& sum = cotangents_[tensor.hash()];
    sum = sum.defined() ? sum + typed : typed;
  }

  void run() {
    for (size_t i = nodes_.size(); i-- > 0;) {
      const NodePtr& node = nodes_[i];
      std::vector<bool> wanted;
      for (const LazyTensor& operand : node->operands()) wanted.push_back(is_active(operand));
      if (std::find(wanted.begin(), wanted.end(), true) == wanted.end()) continue;
      const Tensors cotangents = cotangents_of(node);
      if (std::none_of(cotangents.begin(), cotangents.end(),
                       [](const Tensor& tensor) { return tensor.defined(); }))
        continue;
      const Tensors gradients = vjp_of(node, cotangents, wanted);
      for (size_t k = 0; k < gradients.size(); ++k)
        if (wanted[k]) add(node->operands()[k], gradients[k]);
    }
  }

  Tensor cotangent(const LazyTensor& tensor) {
    const Tensor* found = tensor ? cotangents_.find(tensor.hash()) : nullptr;
    return found == nullptr ? Tensor() : *found;
  }

 private:
  // Nodes from the boundary to the outputs, operands first; equal ones once. Not recursive.
  void collect(const std::vector<LazyTensor>& outputs) {
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
  // Tensors that depend on an input and carry gradients. What ran under no_grad carries none.
  void mark(const NodePtr& node) {
    static const Symbol grad_mode("grad");
    if (const Attribute* grad = find(node->execution(), grad_mode); grad && !grad->as<bool>())
      return;
    const auto& operands = node->operands();
    if (std::none_of(operands.begin(), operands.end(),
                     [&](const LazyTensor& operand) { return is_active(operand); }))
      return;
    for (uint32_t i = 0; i < node->outputs().size(); ++i)
      if (is_differentiable(node->outputs()[i].dtype))
        active_.insert(LazyTensor{node, i}.hash(), {});
  }
  bool is_active(const LazyTensor& tensor) const {
    return tensor && active_.contains(tensor.hash());
  }
  Tensors cotangents_of(const NodePtr& node) {
    Tensors cotangents;
    for (uint32_t i = 0; i < node->outputs().size(); ++i) {
      const LazyTensor output{node, i};
      // What flows into a boundary tensor stays there.
      cotangents.push_back(boundary_.contains(output.hash()) ? Tensor() : cotangent(output));
    }
    return cotangents;
  }

  HashSet boundary_, active_, seen_;
  std::vector<NodePtr> nodes_;
  FlatMap<Hash, Tensor> cotangents_;
};

}  // namespace

Tensors walk_back(const std::vector<LazyTensor>& outputs, const std::vector<LazyTensor>& inputs,
                  const std::vector<LazyTensor>& boundary,
                  const std::function<Tensor(size_t)>& cotangent) {
  Walk walk(outputs, inputs, boundary);
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i]) walk.add(outputs[i], cotangent(i));
  walk.run();
  Tensors gradients;
  for (const LazyTensor& input : inputs) gradients.push_back(walk.cotangent(input));
  return gradients;
}

}  // namespace composit
