// Shared by the files of flashlight/_flashlight. Tensors are torch.Tensor (THPVariable).
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include <utility>
#include <vector>

#include "flashlight/gradient.h"
#include "frontends/python/bindings/composit/python_lines.h"

namespace flashlight::python {

namespace py = pybind11;

void add_capture(py::module_& module);
void add_compile(py::module_& module);
void add_family(py::module_& module);
void add_host_memory(py::module_& module);
void add_scope(py::module_& module);

using composit::python::python_lines;

// Without the GIL: a replay may take long, and calls no Python.
template <class Function>
auto unlocked(Function function) {
  const py::gil_scoped_release released;
  return function();
}

// The loss and the gradients that `function` computes, as Python takes them.
template <class Function>
std::pair<at::Tensor, std::vector<at::Tensor>> loss_and_gradients(Function function) {
  Gradient::Result result = unlocked(function);
  return {std::move(result.loss), std::move(result.gradients)};
}

}  // namespace flashlight::python
