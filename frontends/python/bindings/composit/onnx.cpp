// Models of other frameworks as graphs, and graphs as theirs.
#include "composit/interchange/onnx.h"

#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include "composit/interchange/stablehlo.h"
#include "frontends/python/bindings/composit/casters.h"

namespace composit::python {
namespace {

// With the values that inputs hold, which are weights by that.
SavedCapture capture_of(const Graph& graph) {
  SavedCapture capture{.graph = graph, .producer = "composit"};
  for (const LazyTensor& input : graph.inputs())
    if (input.node->held().defined()) capture.weights[input_name(*input.node)] = input.node->held();
  return capture;
}

}  // namespace

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
  module.def(
      "save_onnx",
      [](const Graph& graph, const std::filesystem::path& file, int opset, bool drop_guards,
         bool matmul_nbits) {
        const py::gil_scoped_release unlocked;
        save_onnx(capture_of(graph), file,
                  {.opset = opset, .drop_guards = drop_guards, .matmul_nbits = matmul_nbits});
      },
      py::arg("graph"), py::arg("file"), py::arg("opset") = OnnxOptions().opset,
      py::arg("drop_guards") = false, py::arg("matmul_nbits") = false,
      "Writes a graph as an ONNX model. Parameters and buffers need the values that inputs hold.\n"
      "Error for operators that have no form there, all at once.");
  module.def(
      "save_stablehlo",
      [](const Graph& graph, const std::filesystem::path& file, bool parameters, bool drop_guards) {
        const py::gil_scoped_release unlocked;
        save_stablehlo(capture_of(graph), file,
                       {.weights_as_parameters = parameters, .drop_guards = drop_guards});
      },
      py::arg("graph"), py::arg("file"), py::arg("weights_as_parameters") = false,
      py::arg("drop_guards") = false, "The same as a module of StableHLO.");
}

}  // namespace composit::python
