// Rewrites the effects of a capture (draws, guards) into forms that code can be generated for.
//
//   graph = with_open_effects(graph);
//
// Composites that contain draws or guards are replaced by their parts. `aten::equal`,
// `aten::allclose`, the error checks of factorisations, and operations whose result sizes depend on
// values are replaced by a computation for the captured sizes and guards of one number each:
// `aten::_local_scalar_dense` with the expected number, annotated with the operation that the guard
// is for (`guard`). A draw into memory that is not row-major, as of dropout after a transpose, is
// replaced by a draw in the order of memory and a permutation.
#pragma once

#include "composit/ir/graph.h"

namespace flashlight::loops {

composit::Graph with_open_effects(const composit::Graph& graph);

}  // namespace flashlight::loops
