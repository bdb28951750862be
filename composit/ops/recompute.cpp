#include "composit/ops/recompute.h"

#include <algorithm>

#include "composit/ir/graph.h"
#include "composit/ops/operations.h"

namespace composit {
namespace {

bool is_cheap(Function function) {
  switch (function) {
    case Function::neg:
    case Function::abs:
    case Function::sign:
    case Function::min:
    case Function::max:
    case Function::floor:
    case Function::ceil:
    case Function::isnan:
    case Function::sqrt:
      return true;
    default:  // arithmetic, comparisons, select and cast: all that has no name
      return function >= Function::neg;
  }
}

bool is_cheap(const Loops& loops) {
  for (const Statement& statement : loops.statements) {
    if (!statement.init.empty()) return false;  // sums
    std::vector<Expr> values = {statement.domain};
    for (const Store& store : statement.stores) values.push_back(store.value);
    for (const Expr& part : parts_of(values))
      if (part.kind() == ExprKind::call && !is_cheap(part.function())) return false;
  }
  return true;
}

// Looks at the nodes between the operands of `whole`, which exist, and the results.
bool are_cheap(const LazyTensors& results, const Node& whole) {
  uint64_t existing = 0;
  for (const LazyTensor& operand : whole.operands())
    if (operand) existing = std::max(existing, operand.node->serial());
  std::vector<NodePtr> open;
  for (const LazyTensor& result : results)
    if (result.defined()) open.push_back(result.node);
  while (!open.empty()) {
    const NodePtr node = open.back();
    open.pop_back();
    if (node->serial() <= existing) continue;
    if (!is_cheap(*node)) return false;
    for (const LazyTensor& operand : node->operands())
      if (operand) open.push_back(operand.node);
  }
  return true;
}

}  // namespace

bool is_cheap(const Node& node) {
  if (is_input(node) || node.op() == ops::kConstant) return true;
  const Operation* operation = operation_of(node);
  if (operation == nullptr) return false;
  const Call call = call_of(node, operation->schema);
  if (const auto loops = loops_of(*operation, call)) return is_cheap(*loops);
  return operation->row.decompose && are_cheap(decompose(*operation, call), node);
}

}  // namespace composit
