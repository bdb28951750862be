// Which values are known when a program is prepared, before it is called.
//
//   const std::set<std::string> changing = changing_inputs(graph);
//   const std::vector<bool> frozen = frozen_values(routine, changing, /*freeze=*/true);
#pragma once

#include <set>
#include <string>
#include <vector>

#include "composit/ir/graph.h"
#include "flashlight/mosaic/ids.h"

namespace flashlight::mosaic {

// Names of the inputs that a call of the graph writes.
std::set<std::string> changing_inputs(const composit::Graph& graph);

// By value: weights that no call changes, unless `freeze` is false, and values that nests compute
// from frozen values alone. A value computed from no input is not frozen: each kernel that needs it
// computes it.
// Nor is one of `sized`: no preparation does for all sizes.
std::vector<bool> frozen_values(const loops::Routine& routine,
                                const std::set<std::string>& changing, bool freeze,
                                const std::set<ValueId>& sized = {});

}  // namespace flashlight::mosaic
