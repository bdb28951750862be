// The same program in double precision, as a yardstick for rounding errors.
#pragma once

#include "composit/ir/graph.h"

namespace flashlight {

// The graph with every float32 type, dtype attribute and constant turned into float64; with
// `halves`, those of 16-bit floats, too, so that nothing is rounded on the way.
composit::Graph in_float64(const composit::Graph& graph, bool halves = false);

}  // namespace flashlight
