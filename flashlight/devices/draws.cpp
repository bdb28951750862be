#include "flashlight/devices/draws.h"

#include "composit/ops/draws.h"
#include "composit/ops/operations.h"

namespace flashlight::devices {

using composit::Graph;
using composit::Node;

namespace {

bool draws(const Node& node) {
  if (composit::find_draw(node.op()) != nullptr) return true;
  const composit::Operation* operation = composit::operation_of(node);
  return operation != nullptr && operation->row.kind == composit::OpKind::random;
}

}  // namespace

const Node* find_draw_in(const Graph& graph) {
  for (const composit::NodePtr& node : graph.nodes()) {
    const Node* found = node->effect() >= 0 && draws(*node) ? node.get() : nullptr;
    composit::for_each_region(*node, [&](const composit::Region& region) {
      if (found == nullptr && node->effect() >= 0) found = find_draw_in(*region);
    });
    if (found != nullptr) return found;
  }
  return nullptr;
}

}  // namespace flashlight::devices
