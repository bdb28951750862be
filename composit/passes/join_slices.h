// Sums of slices that were put back into zeros, as the derivative of a program that takes an array
// apart has them, are the slices joined.
//
// ```text
//   x[0:2].f() + x[2:5].g()   has the derivative   slice_backward(f') + slice_backward(g'),
//                             which becomes        cat(f' + 0, g' + 0)
// ```
//
// Exact: adding zeros to an element changes nothing but the sign of a zero, which adding one does.
#pragma once

#include "composit/ir/graph.h"

namespace composit {

Graph join_slices(const Graph& graph);

}  // namespace composit
