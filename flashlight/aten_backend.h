// Graphs run by LibTorch's kernels: the fast way to values where LibTorch is at hand.
//
//   std::vector<composit::Array> y = composit::evaluate(graph, {x}, flashlight::aten());
#pragma once

#include "composit/op/backend.h"

namespace flashlight {

// Every operation of ATen, and those that composit defines. Inputs are not written to: what a graph
// writes is among the results.
const composit::Backend& aten();

}  // namespace flashlight
