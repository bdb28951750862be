// What the files of flashlight/_flashlight share. Tensors are torch.Tensor (THPVariable).
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include <functional>
#include <string>

namespace flashlight::python {

namespace py = pybind11;

void add_capture(py::module_& module);
void add_compile(py::module_& module);
void add_scope(py::module_& module);

// The innermost line of the Python program that is neither torch's nor ours,
// "model.py:12 in forward"; empty where there is none. `hidden`: folders whose files are not the
// program's. To be called on the thread it asks about; takes the GIL.
std::function<std::string()> python_lines(std::vector<std::string> hidden);

}  // namespace flashlight::python
