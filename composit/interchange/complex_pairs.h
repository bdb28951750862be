// Complex numbers as pairs of real ones, for targets that have none.
//
//   const Graph real = complex_as_pairs(graph, refusals);
//
// Within the graph a complex tensor is two tensors, of real and of imaginary parts. Inputs, outputs
// and what is written have a last axis of size 2 instead, as torch.view_as_real gives it: an input
// of complex64[3] becomes one of float32[3, 2] of the same name.
#pragma once

#include "composit/interchange/refusals.h"
#include "composit/ir/graph.h"

namespace composit::interchange {

// Operators on complex numbers become operators of ATen on their parts: by rules of their own, else
// by their definitions (definition.h). A graph without complex numbers is given back as it is.
// `refusals` gets nodes that have neither, and branches and loops that carry complex numbers; what
// they give are zeros then. `around`: what the graph is a part of.
Graph complex_as_pairs(const Graph& graph, Refusals& refusals, const Origin& around = {});

}  // namespace composit::interchange
