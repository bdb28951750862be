// flashlight/_flashlight: captures for torch.
#include "frontends/python/bindings/flashlight/bindings.h"

PYBIND11_MODULE(_flashlight, module) {
  // Graphs and errors are composit's, which registers them.
  pybind11::module_::import("composit._composit");
  flashlight::python::add_scope(module);
  flashlight::python::add_adaptive(module);
  flashlight::python::add_capture(module);
  flashlight::python::add_compile(module);
  flashlight::python::add_family(module);
  flashlight::python::add_generate(module);
  flashlight::python::add_host_memory(module);
}
