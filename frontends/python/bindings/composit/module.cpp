// composit/_composit: the part of Flashlight that needs no LibTorch.
#include "composit/ir/error.h"
#include "frontends/python/bindings/composit/casters.h"

PYBIND11_MODULE(_composit, module) {
  namespace py = pybind11;
  using namespace composit::python;
  py::register_exception<composit::UserError>(module, "Error", PyExc_RuntimeError);
  py::register_exception<composit::InternalError>(module, "InternalError", PyExc_RuntimeError);
  py::class_<composit::numpy::NdArray>(module, "LazyTensor");
  add_arrays(module);
  add_graph(module);
}
