// composit/_composit: the part of Flashlight that needs no LibTorch.
#include "composit/ir/error.h"
#include "frontends/python/bindings/composit/casters.h"
#include "frontends/python/bindings/composit/python_lines.h"

PYBIND11_MODULE(_composit, module) {
  namespace py = pybind11;
  using namespace composit::python;
  py::register_exception<composit::UserError>(module, "Error", PyExc_RuntimeError);
  py::register_exception<composit::InternalError>(module, "InternalError", PyExc_RuntimeError);
  add_python_lines(module);
  add_arrays(module);
  add_lazy_tensor(module);
  add_graph(module);
  add_onnx(module);
  add_numpy(module);
  add_evaluate(module);
  add_quantize(module);
  add_stablehlo(module);
  add_xla();
  add_operation(module);
  add_nn(module);
  add_ks(module);
}
