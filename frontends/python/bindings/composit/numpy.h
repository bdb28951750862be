// Declares functions of composit.numpy: names, parameters and defaults are NumPy's.
//
//   Numpy(module)("tril", &numpy::tril, "m"_a, "k"_a = 0);
//
// Whatever NumPy has beyond those parameters (out, where, order) is a TypeError that shows what
// there is.
#pragma once

#include <string>

#include "composit/numpy/numpy.h"
#include "frontends/python/bindings/composit/casters.h"
#include "frontends/python/bindings/composit/python_lines.h"

namespace composit::python {

using namespace py::literals;

class Numpy {
 public:
  explicit Numpy(py::module_ module) : module_(std::move(module)) {}

  template <class F, class... Extra>
  const Numpy& operator()(const char* name, F function, const Extra&... extra) const {
    const std::string doc = "numpy." + std::string(name) + ", as a node of a graph.";
    module_.def(name, function, doc.c_str(), extra..., py::call_guard<PythonLine>());
    return *this;
  }

 private:
  mutable py::module_ module_;
};

void add_numpy_elementwise(const Numpy& def);
void add_numpy_reductions(const Numpy& def);
void add_numpy_shapes(const Numpy& def);
void add_numpy_indexing(const Numpy& def);
void add_numpy_products(const Numpy& def, const Numpy& linalg);

}  // namespace composit::python
