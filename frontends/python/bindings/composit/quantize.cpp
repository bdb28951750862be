// Graphs with weights of few bits.
#include "frontends/python/bindings/composit/quantize.h"

#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include "composit/io/gguf.h"
#include "frontends/python/bindings/composit/casters.h"

namespace composit::python {
namespace {

// With the values that inputs hold, which are weights by that.
SavedCapture with_held_weights(const Graph& graph) {
  SavedCapture capture{.graph = graph, .producer = "composit"};
  for (const LazyTensor& input : graph.inputs())
    if (input.node->held().defined()) capture.weights[input_name(*input.node)] = input.node->held();
  return capture;
}

// Values by name; each holds the bytes of the file, which stays mapped.
std::map<std::string, NdArray> gguf_tensors(const std::filesystem::path& file) {
  std::map<std::string, NdArray> tensors;
  for (const auto& [name, tensor] : read_gguf(file).tensors)
    tensors.emplace(name, numbers_of(name, tensor));
  return tensors;
}

Quantized quantize_graph(const Graph& graph, const py::list& examples, const py::kwargs& keywords) {
  QuantizeOptions options = quantize_options(keywords);
  for (const py::handle example : examples) {
    std::vector<Array>& arrays = options.examples.emplace_back();
    for (const py::handle array : py::reinterpret_borrow<py::sequence>(example))
      arrays.push_back(copy_of_numpy(py::reinterpret_borrow<py::object>(array)));
  }
  const py::gil_scoped_release unlocked;
  return quantize(with_held_weights(graph), options);
}

}  // namespace

void add_quantize(py::module_& module) {
  py::class_<QuantizedLayer>(module, "QuantizedLayer", "A weight, and what became of it.")
      .def_readonly("weight", &QuantizedLayer::weight)
      .def_readonly("scope", &QuantizedLayer::scope)
      .def_readonly("sizes", &QuantizedLayer::sizes)
      .def_readonly("bytes_before", &QuantizedLayer::bytes_before)
      .def_readonly("bytes_after", &QuantizedLayer::bytes_after)
      .def_readonly("weight_error", &QuantizedLayer::weight_error)
      .def_readonly("output_error", &QuantizedLayer::output_error)
      .def_readonly("result_error", &QuantizedLayer::result_error,
                    "Of the results if this layer alone is quantized; None: not measured.")
      .def_readonly("left", &QuantizedLayer::left, "Why it stays as it was; empty: it does not.");
  py::class_<Quantized>(module, "Quantized", "A quantized graph, and a report: str() is a table.")
      .def_property_readonly("graph", [](const Quantized& q) { return q.capture.graph; })
      .def_readonly("layers", &Quantized::layers)
      .def_readonly("error", &Quantized::error,
                    "Of the results on the examples, in units of their spread; None: not measured.")
      .def("__str__", [](const Quantized& q) { return str(q); });
  module.def("load_gguf", &gguf_tensors, py::arg("file"), py::call_guard<py::gil_scoped_release>(),
             "The weights of a GGUF file by name, lazily: they are computed from its bytes, which\n"
             "stay where they are. Error with file and byte for what is no such file.");
  module.def(
      "with_values",
      [](const Graph& graph, const std::map<std::string, NdArray>& values) {
        const std::map<std::string, LazyTensor> plain(values.begin(), values.end());
        return with_values(with_held_weights(graph), plain).graph;
      },
      py::arg("graph"), py::arg("values"),
      "The graph with other values for some of its weights, by name, as load_gguf gives them.");
  module.def(
      "quantize", &quantize_graph, py::arg("graph"), py::arg("examples") = py::list(),
      "The graph with weights of few bits; its inputs hold the weights, before and after.\n"
      "weights: 'int8' or 'int4'; group: inputs that share a scale, 0: all; symmetric: without\n"
      "zero points; scales: 'float32', 'float16' or 'bfloat16'; activations: 'unchanged', "
      "'by_token' or 'calibrated'; method: 'nearest',\n"
      "'gptq', 'awq' or 'smooth', by examples, lists of arrays; layers, exclude: names of\n"
      "weights, as in 'encoder.*'; max_error: quantizes as many as keep results within this part\n"
      "of their spread; measure; backend: who runs the examples; alone: who measures what each "
      "layer\n"
      "alone costs the results, as 'aten' of flashlight.");
}

}  // namespace composit::python
