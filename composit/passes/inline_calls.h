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

Graph inline_calls(const Graph& graph);

// The results of the region `body` of `node` for `operands`, as nodes at the position of `node`.
// Scopes in the region are put inside of the scope of `node`.
LazyTensors inlined_body(const Node& node, const LazyTensors& operands);

}  // namespace composit
