#include "composit/passes/decompose.h"

#include "composit/passes/definition.h"
#include "composit/passes/inline_calls.h"

namespace composit {
namespace {

// The nodes that LibTorch ran for a composite without a row; nothing for other nodes.
const Graph* body_to_open(const Node& node) {
  const Attribute* body = node.find_run("body");
  if (body == nullptr || node.op() == ops::kCall || row_for(node) != nullptr) return nullptr;
  return body->as<Region>().get();
}

}  // namespace

Graph decompose(const Graph& graph, const DecomposeOptions& options) {
  const auto again = [&](const Graph& parts) { return decompose(parts, options); };
  const Graph inner = rebuild_regions(graph, again);
  const auto open = [&](const Node& node, const LazyTensors& operands) {
    std::optional<Replacement> replacement;
    if (!is_replaceable(node) || (options.keep && options.keep(node))) return replacement;
    const NodePtr now = copy_of(node, operands).make_node();
    if (const auto parts = decomposition(*now))
      replacement = Replacement{.outputs = in_place_of(*now, again(*parts))};
    else if (options.open_bodies && body_to_open(*now) != nullptr)
      replacement = Replacement{.outputs = inlined_body(*now, operands)};
    return replacement;
  };
  return rebuild(inner, unless_refused(open));
}

}  // namespace composit
