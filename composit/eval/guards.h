// Checks the guards of a graph (composit/ops/guards.h) on values.
//
//   if (const Guard* guard = guard_of(node)) check_guard(*guard, node, operands);
#pragma once

#include <vector>

#include "composit/ir/array.h"
#include "composit/ops/guards.h"

namespace composit {

// `operands`: an array per operand of the node. Real numbers may differ from the captured ones as
// much as results do. UserError: "[evaluate] guard 'aten::equal' gave another number than …".
void check_guard(const Guard& guard, const Node& node, const std::vector<Array>& operands);

}  // namespace composit
