// Scopes opened by hand: `flashlight.tracer.trace()`.
#include <optional>
#include <thread>
#include <unordered_map>

#include "composit/ir/error.h"
#include "composit/ir/lexer.h"
#include "composit/numpy/ndarray.h"
#include "frontends/python/bindings/flashlight/bindings.h"
#include "tracer/dispatch_key.h"
#include "tracer/given_numbers.h"
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

// `with` around the handler of a mode.
class ModeHandler {
 public:
  void enter() { inside_.emplace(); }
  void exit(const py::args&) { inside_.reset(); }

 private:
  std::optional<InsideMode> inside_;
};

// Torch's hooks around every module: tells the tracer which of those with a path runs. Hooks are
// those of the process; modules that other threads run meanwhile are theirs.
class ModuleHooks {
 public:
  void name(const py::object& module, const std::string& path) {
    paths_.emplace(module.ptr(), path);
  }
  void enter(py::handle module, py::handle /*inputs*/) {
    if (std::this_thread::get_id() != thread_) return;
    const auto path = paths_.find(module.ptr());
    entered_.push_back(path != paths_.end());
    if (entered_.back()) enter_module(path->second);
  }
  void leave(py::handle /*module*/, py::handle /*inputs*/, py::handle /*output*/) {
    if (std::this_thread::get_id() != thread_ || entered_.empty()) return;
    if (entered_.back()) leave_module();
    entered_.pop_back();
  }
  // Leaves modules whose calls threw.
  void leave_all() {
    while (!entered_.empty()) leave({}, {}, {});
  }

 private:
  const std::thread::id thread_ = std::this_thread::get_id();
  std::unordered_map<PyObject*, std::string> paths_;  // of modules that live as long as this
  std::vector<bool> entered_;
};

// begin, end, value, formula: tracer::GivenNumber
using Given = std::tuple<tracer::RecordId, tracer::RecordId, double, std::string>;

void give_numbers(const std::vector<Given>& numbers) {
  std::vector<tracer::GivenNumber> given;
  for (const auto& [begin, end, value, text] : numbers) {
    composit::Lexer lexer(text, "number", 1);
    given.push_back({begin, end, value, composit::read_number_formula(lexer)});
  }
  tracer::give_numbers(std::move(given));
}

}  // namespace

void add_scope(py::module_& module) {
  // Of the innermost scope; see tracer/given_numbers.h.
  module.def("follows_numbers", &tracer::follows_numbers);
  module.def("record_count", &tracer::record_count);
  module.def("last_read", &tracer::last_read);
  module.def("give_numbers", &give_numbers);
  // In every scope around the running code; see tracer::Recorder.
  module.def("watch_generators", [](const std::vector<at::Generator>& generators) {
    for (const at::Generator& generator : generators)
      if (generator.device().is_cpu()) watch_generator(generator);
  });
  module.attr("TRACE_KEY") = c10::toString(tracer::kTraceKey);
  py::class_<Scope>(module, "Scope")
      .def(py::init<bool, const std::vector<std::string>&>())
      .def("name", &Scope::name)
      .def("lazy", &Scope::lazy)
      .def("stop", &Scope::stop);
  py::class_<ModeHandler>(module, "ModeHandler")
      .def(py::init<>())
      .def("__enter__", &ModeHandler::enter)
      .def("__exit__", &ModeHandler::exit);
  py::class_<ModuleHooks>(module, "ModuleHooks")
      .def(py::init<>())
      .def("name", &ModuleHooks::name)
      .def("enter", &ModuleHooks::enter)
      .def("leave", &ModuleHooks::leave)
      .def("leave_all", &ModuleHooks::leave_all);
}

}  // namespace flashlight::python
