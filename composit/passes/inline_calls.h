// Calls become the nodes of what they call: the inverse of `outline_repeats`.
//
//   inline_calls(outline_repeats(graph)) == graph;
//
// `composit::call` takes the operands of the region `body`, gives its outputs, and has its name as
// `name`. Calls within regions are inlined as well; those with an effect stay.
#pragma once

#include "composit/ir/graph.h"

namespace composit {

namespace ops {
inline const Symbol kCall("composit::call");  // attribute: name; execution: body
}  // namespace ops

// The results of a region for these operands, one per input, as one node `composit::call`; of a
// graph, whose inputs become arguments.
LazyTensors call_region_as_node(const std::string& name, const Region& body,
                                const LazyTensors& operands);
LazyTensors call_as_node(const std::string& name, const Graph& graph, const LazyTensors& operands);

Graph inline_calls(const Graph& graph);

// The results of the region `body` of `node` for `operands`, as nodes at the position of `node`.
// Scopes in the region are put inside of the scope of `node`.
LazyTensors inlined_body(const Node& node, const LazyTensors& operands);

}  // namespace composit
