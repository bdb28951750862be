// Declares functions of composit.nn: names, parameters and defaults are torch.nn.functional's.
#pragma once

#include <optional>
#include <string>

#include "composit/ir/error.h"
#include "composit/nn/nn.h"
#include "frontends/python/bindings/composit/casters.h"
#include "frontends/python/bindings/composit/python_lines.h"

namespace composit::python {

using namespace py::literals;

// An argument that may be None.
using OptionalArray = std::optional<NdArray>;
inline LazyTensor tensor(const OptionalArray& array) {
  return array ? LazyTensor(*array) : LazyTensor();
}

class Functional {
 public:
  explicit Functional(py::module_ module) : module_(std::move(module)) {}

  // `doc` is what torch's documentation of the name does not say.
  template <class F, class... Extra>
  const Functional& operator()(const char* name, F function, const Extra&... extra) const {
    const std::string doc = "torch.nn.functional." + std::string(name) + ", as nodes of a graph.";
    module_.def(name, function, doc.c_str(), extra..., py::call_guard<PythonLine>());
    return *this;
  }

 private:
  mutable py::module_ module_;
};

// torch's words: 'mean', 'sum', 'none', 'batchmean'. UserError for others.
nn::Reduction reduction_named(const std::string& name);

void add_nn_activations(const Functional& def);
void add_nn_windows(const Functional& def);
void add_nn_normalization(const Functional& def);
void add_nn_losses(const Functional& def);
void add_nn_layers(const Functional& def, py::module_& module);

}  // namespace composit::python
