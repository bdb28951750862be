// A graph of StableHLO's operators.
//
//   const Lowered lowered = lower(graph);
//   print(lowered.graph);               // %y = stablehlo::convolution(%x, %weight, …)
#pragma once

#include "composit/interchange/lower.h"

namespace composit::stablehlo {

using interchange::Lowered;

// See composit/interchange/lower.h. That indices are in range, that a loop ends before its limit
// and the like, which torch asks and StableHLO does not, are further guards, one per question.
//
// Within branches and loops such a question is a UserError, unless `drop_guards`.
Lowered lower(const Graph& graph, bool drop_guards = false);

}  // namespace composit::stablehlo
