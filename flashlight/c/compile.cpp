// Compiled code and written programs of flashlight/c.h.
#include "flashlight/compile.h"

#include <memory>
#include <string>
#include <utility>

#include "composit/io/saved_capture.h"
#include "composit/ir/error.h"
#include "flashlight/backends/registry.h"
#include "flashlight/c.h"
#include "flashlight/c/call.h"
#include "flashlight/c/handles.h"
#include "flashlight/c/objects.h"

namespace flashlight::c {
namespace {

using composit::Option;
using composit::UserError;

struct Settings {
  const composit::Backend& backend;
  std::string name;
  composit::Options options;
};

// `use`: what the options are for.
Settings settings_from(const char* backend, const flashlight_compile_options* given,
                       Option::Use use) {
  constexpr size_t kFirst = 32;
  constexpr size_t kMost = 1000;  // more is memory without a value
  const auto options = options_from(given, kFirst, "flashlight_compile_options");
  Settings settings{backend_named(text_from(backend, "backend")),
                    options.name == nullptr ? "program" : options.name,
                    {}};
  if (options.option_count > kMost)
    throw UserError("expected at most " + std::to_string(kMost) + " options, received " +
                    std::to_string(options.option_count));
  if (options.option_count > 0 && options.options == nullptr)
    throw UserError("expected an array of " + std::to_string(options.option_count) +
                    " options, received NULL");
  for (size_t i = 0; i < options.option_count; ++i) {
    const std::string text = text_from(options.options[i], "option " + std::to_string(i));
    const size_t equal = text.find('=');
    if (equal == text.npos)
      throw UserError("expected an option as \"threads=2\", received \"" + text + "\"");
    const std::string name = text.substr(0, equal);
    const Option& option = composit::find_option(settings.backend.options(), name, use, backend);
    settings.options[name] = composit::parse_option(option, text.substr(equal + 1), backend);
  }
  return settings;
}

CompileSettings for_calls(Settings settings) {
  CompileSettings result;
  result.name = std::move(settings.name);
  result.backend = composit::BackendChoice(settings.backend.name(), std::move(settings.options));
  return result;
}

flashlight_compiled handle_of(CompiledCode code) {
  return handles().add<flashlight_compiled>(std::make_shared<CompiledCode>(std::move(code)));
}

}  // namespace

flashlight_compiled compile_as_code(const CaptureBase& capture, const char* backend,
                                    const flashlight_compile_options* options) {
  const auto code = std::make_shared<const CompiledCapture>(
      capture, for_calls(settings_from(backend, options, Option::Use::calls)));
  return handle_of({[code](const std::vector<at::Tensor>& inputs) { return code->run(inputs); },
                    count_inputs(capture.graph()), count_outputs(capture.graph()), code->source()});
}

flashlight_compiled compile_as_code(const Derivative& derivative, const char* backend,
                                    const flashlight_compile_options* options) {
  const auto code = std::make_shared<const CompiledGradient>(
      derivative.gradient, for_calls(settings_from(backend, options, Option::Use::calls)));
  return handle_of(
      {[code](const std::vector<at::Tensor>& inputs) { return in_order((*code)(inputs)); },
       derivative.inputs, 1 + derivative.gradient.names().size(), code->source()});
}

void write_program(const CaptureBase& capture, const char* backend,
                   const flashlight_compile_options* options, const std::string& folder) {
  const Settings settings = settings_from(backend, options, Option::Use::programs);
  const composit::SavedCapture saved = capture.saved();
  composit::CompileOptions how;
  how.name = settings.name;
  how.options = settings.options;
  how.schemas = [&saved](const composit::Graph&) { return saved.schemas; };
  settings.backend.write_program(saved, folder, how);
}

}  // namespace flashlight::c

using namespace flashlight::c;

flashlight_status flashlight_compiled_run(flashlight_compiled compiled,
                                          const flashlight_tensor* inputs, size_t input_count,
                                          flashlight_tensor* outputs, size_t output_count) {
  return guarded(__func__, [&] {
    const auto code = handles().find<CompiledCode>(compiled);
    const auto tensors = tensors_from(inputs, input_count, code->inputs);
    expect_outputs(outputs, output_count, code->outputs);
    store_tensors(code->run(tensors), outputs);
  });
}

flashlight_status flashlight_compiled_source(flashlight_compiled compiled, char** text) {
  return guarded(__func__, [&] {
    expect_place(text, "text");
    store_text(handles().find<CompiledCode>(compiled)->source, text);
  });
}

flashlight_status flashlight_compiled_free(flashlight_compiled compiled) {
  return guarded(__func__, [&] {
    if (compiled != nullptr) handles().take<CompiledCode>(compiled);
  });
}
