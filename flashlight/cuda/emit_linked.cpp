// The program as a function of LibTorch's tensors.
#include <algorithm>

#include "composit/ir/error.h"
#include "flashlight/cuda/emit.h"
#include "flashlight/cuda/kernels.h"
#include "flashlight/loops/sizes.h"
#include "flashlight/text/literal.h"
#include "flashlight/text/printer.h"
#include "flashlight/text/runtime_call_text.h"

namespace flashlight::cuda {

using text::Code;

namespace {

bool is_call(const Step& step) {
  const auto* call = std::get_if<RuntimeCall>(&step);
  return call != nullptr && call->schema != nullptr;
}

bool is_guard(const RuntimeCall& call) { return call.function.domain() == "guards"; }

std::string fault_of(const Step& step) {
  const auto* runtime = std::get_if<RuntimeCall>(&step);
  if (runtime != nullptr && is_guard(*runtime)) return "";
  if (!is_call(step)) return "on a GPU";
  const auto& results = std::get<RuntimeCall>(step).schema->results;
  const bool list = std::any_of(results.begin(), results.end(),
                                [](const composit::SchemaArgument& one) { return one.list; });
  return list ? "that gives lists of tensors" : "";
}

// The step after which each value is not read any more.
Table<ValueId, StepId> last_uses(const Routine& routine) {
  Table<ValueId, StepId> last;
  last.resize(routine.values.size());
  for (const StepId step : routine.steps.ids()) {
    for (const ValueId value : reads(routine.steps[step])) last[value] = step;
    for (const ValueId value : writes(routine.steps[step])) last[value] = step;
  }
  return last;
}

class LinkedEmitter {
 public:
  LinkedEmitter(const Program& program, const LinkOptions& options)
      : routine_(program.functions.back()),
        options_(options),
        name_(text::identifier(routine_.name)),
        called_(values_of_calls(routine_)),
        kernels_(routine_, {name_, "arena", "expected", "inputs", "session"},
                 [this](ValueId value) { return called_.count(value) == 0; }),
        last_uses_(last_uses(routine_)) {
    memories_.resize(routine_.values.size());
  }

  CudaSource source() {
    Code steps;
    for (const StepId step : routine_.steps.ids()) steps += step_code(step);
    Code body = preamble();
    body += steps;
    body += ending();
    CudaSource source;
    source.name = name_;
    source.arena_bytes = kernels_.arena_bytes();
    std::string includes = "#include \"" + name_ + ".h\"\n\n";
    for (const std::string& header : headers_) includes += "#include <" + header + ">\n";
    source.text =
        includes + (headers_.empty() ? "" : "\n") +
        "#include \"flashlight_cuda.cuh\"\n#include \"flashlight_cuda_aten.cuh\"\n\nnamespace {\n" +
        text::str(kernels_.text()) + "\n}  // namespace\n\n" +
        text::str(text::code(text::Definition{
            "std::vector<at::Tensor> " + name_, {"const std::vector<at::Tensor>& inputs"}, body}));
    source.header = header();
    return source;
  }

 private:
  static std::set<ValueId> values_of_calls(const Routine& routine) {
    std::set<ValueId> values;
    for (const Step& step : routine.steps)
      if (is_call(step))
        for (const ValueId value : writes(step)) values.insert(value);
    return values;
  }

  std::string element_count(ValueId value) const {
    return std::to_string(routine_.values[value].type.numel());
  }
  std::string sizes_text(ValueId value) const {
    const Value& one = routine_.values[value];
    const composit::Dims& sizes = one.model_sizes.empty() ? one.type.sizes : one.model_sizes;
    std::string text;
    for (const int64_t size : sizes) text += (text.empty() ? "" : ", ") + std::to_string(size);
    return "{" + text + "}";
  }
  // The tensor that owns the memory of a value.
  const std::string& memory(ValueId value) {
    std::string& name = memories_[value];
    if (name.empty()) name = kernels_.unused(kernels_.name(value) + "_memory");
    return name;
  }

  // ---- what comes first and last

  Code preamble() {
    text::List expected{"const std::vector<fl::Expected> expected = ", {}};
    for (const ValueId value : arguments())
      expected.items.push_back("{\"" + routine_.values[value].name + "\", " + "fl::scalar_type<" +
                               kernels_.type(value) + ">, " + sizes_text(value) + "}");
    Code code = text::code(expected);
    code += text::call("const fl::Session session", {"\"" + name_ + "\"", "expected", "inputs"});
    size_t number = 0;
    for (const ValueId value : arguments())
      code += text::assignment(
          "const auto* const " + kernels_.name(value),
          "session.input<" + kernels_.type(value) + ">(" + std::to_string(number++) + ")");
    for (const ValueId value : routine_.results)
      if (called_.count(value) == 0) {
        code +=
            text::assignment("at::Tensor " + memory(value),
                             "fl::empty<" + kernels_.type(value) + ">(" + sizes_text(value) + ")");
        code += pointer(value);
      }
    if (kernels_.arena_bytes() == 0) return code;
    const std::string arena = kernels_.unused("arena_memory");
    code +=
        text::assignment("const at::Tensor " + arena,
                         "fl::empty<uint8_t>({" + std::to_string(kernels_.arena_bytes()) + "})");
    code += text::assignment("void* const arena", arena + ".mutable_data_ptr()");
    code += kernels_.temporaries();
    return code;
  }

  ValueIds arguments() const {
    ValueIds list;
    for (const ValueId value : routine_.inputs)
      if (!kernels_.is_constant(value)) list.push_back(value);
    return list;
  }
  Code pointer(ValueId value) {
    return text::assignment("auto* const " + kernels_.name(value),
                            "fl::elements<" + kernels_.type(value) + ">(" + memory(value) + ", " +
                                element_count(value) + ")");
  }

  // Writes new values of inputs, then gives the outputs.
  Code ending() {
    Code code;
    const size_t outputs = routine_.results.size() - options_.targets.size();
    for (size_t i = 0; i < options_.targets.size(); ++i)
      code += text::statement("inputs[" + std::to_string(options_.targets[i]) + "].copy_(" +
                              result(routine_.results[outputs + i]) + ");");
    std::string list;
    for (size_t i = 0; i < outputs; ++i)
      list += (list.empty() ? "" : ", ") + result(routine_.results[i]);
    code += text::returned("{" + list + "}");
    return code;
  }
  std::string result(ValueId value) {
    return called_.count(value) == 0 ? memory(value)
                                     : memory(value) + ".view(" + sizes_text(value) + ")";
  }

  // ---- steps

  Code step_code(StepId number) {
    const Step& step = routine_.steps[number];
    if (const auto* nest = std::get_if<Nest>(&step)) {
      const auto launch = kernels_.add(*nest);
      if (!launch) return {};
      std::vector<std::string> words = {launch->kernel, launch->grid, "session.stream()"};
      words.insert(words.end(), launch->arguments.begin(), launch->arguments.end());
      text::Call inner = {"", "fl::launch", {words.begin(), words.end()}, ""};
      Code code = text::call(text::Call{
          "", "session.check", {std::make_shared<const text::Call>(std::move(inner))}, ";"});
      code += released(number);
      return code;
    }
    const auto& called = std::get<RuntimeCall>(step);
    Code code = is_guard(called) ? guard(called) : call(called);
    code += released(number);
    return code;
  }

  Code call(const RuntimeCall& call) {
    headers_.insert(text::link_header_of(call));
    const std::vector<std::string> arguments = text::aten_arguments(
        call, [&](size_t position) { return passed(call.arguments.at(position)); }, "fl::device()");
    const bool is_one = call.results.size() == 1;
    const std::string whole = is_one ? memory(call.results[0])
                                     : kernels_.unused(kernels_.name(call.results.at(0)) + "_all");
    Code code = text::call(text::Call{.target = (is_one ? "at::Tensor " : "const auto ") + whole,
                                      .function = text::function_text(call),
                                      .arguments = {arguments.begin(), arguments.end()}});
    for (size_t i = 0; i < call.results.size(); ++i) {
      const ValueId value = call.results[i];
      if (routine_.values[value].type.numel() == 0) continue;
      if (!is_one)
        code += text::assignment("at::Tensor " + memory(value),
                                 "std::get<" + std::to_string(i) + ">(" + whole + ")");
      code += pointer(value);
    }
    return code;
  }

  // A guard reads a number on the host, and waits for it.
  Code guard(const RuntimeCall& guard) const {
    const ValueId value = guard.arguments.at(0);
    std::vector<std::string> words = {"fl::number(" + passed(value) + ")"};
    for (std::string& option : text::option_texts(guard, routine_.values[value].type.dtype))
      words.push_back(std::move(option));
    return text::call(text::function_text(guard), words);
  }

  std::string passed(ValueId value) const {
    if (routine_.values[value].type.numel() == 0)
      return "static_cast<const " + kernels_.type(value) + "*>(nullptr)";
    return kernels_.is_constant(value) ? "fl::address(" + kernels_.name(value) + ")"
                                       : kernels_.name(value);
  }

  // Gives memory back as soon as nothing reads it: LibTorch's allocator reuses it in the order of
  // the stream.
  Code released(StepId step) {
    Code code;
    for (const ValueId value : called_) {
      const bool is_result =
          std::count(routine_.results.begin(), routine_.results.end(), value) > 0;
      if (last_uses_[value] == step && !is_result && !memories_[value].empty())
        code += text::statement(memories_[value] + ".reset();");
    }
    return code;
  }

  std::string header() const {
    std::string text;
    for (const ValueId value : arguments())
      text += "//   " + routine_.values[value].name + ": " + kernels_.type(value) +
              sizes_text(value) + "\n";
    return "// Inputs are on one CUDA device, the current one's stream is used. They are, in "
           "order:\n" +
           text +
           (options_.targets.empty() ? ""
                                     : "// What the program writes is written to the inputs.\n") +
           "#pragma once\n\n#include <ATen/core/Tensor.h>\n\n#include <vector>\n\n"
           "std::vector<at::Tensor> " +
           name_ + "(const std::vector<at::Tensor>& inputs);\n";
  }

  const Routine& routine_;
  const LinkOptions& options_;
  const std::string name_;
  const std::set<ValueId> called_;  // values that LibTorch makes
  Kernels kernels_;
  const Table<ValueId, StepId> last_uses_;
  Table<ValueId, std::string> memories_;
  std::set<std::string> headers_;
};

}  // namespace

CudaSource emit_linked(Program program, const LinkOptions& options) {
  expect_bound("cuda", program);
  check(program.functions.back(), fault_of);
  return LinkedEmitter(program, options).source();
}

}  // namespace flashlight::cuda
