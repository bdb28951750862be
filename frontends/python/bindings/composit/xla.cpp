// The backend `xla`: graphs as modules of StableHLO that JAX's XLA compiles and runs.
#include <memory>

#include "composit/interchange/stablehlo.h"
#include "composit/ir/error.h"
#include "composit/op/backend.h"
#include "flashlight/backends/registry.h"
#include "frontends/python/bindings/composit/casters.h"

namespace composit::python {
namespace {

// An object of Python that threads may hold and let go of which know nothing of Python.
std::shared_ptr<py::object> shared(py::object object) {
  return {new py::object(std::move(object)), [](py::object* held) {
            if (!Py_IsInitialized()) {
              held->release();
            } else {
              const py::gil_scoped_acquire gil;
              delete held;
              return;
            }
            delete held;
          }};
}

// What a call gives, as Code::call has it: guards are asked, what is absent is left out.
std::vector<Array> results_of(const Graph& graph, const StableHloModule& module,
                              const py::list& given) {
  const size_t count = module.outputs + module.written.size();
  for (size_t i = 0; i < module.guards.size(); ++i)
    if (!given[count + i].cast<bool>())
      throw UserError("[xla] does not hold for these values: " + module.guards[i]);
  std::vector<Array> results;
  size_t next = 0;
  for (const LazyTensor& output : graph.outputs())
    results.push_back(output ? copy_of_numpy(given[next++]) : Array());
  while (next < count) results.push_back(copy_of_numpy(given[next++]));
  return results;
}

class Xla : public Backend {
 public:
  std::string name() const override { return "xla"; }
  std::string help() const override {
    return "XLA, by the package jax; guards are looked at after a call";
  }
  bool has_code(const Operation& operation) const override { return has_stablehlo(operation); }

 protected:
  Compiled make(const Graph& graph, const CompileOptions& options) const override {
    StableHloModule module = stablehlo_module(graph, options.name);
    const py::gil_scoped_acquire gil;
    py::list weights;  // constants, which are arguments as well
    for (const auto& [name, value] : module.weights) weights.append(to_numpy(value));
    const auto run = shared(
        py::module_::import("composit._xla").attr("compile")(module.text, std::move(weights)));
    module.weights.clear();
    return code_of(graph, options.name, [graph, module, run](const std::vector<Array>& inputs) {
      const py::gil_scoped_acquire gil_of_call;
      py::list arguments;
      for (const Array& input : inputs) arguments.append(to_numpy(input));
      return results_of(graph, module, (*run)(arguments));
    });
  }

  std::string write(const Graph& graph, const CompileOptions& options) const override {
    return stablehlo_module(graph, options.name).text;
  }
};

}  // namespace

void add_xla() {
  static const Xla backend;
  flashlight::register_backend(backend);
}

}  // namespace composit::python
