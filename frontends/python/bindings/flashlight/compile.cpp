// Compiled captures, gradients and functions of numbers.
#include "flashlight/compile.h"

#include "composit/ops/elementwise.h"
#include "flashlight/backends/registry.h"
#include "flashlight/check_compiled.h"
#include "flashlight/family_programs.h"
#include "frontends/ks/function.h"
#include "frontends/python/bindings/flashlight/bindings.h"
#include "frontends/torchscript/script.h"

namespace flashlight::python {
namespace {

using Tensors = std::vector<at::Tensor>;

// A value of Python for an option of this backend.
composit::OptionValue option_value(const composit::Option& option, const py::object& value,
                                   const std::string& backend) {
  if (py::isinstance<py::bool_>(value)) return value.cast<bool>();
  if (PyIndex_Check(value.ptr()) != 0) {
    int overflow = 0;
    const long long integer = PyLong_AsLongLongAndOverflow(py::int_(value).ptr(), &overflow);
    if (overflow == 0) return static_cast<int64_t>(integer);
  }
  if (py::isinstance<py::float_>(value)) return value.cast<double>();
  if (py::isinstance<py::str>(value)) return value.cast<std::string>();
  composit::refuse_value(option, py::repr(value).cast<std::string>(), backend);
}

}  // namespace

CompileSettings compile_settings(const std::string& name, const py::dict& options) {
  const composit::Backend& backend = backend_named(name);
  CompileSettings settings;
  settings.backend = name;
  for (const auto& [key, value] : options) {
    const auto word = key.cast<std::string>();
    if (word == "name")
      settings.name = value.cast<std::string>();
    else if (word == "flags")
      settings.flags = value.cast<std::vector<std::string>>();
    else
      settings.backend.options[word] = option_value(
          composit::find_option(backend.options(), word, composit::Option::Use::calls, name),
          py::reinterpret_borrow<py::object>(value), name);
  }
  return settings;
}

namespace {

// The function `name` of a text in TorchScript; of each element of its arguments where
// `elementwise`, which are broadcast together.
CompiledFunction function_of(const std::string& text, const std::string& file,
                             const std::string& name, bool elementwise, const std::string& backend,
                             const py::dict& options) {
  const CompileSettings settings = compile_settings(backend, options);
  const auto script = torchscript::compile(text, file);
  const composit::TensorFunction function = script.function(name);
  return compile(elementwise ? composit::elementwise(function) : function, settings);
}

// A function of Knossos' language; `known` has its integers and bools, and None where a tensor
// comes.
CompiledFunction ks_function(const ks::ProgramFunction& function, const py::list& known,
                             const std::string& backend, const py::dict& options) {
  std::vector<ks::Argument> pattern;
  for (const py::handle one : known) {
    if (one.is_none())
      pattern.emplace_back(composit::LazyTensor());
    else if (py::isinstance<py::bool_>(one))
      pattern.emplace_back(one.cast<bool>());
    else
      pattern.emplace_back(one.cast<int64_t>());
  }
  const auto call = [function, pattern](const composit::LazyTensors& tensors) {
    std::vector<ks::Argument> arguments = pattern;
    size_t next = 0;
    for (ks::Argument& one : arguments)
      if (std::holds_alternative<composit::LazyTensor>(one)) one = tensors.at(next++);
    return function(arguments);
  };
  return compile(composit::TensorFunction(call), compile_settings(backend, options));
}

// seconds, GFLOP and GB of each kernel are what `table` prints.
std::string profile_table(const CompiledCapture& compiled, const Tensors& arguments, double peak) {
  return unlocked([&] { return table(compiled.profile(arguments), peak); });
}

void add_compiled_reports(py::module_& module) {
  py::class_<ErrorOfValue>(module, "ErrorOfValue",
                           "What a value is off by, in units of its spread.")
      .def_readonly("rms", &ErrorOfValue::rms)
      .def_readonly("largest", &ErrorOfValue::largest)
      .def("__repr__", [](const ErrorOfValue& error) {
        return "<rms " + std::to_string(error.rms) + ", largest " + std::to_string(error.largest) +
               ">";
      });
  py::class_<CheckedValue>(module, "CheckedValue", "A value of compiled code, and its errors.")
      .def_readonly("name", &CheckedValue::name)
      .def_readonly("place", &CheckedValue::place)
      .def_readonly("product", &CheckedValue::product)
      .def_readonly("lowered", &CheckedValue::lowered)
      .def_readonly("compiled", &CheckedValue::compiled)
      .def_readonly("eager", &CheckedValue::eager)
      .def_readonly("rounding", &CheckedValue::rounding)
      .def_readonly("worse", &CheckedValue::worse)
      .def_readonly("alone", &CheckedValue::alone);
  py::class_<CompiledReport>(module, "CompiledReport",
                             "The errors of compiled code; true where none is worse than eager's.")
      .def_readonly("backend", &CompiledReport::backend)
      .def_readonly("values", &CompiledReport::values)
      .def_readonly("results", &CompiledReport::results)
      .def_readonly("nodes", &CompiledReport::nodes)
      .def_readonly("lowered", &CompiledReport::lowered)
      .def_readonly("products", &CompiledReport::products)
      .def_readonly("error", &CompiledReport::error)
      .def_readonly("notes", &CompiledReport::notes)
      .def("choices", &choices_of, py::arg("most") = 8)
      .def("__bool__", &CompiledReport::ok)
      .def("__str__", [](const CompiledReport& report) { return str(report); })
      .def("__repr__", [](const CompiledReport& report) { return str(report); });
  module.def("check_compiled",
             [](const CaptureBase& capture, const Tensors& arguments, const std::string& backend,
                const py::dict& options, bool every_node, size_t alone) {
               const CompileSettings settings = compile_settings(backend, options);
               return unlocked([&] {
                 return check_compiled_flat(capture, settings, arguments,
                                            {.every_node = every_node, .alone = alone});
               });
             });
}

}  // namespace

void add_compile(py::module_& module) {
  add_compiled_reports(module);
  py::class_<CompiledCapture, std::shared_ptr<CompiledCapture>>(module, "CompiledCapture")
      .def(py::init(
          [](const CaptureBase& capture, const std::string& backend, const py::dict& options) {
            const CompileSettings settings = compile_settings(backend, options);
            return unlocked([&] { return std::make_shared<CompiledCapture>(capture, settings); });
          }))
      .def("run",
           [](const CompiledCapture& compiled, const Tensors& arguments) {
             return unlocked([&] { return compiled.run(arguments); });
           })
      .def("profile_table", &profile_table)
      .def_property_readonly("source", &CompiledCapture::source);
  py::class_<FamilyPrograms>(module, "FamilyPrograms")
      .def(py::init(
          [](const FamilyBase& family, const std::string& backend, const py::dict& options) {
            return std::make_unique<FamilyPrograms>(family, compile_settings(backend, options));
          }))
      .def("call",
           [](FamilyPrograms& programs, const Tensors& arguments, const std::string& structure,
              const composit::NumberValues& numbers) {
             const FlatValues values{arguments, parse_structure(structure)};
             programs.family().expect_arguments(values.structure);
             return with_structure(unlocked([&] { return programs.call(values, numbers); }));
           })
      .def("profile_table",
           [](FamilyPrograms& programs, const Tensors& arguments, double peak) {
             return unlocked([&] { return table(programs.profile(arguments), peak); });
           })
      .def("__len__", &FamilyPrograms::size)
      .def("prepare",
           [](FamilyPrograms& programs) {
             return unlocked([&] { return programs.prepare_sizes(programs.sizes_ahead()); });
           })
      .def("source_at",
           [](FamilyPrograms& programs, const Tensors& arguments) {
             return unlocked(
                 [&] { return programs.at(programs.family().sizes_of(arguments))->source(); });
           })
      .def("source",
           [](FamilyPrograms& programs) { return unlocked([&] { return programs.source(); }); })
      .def_property_readonly("compilations", &FamilyPrograms::compilations);
  py::class_<CompiledGradient>(module, "CompiledGradient")
      .def(py::init(
          [](const Gradient& gradient, const std::string& backend, const py::dict& options) {
            const CompileSettings settings = compile_settings(backend, options);
            return unlocked([&] { return std::make_unique<CompiledGradient>(gradient, settings); });
          }))
      .def("run",
           [](const CompiledGradient& compiled, const Tensors& arguments) {
             return loss_and_gradients([&] { return compiled(arguments); });
           })
      .def_property_readonly("source", &CompiledGradient::source);
  module.def("ks_function", &ks_function);
  py::class_<CompiledFunction>(module, "CompiledFunction")
      .def(py::init(&function_of))
      .def("call",
           [](const CompiledFunction& function, const Tensors& inputs) {
             return unlocked([&] { return function.call(inputs); });
           })
      .def("vjp",
           [](const CompiledFunction& function, const Tensors& inputs, const Tensors& cotangents) {
             return unlocked([&] { return function.vjp(inputs, cotangents); });
           })
      .def("source", [](const CompiledFunction& function, const Tensors& inputs) {
        return unlocked([&] { return function.specialized(inputs).source(); });
      });
}

}  // namespace flashlight::python
