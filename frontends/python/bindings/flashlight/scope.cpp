// Scopes opened by hand: `flashlight.tracer.trace()`.
#include <optional>

#include "composit/ir/error.h"
#include "composit/numpy/ndarray.h"
#include "frontends/python/bindings/flashlight/bindings.h"
#include "tracer/trace_scope.h"

namespace flashlight::python {
namespace {

using composit::InputKind;
using composit::numpy::NdArray;

class Scope {
 public:
  Scope(bool strict, const std::vector<std::string>& hidden)
      : scope_(std::in_place, TraceOptions{.strict = strict, .host_line = python_lines(hidden)}) {}

  void name(const at::Tensor& tensor, const std::string& name, const std::string& kind) {
    scope_->name(tensor, name, *composit::input_kind_from_name(kind));
  }
  NdArray lazy(const at::Tensor& tensor) { return scope_->lazy(tensor); }
  void stop() { scope_->stop(); }

 private:
  std::optional<TraceScope> scope_;
};

}  // namespace

void add_scope(py::module_& module) {
  py::class_<Scope>(module, "Scope")
      .def(py::init<bool, const std::vector<std::string>&>())
      .def("name", &Scope::name)
      .def("lazy", &Scope::lazy)
      .def("stop", &Scope::stop);
  module.def("enter_module", &enter_module);
  module.def("leave_module", &leave_module);
}

}  // namespace flashlight::python
