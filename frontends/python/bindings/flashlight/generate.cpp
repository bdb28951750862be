// Tokens of language models: flashlight/generate.py makes an iterator of it.
#include "flashlight/generate.h"

#include <torch/csrc/autograd/python_variable.h>

#include "frontends/python/bindings/flashlight/bindings.h"

namespace flashlight::python {
namespace {

// Members of GenerateOptions by name.
GenerateOptions options_of(const py::dict& dict) {
  GenerateOptions options;
  const auto take = [&](const char* name, auto& member) {
    if (dict.contains(name) && !dict[name].is_none())
      member = py::cast<std::decay_t<decltype(member)>>(dict[name]);
  };
  take("max_tokens", options.max_tokens);
  take("capacity", options.capacity);
  take("temperature", options.temperature);
  take("top_k", options.top_k);
  take("top_p", options.top_p);
  take("stop_tokens", options.stop_tokens);
  take("stop_sequences", options.stop_sequences);
  if (!dict["generator"].is_none()) options.generator = py::cast<at::Generator>(dict["generator"]);
  return options;
}

DecodingStep step_of(const py::object& step) {
  return [step](const at::Tensor& tokens, const at::Tensor& positions) {
    const py::object logits = step(tokens, positions);
    if (!THPVariable_Check(logits.ptr()))
      throw composit::UserError("[generate] expected logits of a step, received " +
                                std::string(Py_TYPE(logits.ptr())->tp_name));
    return py::cast<at::Tensor>(logits);
  };
}

}  // namespace

void add_generate(py::module_& module) {
  py::class_<GenerationState>(module, "GenerationState")
      .def(py::init<>())
      .def_readwrite("sequences", &GenerationState::sequences)
      .def_readwrite("prompt_lengths", &GenerationState::prompt_lengths)
      .def_readwrite("cached", &GenerationState::cached)
      .def_property(
          "generator",
          [](const GenerationState& state) -> py::object {
            return state.generator.defined() ? py::cast(state.generator) : py::none();
          },
          [](GenerationState& state, const std::optional<at::Tensor>& generator) {
            state.generator = generator.value_or(at::Tensor());
          });
  py::class_<Generation>(module, "Generation")
      .def(py::init([](const py::object& step, const std::vector<TokenIds>& prompts,
                       const py::dict& options) {
        return std::make_unique<Generation>(step_of(step), prompts, options_of(options));
      }))
      .def(py::init(
          [](const py::object& step, const GenerationState& state, const py::dict& options) {
            return std::make_unique<Generation>(step_of(step), state, options_of(options));
          }))
      .def("done", &Generation::done)
      .def("next", &Generation::next)
      .def("sequences", &Generation::sequences)
      .def("stop",
           [](const Generation& run, size_t sequence) -> std::optional<std::string> {
             const Stop stop = run.stop(sequence);
             return stop == Stop::none ? std::nullopt : std::optional(std::string(name(stop)));
           })
      .def("state", &Generation::state);
}

}  // namespace flashlight::python
