#include "composit/ops/dependences.h"

#include "composit/ir/flat_map.h"
#include "composit/op/promotion.h"

namespace composit {

bool carries_gradient(const Type& type) { return category(type.dtype) >= DTypeCategory::floating; }

void unite(Flags& flags, const Flags& more) {
  for (size_t i = 0; i < flags.size(); ++i) flags[i] = flags[i] || more[i];
}

std::vector<Flags> dependences(const Graph& body) {
  const Flags none(body.inputs().size());
  FlatMap<const Node*, Flags> known;
  const auto of = [&](const LazyTensor& tensor) {
    const Flags* found = carries_gradient(tensor.type()) ? known.find(tensor.node.get()) : nullptr;
    return found == nullptr ? none : *found;
  };
  for (size_t i = 0; i < body.inputs().size(); ++i) {
    Flags own = none;
    own[i] = true;
    known[body.inputs()[i].node.get()] = own;
  }
  for (const NodePtr& node : body.nodes()) {
    if (is_input(*node)) continue;
    Flags flags = none;
    for (const LazyTensor& operand : node->operands())
      if (operand) unite(flags, of(operand));
    known[node.get()] = flags;
  }
  std::vector<Flags> result;
  for (const LazyTensor& output : body.outputs()) result.push_back(of(output));
  return result;
}

}  // namespace composit
