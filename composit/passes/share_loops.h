// Joins loops that make the same trips and have different outputs; unused outputs are left out.
//
// ```text
//   %y = composit::scan([%h], [%x], …)                  %y, %tape = composit::scan([%h], [%x], …)
//   %z, %tape = composit::scan([%h], [%x], …)      →    … = composit::scan(…, [%tape], …)
//   … = composit::scan(…, [%tape], …)
// ```
//
// Derivatives run a loop forward for what they need of its trips (composit/ops/control_flow.h);
// without this pass it runs once more for its value.
#pragma once

#include "composit/ir/graph.h"

namespace composit {

Graph share_loops(const Graph& graph);

}  // namespace composit
