#include "composit/passes/canonicalize.h"

#include <algorithm>

#include "composit/ir/transform.h"
#include "composit/passes/definition.h"
#include "composit/passes/fuse_linear.h"
#include "composit/passes/spelling.h"

namespace composit {
namespace {

// Whether the row speaks for `node`: it takes the same operands and gives as many results.
bool has_row(const Node& node) {
  const Operation* operation = find_operation(node.op());
  if (operation == nullptr) return false;
  const Call call = call_of(node, operation->schema);
  if (call.operand_types().size() != node.operands().size()) return false;
  const auto& results = operation->schema.results;
  if (results.size() == node.outputs().size() && !results[0].list) return true;
  return infer(*operation, call).size() == node.outputs().size();
}

// The same but for the operator LibTorch used to write the result.
NodePtr without_via(const Node& node, const std::vector<LazyTensor>& operands) {
  NodeSpec spec = copy_of(node, operands);
  std::erase_if(spec.execution, [](const NamedAttribute& entry) { return entry.key() == "via"; });
  return std::move(spec).make_node();
}

std::optional<Replacement> respell(const Node& node, const std::vector<LazyTensor>& operands) {
  if (!is_replaceable(node)) return std::nullopt;
  const NodePtr now = without_via(node, operands);
  const Spelling spelling = has_row(*now) ? canonical_spelling(now) : Spelling{now, {}};
  if (spelling.node->hash() == node.hash()) return std::nullopt;
  Replacement replacement;
  for (uint32_t i = 0; i < node.outputs().size(); ++i)
    replacement.outputs.push_back(
        {spelling.node, spelling.outputs.empty() ? i : spelling.outputs[i]});
  return replacement;
}

}  // namespace

Graph canonicalize(const Graph& graph, const CanonicalizeOptions& options) {
  const Graph inner =
      rebuild_regions(graph, [&](const Graph& region) { return canonicalize(region, options); });
  const Graph spelled = rebuild(inner, respell);
  return options.exact ? spelled : fuse_linear(spelled);
}

}  // namespace composit
