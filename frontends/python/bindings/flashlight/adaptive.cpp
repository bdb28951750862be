// Adaptive programs, on flat lists of tensors: flashlight/adaptive.py takes Python's values apart.
#include "flashlight/adaptive.h"

#include <optional>

#include "composit/ir/error.h"
#include "frontends/python/bindings/flashlight/bindings.h"
#include "tracer/trace_scope.h"

namespace flashlight::python {
namespace {

using Tensors = std::vector<at::Tensor>;

// Its end waits for a thread that may need Python.
class Adaptive {
 public:
  explicit Adaptive(AdaptiveSettings settings) : base_(std::in_place, std::move(settings)) {}
  ~Adaptive() {
    const py::gil_scoped_release released;
    base_.reset();
  }
  Adaptive(const Adaptive&) = delete;
  Adaptive& operator=(const Adaptive&) = delete;
  const AdaptiveBase& operator*() const { return *base_; }

 private:
  std::optional<AdaptiveBase> base_;
};

std::unique_ptr<Adaptive> adaptive(const std::string& backend, const py::dict& options,
                                   const py::dict& settings,
                                   const std::vector<std::string>& hidden) {
  AdaptiveSettings made;
  made.compile = compile_settings(backend, options);
  made.trace.host_line = python_lines(hidden);
  made.checked_sizes = settings["checked_sizes"].cast<size_t>();
  made.sample_every = settings["sample_every"].cast<size_t>();
  made.most_examples = settings["most_examples"].cast<size_t>();
  made.most_programs = settings["most_programs"].cast<size_t>();
  made.overhead = settings["overhead"].cast<double>();
  made.ahead = settings["ahead"].cast<bool>();
  made.in_background = settings["in_background"].cast<bool>();
  return std::make_unique<Adaptive>(std::move(made));
}

// What the tracer refuses is an error of Python by the time it comes back.
Program refusals_known(Program run) {
  return [run = std::move(run)](const Tensors& tensors) {
    try {
      return run(tensors);
    } catch (py::error_already_set& error) {
      const py::gil_scoped_acquire gil;
      const py::object refusal = py::module_::import("composit").attr("Error");
      if (!is_recording() || !error.matches(refusal)) throw;
      throw composit::UserError(py::str(error.value()).cast<std::string>());
    }
  };
}

// `program` stands for what is called with this structure, `signature` for the modules it has.
std::pair<Tensors, std::string> call_adaptive(const Adaptive& self, const py::object& program,
                                              const Tensors& tensors, const std::string& structure,
                                              const std::string& signature) {
  const HeldWeakly held = hold_weakly(program);
  const auto program_for = [&held](const Structure&) {
    AdaptiveProgram made;
    made.run = refusals_known(program_of(held));
    made.named = names_of(held);
    made.beyond = [held] {
      const py::gil_scoped_acquire gil;
      return object_of(held).attr("beyond")().cast<std::string>();
    };
    return made;
  };
  FlatValues results = unlocked([&] {
    return (*self).call(program_for, {tensors, parse_structure(structure)}, signature);
  });
  return {std::move(results.tensors), str(results.structure)};
}

}  // namespace

void add_adaptive(py::module_& module) {
  py::class_<AdaptiveCombination>(module, "AdaptiveCombination",
                                  "One combination of arguments of an adaptive program.")
      .def_readonly("arguments", &AdaptiveCombination::arguments)
      .def_readonly("state", &AdaptiveCombination::state)
      .def_readonly("calls", &AdaptiveCombination::calls)
      .def_readonly("compiled", &AdaptiveCombination::compiled)
      .def_readonly("of_family", &AdaptiveCombination::of_family)
      .def_readonly("checked", &AdaptiveCombination::checked);
  py::class_<AdaptiveReport>(module, "AdaptiveReport", "What an adaptive program did so far.")
      .def_readonly("calls", &AdaptiveReport::calls)
      .def_readonly("compiled", &AdaptiveReport::compiled)
      .def_readonly("recorded", &AdaptiveReport::recorded)
      .def_readonly("refused", &AdaptiveReport::refused)
      .def_readonly("samples", &AdaptiveReport::samples)
      .def_readonly("fitted", &AdaptiveReport::fitted)
      .def_readonly("families", &AdaptiveReport::families)
      .def_readonly("combinations", &AdaptiveReport::combinations)
      // Calls that no tensors could be taken out of.
      .def(
          "add",
          [](AdaptiveReport& report, const std::string& why, size_t calls) {
            report.calls += calls;
            report.combinations.push_back(
                {.arguments = "other values", .state = "the program runs: " + why, .calls = calls});
          })
      .def("__str__", [](const AdaptiveReport& report) { return str(report); })
      .def("__repr__", [](const AdaptiveReport& report) { return str(report); });
  py::class_<Adaptive>(module, "Adaptive")
      .def(py::init(&adaptive))
      .def("call", &call_adaptive)
      .def("report",
           [](const Adaptive& self) { return unlocked([&] { return (*self).report(); }); })
      .def("wait", [](const Adaptive& self) { unlocked([&] { (*self).wait(); }); });
}

}  // namespace flashlight::python
