// Captures and their gradients, on flat lists of tensors: flashlight/capture.py takes Python's
// values apart and puts them together.
#include "flashlight/capture.h"

#include <pybind11/stl/filesystem.h>

#include "composit/eval/evaluate.h"
#include "composit/family/saved_family.h"
#include "composit/interchange/imports.h"
#include "composit/ir/error.h"
#include "flashlight/backends/registry.h"
#include "flashlight/check.h"
#include "flashlight/family_maker.h"
#include "flashlight/interchange.h"
#include "flashlight/quantize.h"
#include "frontends/python/bindings/composit/quantize.h"
#include "frontends/python/bindings/flashlight/bindings.h"

namespace flashlight::python {
namespace {

using composit::UserError;
using Tensors = std::vector<at::Tensor>;
// name, tensor, kind
using Named = std::tuple<std::string, at::Tensor, std::string>;

std::vector<NamedTensor> named_tensors(const std::vector<Named>& tensors) {
  std::vector<NamedTensor> result;
  for (const auto& [name, tensor, kind] : tensors)
    result.push_back({name, tensor, *composit::input_kind_from_name(kind)});
  return result;
}

}  // namespace

HeldWeakly hold_weakly(const py::object& program) {
  return HeldWeakly(new py::weakref(program), [](py::weakref* reference) {
    if (!Py_IsInitialized()) return;
    const py::gil_scoped_acquire gil;
    delete reference;
  });
}

py::object object_of(const HeldWeakly& held) {
  py::object program = (*held)();
  if (program.is_none()) throw UserError("[check] the program of this capture is gone");
  return program;
}

NamesOf names_of(const HeldWeakly& held) {
  return [held] {
    const py::gil_scoped_acquire gil;
    return named_tensors(object_of(held).attr("named")().cast<std::vector<Named>>());
  };
}

Program program_of(const HeldWeakly& held) {
  return [held](const Tensors& tensors) {
    const py::gil_scoped_acquire gil;
    const py::object run = object_of(held);
    const auto [results, structure] =
        run(tensors).cast<std::pair<std::vector<std::optional<at::Tensor>>, std::string>>();
    FlatValues flat;
    for (const auto& tensor : results) flat.tensors.push_back(tensor.value_or(at::Tensor()));
    flat.structure = parse_structure(structure);
    return flat;
  };
}

namespace {

CaptureBase capture(const py::object& program, const Tensors& tensors, const std::string& structure,
                    bool seen_once, const std::vector<std::string>& hidden) {
  const HeldWeakly held = hold_weakly(program);
  TracedProgram traced;
  traced.run = program_of(held);
  traced.named = names_of(held);
  traced.seen_once = seen_once;
  return CaptureBase::capture(std::move(traced), {tensors, parse_structure(structure)},
                              {.host_line = python_lines(hidden)});
}

// Results, and how they lie in the program's value where the program ran for them.
std::pair<Tensors, std::optional<std::string>> call(const CaptureBase& capture,
                                                    const Tensors& arguments) {
  FlatValues results = unlocked([&] { return capture.call(arguments); });
  std::optional<std::string> structure;
  if (results.of_look) structure = str(results.structure);
  return {std::move(results.tensors), std::move(structure)};
}

std::string source_of(const composit::Graph& graph, const std::string& backend,
                      const py::dict& options) {
  const CompileSettings settings = compile_settings(backend, options);
  return unlocked([&] {
    return backend_named(backend).source(graph, {.name = settings.name,
                                                 .flags = settings.flags,
                                                 .options = settings.backend.options,
                                                 .may_prepare = true,
                                                 .may_update = true});
  });
}

void add_reports(py::module_& module) {
  py::class_<NodeDifference>(module, "NodeDifference",
                             "How far one value of a replay is from the eager one.")
      .def_readonly("place", &NodeDifference::place)
      .def_readonly("node", &NodeDifference::node)
      .def_readonly("output", &NodeDifference::output)
      .def_readonly("absolute", &NodeDifference::absolute)
      .def_readonly("relative", &NodeDifference::relative)
      .def_readonly("ulp", &NodeDifference::ulp)
      .def_readonly("float64_replay", &NodeDifference::float64_replay)
      .def_readonly("float64_eager", &NodeDifference::float64_eager)
      .def_readonly("amplification", &NodeDifference::amplification);
  py::class_<CheckReport>(module, "CheckReport", "What a check found; true where all is well.")
      .def_readonly("graph_differences", &CheckReport::graph_differences)
      .def_readonly("differences", &CheckReport::differences)
      .def_readonly("ranking", &CheckReport::ranking)
      .def_readonly("error", &CheckReport::error)
      .def_readonly("compared", &CheckReport::compared)
      .def_readonly("largest", &CheckReport::largest)
      .def_readonly("generators", &CheckReport::generators)
      .def("__bool__", &CheckReport::ok)
      .def("__str__", [](const CheckReport& report) { return str(report); })
      .def("__repr__", [](const CheckReport& report) { return str(report); });
  py::class_<GradientDifference>(module, "GradientDifference")
      .def_readonly("name", &GradientDifference::name)
      .def_readonly("absolute", &GradientDifference::absolute)
      .def_readonly("relative", &GradientDifference::relative);
  py::class_<GradientReport>(module, "GradientReport",
                             "How far gradients are from autograd's; true where near enough.")
      .def_readonly("oracle", &GradientReport::oracle)
      .def_readonly("differences", &GradientReport::differences)
      .def_readonly("tolerance", &GradientReport::tolerance)
      .def_readonly("generators", &GradientReport::generators)
      .def("__bool__", &GradientReport::ok)
      .def("__str__", [](const GradientReport& report) { return str(report); })
      .def("__repr__", [](const GradientReport& report) { return str(report); });
}

void add_gradient(py::module_& module) {
  py::class_<Gradient>(module, "Gradient")
      .def_property_readonly("graph", &Gradient::graph)
      .def_property_readonly("names", &Gradient::names)
      .def("save_pt2", &write_pt2<Gradient>, py::call_guard<py::gil_scoped_release>())
      .def("save_onnx", &write_onnx<Gradient>, py::call_guard<py::gil_scoped_release>())
      .def("save_mlir", &write_stablehlo<Gradient>, py::call_guard<py::gil_scoped_release>())
      .def("run",
           [](const Gradient& gradient, const Tensors& arguments) {
             return loss_and_gradients([&] { return gradient(arguments); });
           })
      .def("evaluate", [](const Gradient& gradient, const Tensors& arguments) {
        return loss_and_gradients(
            [&] { return gradient.evaluate(arguments, composit::reference()); });
      });
}

// A capture, or where the program has dynamic shapes a family.
py::object read_pt2(const std::filesystem::path& file) {
  const composit::SavedCapture saved = unlocked([&] { return composit::load_pt2(file); });
  if (composit::is_family(saved)) return py::cast(unlocked([&] { return FamilyBase::load(file); }));
  return py::cast(unlocked([&] { return FamilyMaker::of_saved(saved, file); }));
}

// A capture, or where sizes have ranges a family. `rows`: name, least, most, step.
py::object read_onnx(const std::filesystem::path& file, const std::map<std::string, int64_t>& sizes,
                     const std::vector<std::tuple<std::string, int64_t, int64_t, int64_t>>& rows) {
  composit::OnnxReadOptions options{.sizes = sizes};
  for (const auto& [name, least, most, step] : rows)
    options.ranges.push_back({name, least, most, step});
  if (rows.empty()) return py::cast(unlocked([&] { return flashlight::load_onnx(file, options); }));
  const FamilyBase family = unlocked([&] { return load_onnx_family(file, options); });
  return py::cast(family);
}

// "pt2", "onnx", or nothing.
std::string tool_of(const std::filesystem::path& file) {
  switch (composit::tool_of(file)) {
    case composit::Tool::pt2:
      return "pt2";
    case composit::Tool::onnx:
      return "onnx";
    case composit::Tool::other:
      break;
  }
  return "";
}

std::pair<CaptureBase, composit::Quantized> quantized(const CaptureBase& capture,
                                                      const std::vector<Tensors>& examples,
                                                      const py::dict& keywords) {
  const composit::QuantizeOptions options = composit::python::quantize_options(keywords);
  QuantizedCapture result = unlocked([&] { return quantize(capture, options, examples); });
  return {std::move(result.capture), std::move(result.report)};
}

}  // namespace

void add_capture(py::module_& module) {
  add_reports(module);
  add_gradient(module);
  module.def("tool_of", &tool_of);
  module.def("load_pt2", &read_pt2);
  module.def("load_onnx", &read_onnx);
  py::class_<Statistics>(module, "Statistics")
      .def_readonly("nodes", &Statistics::nodes)
      .def_readonly("calls", &Statistics::calls)
      .def_readonly("calls_by_op", &Statistics::calls_by_op)
      .def_readonly("parameters", &Statistics::parameters)
      .def_readonly("bytes", &Statistics::bytes)
      .def_readonly("guards", &Statistics::guards);
  py::class_<CaptureBase>(module, "Capture")
      .def(py::init(&capture))
      .def_static("load", &CaptureBase::load)
      .def_property_readonly("graph", &CaptureBase::graph)
      .def_property_readonly("argument_structure",
                             [](const CaptureBase& c) { return str(c.argument_structure()); })
      .def_property_readonly("result_structure",
                             [](const CaptureBase& c) { return str(c.result_structure()); })
      .def_property_readonly("example_arguments", &CaptureBase::example_arguments)
      .def_property_readonly("example_results", &CaptureBase::example_results)
      .def("call", &call)
      .def("run_by",  // of a capture that a family has bound: this is its program
           [](const CaptureBase& c, const py::object& program) {
             const HeldWeakly held = hold_weakly(program);
             FamilyMaker::set_program(c, program_of(held), names_of(held));
           })
      .def_property_readonly("trust",
                             [](const CaptureBase& c) { return std::string(name(c.trust())); })
      .def_property_readonly("refusal", &CaptureBase::refusal)
      .def("replay",
           [](const CaptureBase& c, const Tensors& arguments) {
             return unlocked([&] { return c.replay(arguments); });
           })
      .def("evaluate",
           [](const CaptureBase& c, const Tensors& arguments) {
             return unlocked([&] { return c.evaluate(arguments, composit::reference()); });
           })
      .def("assumptions", &CaptureBase::assumptions)
      .def("statistics", &CaptureBase::statistics)
      .def("state",
           [](const CaptureBase& c) {
             std::vector<std::pair<std::string, at::Tensor>> state;
             for (const NamedTensor& held : c.state()) state.emplace_back(held.name, held.tensor);
             return state;
           })
      .def("constants", &CaptureBase::constants)
      .def("grad", &CaptureBase::grad)
      .def("save", &CaptureBase::save, py::call_guard<py::gil_scoped_release>())
      .def("quantized", &quantized)
      .def("save_pt2", &write_pt2<CaptureBase>, py::call_guard<py::gil_scoped_release>())
      .def("save_onnx", &write_onnx<CaptureBase>, py::call_guard<py::gil_scoped_release>())
      .def("save_mlir", &write_stablehlo<CaptureBase>, py::call_guard<py::gil_scoped_release>())
      .def("check",
           [](const CaptureBase& c, const Tensors& arguments, bool strict, bool float64,
              double tolerance) {
             return unlocked([&] {
               return c.check_flat(arguments,
                                   {.strict = strict, .float64 = float64, .tolerance = tolerance});
             });
           })
      .def("check_grad", [](const CaptureBase& c, const Tensors& arguments, size_t loss,
                            const std::vector<std::string>& wrt) {
        return unlocked([&] { return c.check_grad(arguments, loss, wrt); });
      });
  module.def("looks_taken", &looks_taken);
  module.def("source_of", &source_of);
}

}  // namespace flashlight::python
