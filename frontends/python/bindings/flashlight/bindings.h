// Shared by the files of flashlight/_flashlight. Tensors are torch.Tensor (THPVariable).
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "flashlight/compile.h"
#include "flashlight/gradient.h"
#include "flashlight/interchange.h"
#include "frontends/python/bindings/composit/python_lines.h"

namespace flashlight::python {

namespace py = pybind11;

void add_adaptive(py::module_& module);
void add_capture(py::module_& module);
void add_compile(py::module_& module);
void add_family(py::module_& module);
void add_generate(py::module_& module);
void add_host_memory(py::module_& module);
void add_scope(py::module_& module);

using composit::python::python_lines;

// A Python object that takes a list of tensors, and gives one and the structure of results as text.
// Held weakly: the Python object that owns a capture owns its program too, so that Python's
// collector sees the circle of a model that holds its own capture.
using HeldWeakly = std::shared_ptr<py::weakref>;
HeldWeakly hold_weakly(const py::object& program);
// UserError where it is gone.
py::object object_of(const HeldWeakly& held);
// What runs it, and names its tensors.
Program program_of(const HeldWeakly& held);
NamesOf names_of(const HeldWeakly& held);

// `options` holds members of CompileSettings, and options of the backend by their names.
CompileSettings compile_settings(const std::string& backend, const py::dict& options);

// Without the GIL: a replay may take long, and calls no Python.
template <class Function>
auto unlocked(Function function) {
  const py::gil_scoped_release released;
  return function();
}

// Results, and the structure of them as text.
inline std::pair<std::vector<at::Tensor>, std::string> with_structure(FlatValues results) {
  std::string structure = str(results.structure);
  return {std::move(results.tensors), std::move(structure)};
}

// The loss and the gradients that `function` computes, as Python takes them.
template <class Function>
std::pair<at::Tensor, std::vector<at::Tensor>> loss_and_gradients(Function function) {
  Gradient::Result result = unlocked(function);
  return {std::move(result.loss), std::move(result.gradients)};
}

// Writes a capture, a family or a derivative for torch.export.
template <class Captured>
void write_pt2(const Captured& captured, const std::filesystem::path& file,
               bool parameters_as_buffers) {
  save_pt2(captured, file, {.parameters_as_buffers = parameters_as_buffers});
}

// The same as an ONNX model.
template <class Captured>
void write_onnx(const Captured& captured, const std::filesystem::path& file, int opset,
                bool drop_guards, bool matmul_nbits, const std::filesystem::path& weights_in) {
  save_onnx(captured, file,
            {.opset = opset,
             .drop_guards = drop_guards,
             .matmul_nbits = matmul_nbits,
             .weights_in = weights_in});
}

template <class Captured>
void write_stablehlo(const Captured& captured, const std::filesystem::path& file,
                     bool weights_as_parameters, bool drop_guards) {
  save_stablehlo(captured, file,
                 {.weights_as_parameters = weights_as_parameters, .drop_guards = drop_guards});
}

}  // namespace flashlight::python
