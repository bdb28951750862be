// The values that a plan's kernels write to memory, and the nodes of the graph that they are of.
//
//   for (const composit::WrittenValue& one : written_values(graph, options)) ...
#pragma once

#include <vector>

#include "composit/op/backend.h"
#include "flashlight/mosaic/plan.h"

namespace flashlight::mosaic {

// UserError as of `plan_of`. What passes made without a node of the graph is left out.
std::vector<composit::WrittenValue> written_values(const composit::Graph& graph,
                                                   const PlanOptions& options);

}  // namespace flashlight::mosaic
