// Graphs, their nodes and values.
#include "composit/ir/graph.h"

#include <pybind11/complex.h>
#include <pybind11/stl/filesystem.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "composit/eval/evaluate.h"
#include "composit/interchange/pt2.h"
#include "composit/io/saved_capture.h"
#include "composit/io/visualize.h"
#include "composit/ir/compare.h"
#include "composit/ir/error.h"
#include "composit/ir/parse.h"
#include "composit/ir/print.h"
#include "composit/op/backend.h"
#include "composit/passes/pass.h"
#include "frontends/python/bindings/composit/casters.h"

namespace composit::python {
namespace {

using numpy::NdArray;

std::vector<NdArray> values(const LazyTensors& tensors) { return {tensors.begin(), tensors.end()}; }

// Numbers, strings, lists of them; the text of the graph's language for the rest.
py::object to_python(const Attribute& attribute) {
  if (attribute.is_none()) return py::none();
  if (const auto* value = attribute.get_if<bool>()) return py::bool_(*value);
  if (const auto* value = attribute.get_if<double>()) return py::float_(*value);
  if (const auto* value = attribute.get_if<std::string>()) return py::str(*value);
  if (const auto* value = attribute.get_if<DType>()) return py::str(std::string(name(*value)));
  if (const auto* value = attribute.get_if<int64_t>()) return py::int_(*value);
  if (const auto* value = attribute.get_if<Scalar>())
    return std::visit([](auto number) -> py::object { return py::cast(number); }, value->value);
  if (const auto* value = attribute.get_if<Array>()) return to_numpy(*value);
  if (const auto* value = attribute.get_if<Region>()) return py::cast(**value);
  if (const auto* value = attribute.get_if<List>()) {
    py::list items;
    for (const Attribute& item : value->items) items.append(to_python(item));
    return items;
  }
  return py::str(print(attribute));
}

py::dict to_python(const Attributes& attributes) {
  py::dict result;
  for (const NamedAttribute& entry : attributes)
    result[py::str(std::string(entry.key()))] = to_python(entry.value);
  return result;
}

Passes passes_named(const py::object& names) {
  if (names.is_none()) return default_passes();
  if (py::isinstance<py::str>(names)) return find_passes(names.cast<std::string>());
  Passes passes;
  for (const py::handle item : names) {
    if (py::isinstance<py::str>(item)) {
      passes.push_back(find_pass(item.cast<std::string>()));
      continue;
    }
    py::function function = py::reinterpret_borrow<py::function>(item);
    passes.push_back(
        {.name = py::str(item.attr("__name__")),
         .run = [function](const Graph& graph) { return function(graph).cast<Graph>(); }});
  }
  return passes;
}

// The picture as text, for notebooks.
std::string svg_of(const Graph& graph) {
  char folder[] = "/tmp/composit-XXXXXX";
  if (mkdtemp(folder) == nullptr) throw UserError("[visualize] no folder can be made in /tmp");
  const std::filesystem::path path(folder);
  std::stringstream text;
  try {
    visualize(graph, path / "graph.svg");
    text << std::ifstream(path / "graph.svg").rdbuf();
  } catch (...) {
    std::filesystem::remove_all(path);
    throw;
  }
  std::filesystem::remove_all(path);
  return text.str();
}

void add_node(py::module_& module) {
  py::class_<Node, std::shared_ptr<Node>>(module, "Node", "An operation of a graph; immutable.")
      .def_property_readonly(
          "op", [](const Node& node) { return node.op().str(); },
          "Name of the operation, 'aten::relu'.")
      .def_property_readonly("operands", [](const Node& node) { return values(node.operands()); })
      .def_property_readonly("attributes",
                             [](const Node& node) { return to_python(node.attributes()); })
      .def_property_readonly(
          "execution", [](const Node& node) { return to_python(node.execution()); },
          "How LibTorch ran the operation when it was captured.")
      .def_property_readonly(
          "annotations",
          [](const Node& node) {
            py::dict result;
            for (const Annotation& annotation : node.annotations())
              if (annotation.operand < 0) result[py::str(annotation.key.str())] = annotation.value;
            return result;
          },
          "Remarks: 'scope' is the module, 'source' the line of the program.")
      .def("__repr__", [](const Node& node) { return "<Node " + node.op().str() + ">"; });
}

}  // namespace

void add_graph(py::module_& module) {
  add_node(module);
  py::class_<Graph>(module, "Graph", "A graph: what goes in, what comes out, and all between.")
      .def_property_readonly("inputs", [](const Graph& graph) { return values(graph.inputs()); })
      .def_property_readonly("outputs", [](const Graph& graph) { return values(graph.outputs()); })
      .def_property_readonly(
          "nodes",
          [](const Graph& graph) {
            std::vector<std::shared_ptr<Node>> nodes;
            for (const NodePtr& node : graph.nodes())
              nodes.push_back(std::const_pointer_cast<Node>(node));
            return nodes;
          },
          "Operands before users; inputs and constants are nodes as well.")
      .def("__len__", &Graph::size)
      .def(
          "__eq__", [](const Graph& a, const Graph& b) { return a == b; }, py::is_operator())
      .def("__hash__",
           [](const Graph& graph) { return static_cast<py::ssize_t>(graph.hash().low >> 2); })
      .def("__str__", [](const Graph& graph) { return print(graph); })
      .def("__repr__",
           [](const Graph& graph) {
             return "<Graph of " + std::to_string(graph.size()) + " nodes>";
           })
      .def(
          "run_passes",
          [](const Graph& graph, const py::object& passes) {
            return run_passes(graph, passes_named(passes));
          },
          py::arg("passes") = py::none(),
          "Another graph: names of passes ('canonicalize,drop_no_ops'), or a list of names and\n"
          "functions from Graph to Graph; the default list where none is given.")
      .def(
          "differences",
          [](const Graph& a, const Graph& b) {
            std::vector<std::string> lines;
            for (const Difference& difference : compare(a, b)) lines.push_back(str(difference));
            return lines;
          },
          py::arg("other"), "Where two graphs differ, for people; empty where they are equal.")
      .def("to_dot", [](const Graph& graph) { return to_dot(graph); })
      .def(
          "visualize",
          [](const Graph& graph, const std::filesystem::path& path, size_t max_nodes) {
            const py::gil_scoped_release unlocked;
            visualize(graph, path, {.max_nodes = max_nodes});
          },
          py::arg("path"), py::arg("max_nodes") = VisualizeOptions().max_nodes,
          "Draws into 'x.svg', 'x.dot', or a folder of pages.")
      .def("_repr_svg_", &svg_of)
      .def(
          "evaluate",
          [](const Graph& graph, const std::vector<py::object>& inputs) {
            std::vector<Array> arrays;
            for (const py::object& input : inputs)
              arrays.push_back(input.is_none() ? Array() : from_numpy(input));
            // Weights of a graph that was loaded are there.
            arrays.resize(std::max(arrays.size(), graph.inputs().size()));
            for (size_t i = 0; i < graph.inputs().size(); ++i)
              if (!arrays[i].defined()) arrays[i] = graph.inputs()[i].node->held();
            std::vector<Array> results;
            {
              const py::gil_scoped_release unlocked;
              results = reference().compile(graph)(arrays);
            }
            py::list outputs;
            for (const Array& result : results) outputs.append(to_numpy(result));
            return outputs;
          },
          py::arg("inputs"), "Values of outputs, then of what is written, by the definitions.");
  module.def(
      "parse", [](const std::string& text) { return parse(text); }, py::arg("text"),
      "The graph that str(graph) describes. Error with line and column otherwise.");
  module.def(
      "load_pt2", [](const std::filesystem::path& file) { return load_pt2(file).graph; },
      py::arg("file"), py::call_guard<py::gil_scoped_release>(),
      "The graph of a file of torch.export. Parameters and buffers, which come behind the\n"
      "arguments, hold their values: `evaluate` needs none for them. Error that lists all that\n"
      "composit has no operations for.");
  module.def("pass_names", [] {
    std::vector<std::string> names;
    for (const Pass& pass : all_passes()) names.push_back(pass.name);
    return names;
  });
}

}  // namespace composit::python
