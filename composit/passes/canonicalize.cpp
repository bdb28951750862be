#include "composit/passes/canonicalize.h"

#include <algorithm>

#include "composit/passes/definition.h"
#include "composit/passes/fuse_linear.h"
#include "composit/passes/spelling.h"

namespace composit {
namespace {

// The same but for the operator LibTorch used to write the result.
NodePtr without_via(const Node& node, const LazyTensors& operands) {
  NodeSpec spec = copy_of(node, operands);
  std::erase_if(spec.execution, [](const NamedAttribute& entry) { return entry.key() == "via"; });
  return std::move(spec).make_node();
}

std::optional<Replacement> respell(const Node& node, const LazyTensors& operands) {
  if (!is_replaceable(node)) return std::nullopt;
  const NodePtr now = without_via(node, operands);
  const Spelling spelling = row_for(*now) != nullptr ? canonical_spelling(now) : Spelling{now, {}};
  if (spelling.node->hash() == node.hash()) return std::nullopt;
  Replacement replacement;
  for (uint32_t i = 0; i < node.outputs().size(); ++i)
    replacement.outputs.push_back(
        {spelling.node, spelling.outputs.empty() ? i : spelling.outputs[i]});
  return replacement;
}

}  // namespace

Graph canonicalize(const Graph& graph, const CanonicalizeOptions& options) {
  const Graph spelled =
      rebuild_regions(rebuild(graph, unless_refused(respell)),
                      [&](const Graph& region) { return canonicalize(region, options); });
  return options.exact ? spelled : fuse_linear(spelled);
}

}  // namespace composit
