// What the files of flashlight/_flashlight share. Tensors are torch.Tensor (THPVariable).
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include "frontends/python/bindings/composit/python_lines.h"

namespace flashlight::python {

namespace py = pybind11;

void add_capture(py::module_& module);
void add_compile(py::module_& module);
void add_scope(py::module_& module);

using composit::python::python_lines;

}  // namespace flashlight::python
