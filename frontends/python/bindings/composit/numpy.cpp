// composit.numpy: what is bound directly. composit/numpy/*.py adds creation, random numbers, and
// NumPy's protocols.
#include "frontends/python/bindings/composit/numpy.h"

namespace composit::python {
namespace {

// PyInstanceMethod_New binds `self`, which a function of a module does not.
void add_methods(py::object type, const py::module_& functions) {
  for (const char* name :
       {"sum",     "prod",    "mean",    "var",          "std",      "max",
        "min",     "any",     "all",     "argmax",       "argmin",   "cumsum",
        "cumprod", "ptp",     "clip",    "round",        "squeeze",  "swapaxes",
        "ravel",   "repeat",  "take",    "choose",       "diagonal", "trace",
        "dot",     "argsort", "nonzero", "searchsorted", "conj",     "conjugate"})
    type.attr(name) = py::reinterpret_steal<py::object>(
        PyInstanceMethod_New(py::object(functions.attr(name)).ptr()));
}

// x.reshape(2, 3) and x.reshape((2, 3)).
Ints several(const py::args& args) {
  return (args.size() == 1 ? py::object(args[0]) : py::object(args)).cast<Shape>().value;
}

void add_array_methods(py::class_<NdArray> type) {
  const py::call_guard<PythonLine> guard;
  type.def(
          "reshape",
          [](const NdArray& x, const py::args& shape) { return x.reshape(several(shape)); }, guard,
          "Of other sizes; one may be -1.")
      .def(
          "transpose",
          [](const NdArray& x, const py::args& axes) {
            const bool none = axes.empty() || (axes.size() == 1 && axes[0].is_none());
            return numpy::transpose(x, none ? Ints{} : several(axes));
          },
          guard, "Axes in this order; in reverse where none is given.")
      .def(
          "flatten", [](const NdArray& x) { return numpy::ravel(x); }, guard)
      .def(
          "copy", [](const NdArray& x) { return x; }, "Itself: it never changes.")
      .def(
          "sort",
          [](const NdArray& x, std::optional<int64_t> axis) { return numpy::sort(x, axis); },
          "axis"_a = -1, guard, "Sorted; NumPy's sorts in place.")
      .def("astype", &NdArray::astype, "dtype"_a, guard, "Cast to a dtype.");
}

}  // namespace

void add_numpy(py::module_& module) {
  py::module_ functions = module.def_submodule("numpy", "NumPy's functions on LazyTensors.");
  py::module_ linalg = functions.def_submodule("linalg");
  const Numpy def(functions);
  add_numpy_elementwise(def);
  add_numpy_reductions(def);
  add_numpy_shapes(def);
  add_numpy_indexing(def);
  add_numpy_products(def, Numpy(linalg));
  const py::object type = module.attr("LazyTensor");
  add_methods(type, functions);
  add_array_methods(py::reinterpret_borrow<py::class_<NdArray>>(type));
}

}  // namespace composit::python
