// Values of tensors by the backends, and derivatives.
#include "composit/eval/evaluate.h"

#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include "composit/ad/chain_rule.h"
#include "composit/ir/error.h"
#include "composit/ir/transform.h"
#include "flashlight/backends/registry.h"
#include "frontends/python/bindings/composit/casters.h"
#include "frontends/python/bindings/composit/evaluate.h"
#include "frontends/python/bindings/composit/python_lines.h"

namespace composit::python {
namespace {

using namespace py::literals;

// The graph with inputs named by their place: arrays of Python get a new name each, and the graph
// of an iteration is to be that of the one before.
Graph with_numbered_inputs(const Graph& graph) {
  FlatMap<const Node*, size_t> numbers;
  for (size_t i = 0; i < graph.inputs().size(); ++i)
    numbers.insert(graph.inputs()[i].node.get(), i);
  return rebuild(graph, [&](const Node& node, const LazyTensors&) {
    std::optional<Replacement> replacement;
    if (const size_t* number = numbers.find(&node))
      replacement = replace_by(input("input_" + std::to_string(*number), node.outputs()[0]).node);
    return replacement;
  });
}

// Compiles equal graphs once; the last ones stay.
class CompiledOnce : public Backend {
 public:
  explicit CompiledOnce(const Backend& backend) : backend_(backend) {}
  std::string name() const override { return backend_.name(); }

 protected:
  Compiled make(const Graph& graph, const CompileOptions& options) const override {
    const Graph numbered = with_numbered_inputs(graph);
    const std::lock_guard lock(mutex_);
    for (const auto& [key, compiled] : made_)
      if (key == numbered) return compiled;
    made_.emplace_front(numbered, backend_.compile(numbered, options));
    if (made_.size() > kKept) made_.pop_back();
    return made_.front().second;
  }

 private:
  static constexpr size_t kKept = 64;
  const Backend& backend_;
  mutable std::mutex mutex_;
  mutable std::deque<std::pair<Graph, Compiled>> made_;
};

py::object evaluate_all_of(const std::vector<NdArray>& tensors, const std::string& backend,
                           const py::dict& inputs) {
  Values values;
  for (const auto& [tensor, value] : inputs)
    values.set(tensor.cast<const NdArray&>(),
               from_numpy(py::reinterpret_borrow<py::object>(value)).contiguous());
  const LazyTensors outputs = lazy_tensors(tensors);
  const Backend& chosen = backend_named(backend);
  std::vector<Array> arrays;
  {
    const py::gil_scoped_release unlocked;
    arrays = evaluate(outputs, values, chosen);
  }
  // Copies, which may be written to: what an input holds is a value as well.
  const py::object copy = py::module_::import("numpy").attr("array");
  py::list results;
  for (const Array& array : arrays) results.append(copy(to_numpy(array)));
  return py::tuple(results);
}

}  // namespace

LazyTensors lazy_tensors(const NdArrays& arrays) {
  LazyTensors tensors;
  for (const NdArray& array : arrays) tensors.push_back(array);
  return tensors;
}
NdArrays arrays_of(const LazyTensors& tensors) { return {tensors.begin(), tensors.end()}; }

Graph graph_of(const LazyTensors& outputs) {
  Graph::Parts parts{.outputs = outputs};
  const Graph all(parts);
  for (const NodePtr& node : all.nodes())
    if (is_input(*node)) parts.inputs.push_back({node, 0});
  return Graph(std::move(parts));
}

const Backend& backend_named(const std::string& name) {
  static std::mutex mutex;
  static std::map<const Backend*, CompiledOnce> all;
  const Backend& backend = flashlight::backend_named(name);
  if (&backend == &reference()) return backend;
  const std::lock_guard lock(mutex);
  return all.try_emplace(&backend, backend).first->second;
}

// The backends there are, with their options.
py::dict describe_backends() {
  py::dict all;
  for (const Backend* backend : flashlight::backends()) {
    py::dict options;
    for (const Option& option : backend->options())
      if (option.use != Option::Use::programs)
        options[py::str(option.name)] =
            option.help + " (" + type_name(option.fallback) + "; " + text_of(option.fallback) + ")";
    py::dict entry;
    entry["help"] = backend->help();
    entry["options"] = options;
    all[py::str(backend->name())] = entry;
  }
  return all;
}

void add_evaluate(py::module_& module) {
  const py::call_guard<PythonLine> guard;
  module.def("evaluate", &evaluate_all_of, "tensors"_a, "backend"_a, "inputs"_a);
  module.def("backends", &describe_backends,
             "The backends there are: by name, what each is, and its options.");
  module.def(
      "load_plugin", [](const std::string& path) { return flashlight::load_plugin(path).name(); },
      "path"_a, "Loads the backend of a shared library (composit/op/plugin.h); its name.");
  module.def(
      "chain_rule",
      [](const std::vector<std::pair<NdArray, NdArray>>& seeds, const NdArrays& inputs) {
        std::vector<Seed> flows;
        for (const auto& [output, cotangent] : seeds) flows.push_back({output, cotangent});
        return arrays_of(chain_rule(flows, lazy_tensors(inputs)));
      },
      "seeds"_a, "inputs"_a, guard);
  module.def(
      "jvp",
      [](const NdArrays& outputs, const NdArrays& inputs, const NdArrays& tangents) {
        return arrays_of(jvp(lazy_tensors(outputs), lazy_tensors(inputs), lazy_tensors(tangents)));
      },
      "outputs"_a, "inputs"_a, "tangents"_a, guard,
      "Forward mode: how outputs change along tangents, one per input.");
  module.def(
      "hessian_vector_product",
      [](const NdArray& loss, const NdArrays& inputs, const NdArrays& vectors) {
        return arrays_of(hessian_vector_product(loss, lazy_tensors(inputs), lazy_tensors(vectors)));
      },
      "loss"_a, "inputs"_a, "vectors"_a, guard,
      "Second derivatives of loss by inputs times vectors, one per input.");
  module.def(
      "graph_of", [](const NdArrays& outputs) { return graph_of(lazy_tensors(outputs)); },
      "outputs"_a, "All that leads to these values.");
}

}  // namespace composit::python
