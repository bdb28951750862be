// Models of other frameworks, as graphs.
#include "composit/interchange/onnx.h"

#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include "frontends/python/bindings/composit/casters.h"

namespace composit::python {

void add_onnx(py::module_& module) {
  module.def(
      "load_onnx",
      [](const std::filesystem::path& file, const std::map<std::string, int64_t>& sizes) {
        const py::gil_scoped_release unlocked;
        return load_onnx(file, {.sizes = sizes}).graph;
      },
      py::arg("file"), py::arg("sizes") = std::map<std::string, int64_t>(),
      "The graph of an ONNX model. Its inputs are those of the model, by name, then weights,\n"
      "which hold their values; outputs are in the model's order. sizes: those that the model\n"
      "leaves open, {'batch': 2}, or by input and axis, {'input_ids.0': 2}. Error for operators\n"
      "that are not known, all at once.");
}

}  // namespace composit::python
