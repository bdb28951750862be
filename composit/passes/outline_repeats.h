// Repeated pieces of a graph become calls of one region: twelve equal encoder layers, one function
// that is called twelve times; an unrolled loop, its body.
//
//   Graph outlined = outline_repeats(bert);     // … %y = composit::call(%x, …) {body=…}
//   inline_calls(outlined) == bert;
//
// Found by structure (repeats.h), the piece that saves most first, then again with the calls as
// nodes, so that calls may call. All calls of a piece hold one Graph object, so that a backend
// emits it once; after parsing, they hold equal ones. What a piece takes from outside are the
// operands; operands that are the same tensor in every call come in once. What anybody outside uses
// of any piece are the outputs.
//
// Nodes with an effect are left where they are. With `limits.effects` they may be parts of pieces:
// calls and regions have effects then, in the same order, and `inline_calls` leaves such calls.
//
// The region is named by the module that its nodes come from ("encoder_layer"); scopes inside and
// names of parameters are those within that module. It is `body` of the node's execution:
// evaluated, differentiated and replayed as that of any composite operation without a row.
#pragma once

#include "composit/ir/graph.h"
#include "composit/passes/repeats.h"

namespace composit {

Graph outline_repeats(const Graph& graph, const RepeatLimits& limits = {});

}  // namespace composit
