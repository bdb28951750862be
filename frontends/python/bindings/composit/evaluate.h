// Backends by name, and lists of tensors.
#pragma once

#include <string>
#include <vector>

#include "composit/numpy/ndarray.h"
#include "composit/op/backend.h"

namespace composit::python {

LazyTensors lazy_tensors(const numpy::NdArrays& arrays);
numpy::NdArrays arrays_of(const LazyTensors& tensors);

// All that leads to these values, its inputs listed in the order in which they were made.
Graph graph_of(const LazyTensors& outputs);

// All but the reference compile graphs that are equal but for names of inputs once. UserError for
// a name of none.
const Backend& backend_named(const std::string& name);

}  // namespace composit::python
