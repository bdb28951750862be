#include "composit/family/written_views.h"

#include <algorithm>

#include "composit/family/result_types.h"
#include "composit/ir/error.h"
#include "composit/ir/print.h"
#include "composit/ops/operations.h"

namespace composit {
namespace {

// "aten::add_.Tensor"
bool is_in_place(const Node& node) {
  const Attribute* via = node.find_run("via");
  const auto* name = via == nullptr ? nullptr : via->get_if<std::string>();
  if (name == nullptr) return false;
  const size_t end = std::min(name->find('.'), name->size());
  return end > 0 && (*name)[end - 1] == '_';
}

bool may_be_view(const Node& node) {
  const Operation* operation = operation_of(node);
  return operation != nullptr && !node.operands().empty() && node.operands()[0] &&
         !operation->schema.results.empty() && !operation->schema.results[0].alias.empty();
}

}  // namespace

std::set<const Node*> written_views(const Graph& graph) {
  std::set<const Node*> views;
  for (const NodePtr& node : graph.nodes()) {
    if (!is_in_place(*node) || node->operands().empty() || !node->operands()[0]) continue;
    const Node* written = node->operands()[0].node.get();
    while (may_be_view(*written) && views.insert(written).second)
      written = written->operands()[0].node.get();
  }
  return views;
}

void expect_same_memory(const Node& node, const Node& example) {
  const Operation* operation = operation_of(example);
  const bool was_view = is_view(example, *operation), is_view_now = is_view(node, *operation);
  if (was_view == is_view_now) return;
  const std::string_view source = example.annotation("source");
  throw UserError(
      "[bind] " + example.op().str() + (source.empty() ? "" : " at " + std::string(source)) +
      " gives a " + (was_view ? "view" : "copy") + " in the examples and a " +
      (was_view ? "copy" : "view") + " at these sizes (" + print(node.operands()[0].type()) +
      "), and the program writes into it: add an example there");
}

}  // namespace composit
