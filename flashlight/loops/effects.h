// What a capture does beside computing its results, in a form that code can be written for.
//
//   graph = with_open_effects(graph);
//
// Composites with draws or guards in them become their parts. `aten::equal`, `aten::allclose`, the
// errors of factorisations, and operations whose sizes depend on values, become what they compute
// for the sizes that were captured, and guards of one number each: `aten::_local_scalar_dense` with
// the number that is expected, annotated with the operation that the guard is for (`guard`). Draws
// into memory in another order than row-major, as of dropout behind a transpose, become draws in
// that order.
#pragma once

#include "composit/ir/graph.h"

namespace flashlight::loops {

composit::Graph with_open_effects(const composit::Graph& graph);

}  // namespace flashlight::loops
