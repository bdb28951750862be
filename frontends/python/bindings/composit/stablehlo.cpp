// A graph for XLA: the text of a module, and the graph of its derivative.
#include "composit/interchange/stablehlo.h"

#include "composit/ad/functional.h"
#include "composit/ir/error.h"
#include "composit/ir/transform.h"
#include "composit/ops/functions.h"
#include "frontends/python/bindings/composit/casters.h"

namespace composit::python {
namespace {

py::dict module_of(const Graph& graph, const std::string& name, bool drop_guards) {
  StableHloModule made;
  {
    const py::gil_scoped_release unlocked;
    made = stablehlo_module(graph, name, {.drop_guards = drop_guards});
  }
  py::dict weights, result;
  for (const auto& [key, value] : made.weights) weights[py::str(key)] = to_numpy(value);
  result["text"] = made.text;
  result["outputs"] = made.outputs;
  result["written"] = made.written;
  result["guards"] = made.guards;
  result["weights"] = weights;
  return result;
}

// From the inputs of `graph` and a cotangent for each of its floating point outputs to a gradient
// for each of its floating point inputs.
Graph pullback(const Graph& graph) {
  if (!graph.mutations().empty())
    throw UserError("[jax] the derivative of a graph that writes to its inputs is not defined");
  LazyTensors inputs, floating;
  for (const LazyTensor& given : graph.inputs()) {
    inputs.push_back(input(input_name(*given.node), tensor_type(given.dtype(), given.sizes())));
    if (is_floating_point(given.dtype())) floating.push_back(inputs.back());
  }
  const auto results_for = [&](const LazyTensors& values) {
    LazyTensors arguments = inputs;
    size_t next = 0;
    for (LazyTensor& argument : arguments)
      if (is_floating_point(argument.dtype())) argument = values[next++];
    return inlined(graph, arguments);
  };
  const Pullback back = vjp(results_for, floating);
  LazyTensors all = inputs, cotangents, gradients;
  for (const LazyTensor& result : back.results) {
    cotangents.emplace_back();
    if (!result || !is_floating_point(result.dtype())) continue;
    cotangents.back() = input("cotangent_" + std::to_string(cotangents.size()),
                              tensor_type(result.dtype(), result.sizes()));
    all.push_back(cotangents.back());
  }
  const LazyTensors found = back.back(cotangents);
  for (size_t i = 0; i < floating.size(); ++i)
    gradients.push_back(found[i] ? found[i] : apply_one("aten::zeros_like", {floating[i]}));
  return Graph({.inputs = all, .outputs = gradients});
}

}  // namespace

void add_stablehlo(py::module_& module) {
  module.def("stablehlo", &module_of, py::arg("graph"), py::arg("name"), py::arg("drop_guards"));
  module.def("pullback", &pullback, py::arg("graph"), py::call_guard<py::gil_scoped_release>());
}

}  // namespace composit::python
