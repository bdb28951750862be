// Guards: questions about values that a captured program asked on the host. A guard computes no
// value; the graph is valid only if its answers are those that were recorded.
//
//   if (is_guard(node)) check_guard(node, operands);       // UserError where the answer is another
#pragma once

#include <vector>

#include "composit/ir/array.h"
#include "composit/ir/node.h"

namespace composit {

// Numbers of tensors, comparisons of two, asserted conditions, errors that factorisations report.
bool is_guard(const Node& node);

// `operands`: an array per operand of the node. Real numbers may differ from the captured ones as
// much as results do.
void check_guard(const Node& node, const std::vector<Array>& operands);

}  // namespace composit
