// Answers the questions of flashlight/host_memory.py while a program runs: which tensors are known,
// which memory may be read without a guard, whether the host wrote.
#include "tracer/host_memory.h"

#include <optional>

#include "frontends/python/bindings/flashlight/bindings.h"
#include "tracer/trace_scope.h"

namespace flashlight::python {
namespace {

using tracer::HostMemory;

// with _flashlight.Unrecorded():
class UnrecordedBlock {
 public:
  void enter() { block_.emplace(); }
  void exit(const py::args& /*exception*/) { block_.reset(); }

 private:
  std::optional<Unrecorded> block_;
};

}  // namespace

void add_host_memory(py::module_& module) {
  module.def("is_recording", &is_recording);
  module.def("recorded_value", &recorded_value);
  module.def("remark", &remark);
  py::class_<UnrecordedBlock>(module, "Unrecorded")
      .def(py::init<>())
      .def("__enter__", &UnrecordedBlock::enter)
      .def("__exit__", &UnrecordedBlock::exit);
  py::class_<HostMemory>(module, "HostMemory")
      .def(py::init<>())
      .def("hand_out", &HostMemory::hand_out)
      .def("take_in", &HostMemory::take_in)
      .def("release", &HostMemory::release)
      .def("expect_unwritten", &HostMemory::expect_unwritten)
      .def("rewritten", &HostMemory::rewritten)
      .def("stop", &HostMemory::stop);
}

}  // namespace flashlight::python
