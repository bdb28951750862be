// Compiled captures, gradients and functions of numbers.
#include "flashlight/compile.h"

#include "composit/ir/error.h"
#include "composit/ops/elementwise.h"
#include "flashlight/mosaic/choices.h"
#include "flashlight/mosaic/profile.h"
#include "frontends/python/bindings/flashlight/bindings.h"
#include "frontends/torchscript/script.h"

namespace flashlight::python {
namespace {

using composit::UserError;
using Tensors = std::vector<at::Tensor>;

// `options` holds members of CompileSettings and of its backend by their names.
CompileSettings settings_of(const std::string& backend, const py::dict& options) {
  CompileSettings settings;
  Cpp cpp;
  Mosaic mosaic;
  const bool is_mosaic = backend == "mosaic";
  if (!is_mosaic && backend != "cpp")
    throw UserError("[compile] expected the backend 'cpp' or 'mosaic', received '" + backend + "'");
  for (const auto& [key, value] : options) {
    const auto name = key.cast<std::string>();
    if (name == "name")
      settings.name = value.cast<std::string>();
    else if (name == "flags")
      settings.flags = value.cast<std::vector<std::string>>();
    else if (name == "link_aten" && !is_mosaic)
      cpp.link_aten = value.cast<bool>();
    else if (name == "threads" && is_mosaic)
      mosaic.threads = value.cast<int>();
    else if (name == "winograd" && is_mosaic)
      mosaic.winograd = value.cast<bool>();
    else if (name == "strassen" && is_mosaic)
      mosaic.strassen = value.cast<bool>();
    else if (name == "freeze" && is_mosaic)
      mosaic.freeze = value.cast<bool>();
    else if (name == "choices" && is_mosaic)
      mosaic.choices = mosaic::parse_choices(value.cast<std::string>());
    else
      throw UserError("[compile] the backend '" + backend + "' has no option '" + name + "'");
  }
  if (is_mosaic)
    settings.backend = mosaic;
  else
    settings.backend = cpp;
  return settings;
}

// The function `name` of a text in TorchScript; of each element of its arguments where
// `elementwise`, which are broadcast together.
CompiledFunction function_of(const std::string& text, const std::string& file,
                             const std::string& name, bool elementwise, const std::string& backend,
                             const py::dict& options) {
  const CompileSettings settings = settings_of(backend, options);
  const auto script = torchscript::compile(text, file);
  const composit::TensorFunction function = script.function(name);
  return compile(elementwise ? composit::elementwise(function) : function, settings);
}

// seconds, GFLOP and GB of each kernel are what `table` prints.
std::string profile_table(const CompiledCapture& compiled, const Tensors& arguments, double peak) {
  return unlocked([&] { return mosaic::table(compiled.profile(arguments), peak); });
}

}  // namespace

void add_compile(py::module_& module) {
  py::class_<CompiledCapture>(module, "CompiledCapture")
      .def(py::init(
          [](const CaptureBase& capture, const std::string& backend, const py::dict& options) {
            const CompileSettings settings = settings_of(backend, options);
            return unlocked([&] { return std::make_unique<CompiledCapture>(capture, settings); });
          }))
      .def("run",
           [](const CompiledCapture& compiled, const Tensors& arguments) {
             return unlocked([&] { return compiled.run(arguments); });
           })
      .def("profile_table", &profile_table)
      .def_property_readonly("source", &CompiledCapture::source);
  py::class_<CompiledGradient>(module, "CompiledGradient")
      .def(py::init(
          [](const Gradient& gradient, const std::string& backend, const py::dict& options) {
            const CompileSettings settings = settings_of(backend, options);
            return unlocked([&] { return std::make_unique<CompiledGradient>(gradient, settings); });
          }))
      .def("run",
           [](const CompiledGradient& compiled, const Tensors& arguments) {
             return loss_and_gradients([&] { return compiled(arguments); });
           })
      .def_property_readonly("source", &CompiledGradient::source);
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
