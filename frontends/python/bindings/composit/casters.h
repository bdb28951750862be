// How composit's values look to Python, for the files of both extension modules.
//
//   Array    numpy.ndarray, sharing memory (read-only where it comes from composit)
//   DType    its name, "float32"
//   NdArray  LazyTensor: values of a graph are what composit.numpy computes with
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "composit/ir/array.h"
#include "composit/numpy/ndarray.h"

namespace composit::python {

namespace py = pybind11;

// UserError for a dtype that NumPy does not have (bfloat16).
py::object to_numpy(const Array& array);
// Anything numpy.asarray takes. UserError for a dtype that composit does not have.
Array from_numpy(const py::object& object);

// UserError that lists the names there are.
DType dtype_named(const std::string& name);

void add_graph(py::module_& module);
void add_arrays(py::module_& module);

}  // namespace composit::python
