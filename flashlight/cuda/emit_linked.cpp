// The program as a function of LibTorch's tensors.
#include <algorithm>

#include "flashlight/cuda/emit.h"
#include "flashlight/cuda/function_writer.h"
#include "flashlight/loops/sizes.h"
#include "flashlight/text/literal.h"
#include "flashlight/text/printer.h"

namespace flashlight::cuda {

using text::Code;

namespace {

class LinkedEmitter {
 public:
  LinkedEmitter(Program& program, const EmitOptions& options)
      : routine_(program.functions.back()),
        options_(options),
        name_(function_name(routine_.name)),
        functions_(write_functions(program, /*linked=*/true)),
        main_(*functions_->main),
        kernels_(main_.kernels()) {}

  CudaSource source() {
    Code body = preamble();
    body += functions_->steps;
    body += ending();
    CudaSource source;
    source.name = name_;
    source.arena_bytes = functions_->arena_bytes;
    std::string includes = "#include \"" + name_ + ".h\"\n\n";
    for (const std::string& header : functions_->file.headers)
      includes += "#include <" + header + ">\n";
    source.text =
        includes + (functions_->file.headers.empty() ? "" : "\n") +
        "#include \"flashlight_cuda.cuh\"\n#include \"flashlight_cuda_aten.cuh\"\n\n" +
        functions_->hidden +
        text::str(text::code(text::Definition{
            "std::vector<at::Tensor> " + name_, {"const std::vector<at::Tensor>& inputs"}, body}));
    if (options_.graph)
      source.text += "\n" + text::str(text::code(text::Definition{
                                graph_head(), {}, text::returned("fl::Graph(" + name_ + ")")}));
    source.header = header();
    return source;
  }

 private:
  ValueIds arguments() const {
    ValueIds list;
    for (const ValueId value : routine_.inputs)
      if (!kernels_.is_constant(value)) list.push_back(value);
    return list;
  }

  Code preamble() {
    const ValueIds list = arguments();
    Code code = text::call("fl::Session session",
                           {"\"" + name_ + "\"", "inputs", std::to_string(list.size())});
    for (size_t i = 0; i < list.size(); ++i)
      code += text::call(
          text::Call{.target = "const auto* const " + kernels_.name(list[i]),
                     .function = "session.input<" + kernels_.type(list[i]) + ">",
                     .arguments = {std::to_string(i), text::quoted(routine_.values[list[i]].name),
                                   main_.sizes(list[i])}});
    for (const ValueId value : routine_.results)
      if (!main_.is_made_by_libtorch(value)) {
        code +=
            text::assignment("at::Tensor " + main_.memory(value),
                             "fl::empty<" + kernels_.type(value) + ">(" + main_.sizes(value) + ")");
        code += main_.pointer(value);
      }
    if (functions_->arena_bytes == 0) return code;
    const std::string arena = kernels_.unused("arena_memory");
    code +=
        text::assignment("const at::Tensor " + arena,
                         "fl::empty<uint8_t>({" + std::to_string(functions_->arena_bytes) + "})");
    code += text::assignment("void* const arena", arena + ".mutable_data_ptr()");
    code += kernels_.temporaries();
    return code;
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
    return main_.memory(value) +
           (main_.is_made_by_libtorch(value) ? ".view(" + main_.sizes(value) + ")" : "");
  }

  std::string graph_head() const {
    return "std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)> " + name_ +
           "_graph";
  }

  std::string header() const {
    std::string text;
    for (const ValueId value : arguments())
      text += "//   " + text::one_line(routine_.values[value].name) + ": " + kernels_.type(value) +
              main_.sizes(value) + "\n";
    return "// Inputs are on one CUDA device, whose current stream is used. They are, in order:\n" +
           text +
           (options_.targets.empty() ? ""
                                     : "// What the program writes is written to the inputs.\n") +
           "#pragma once\n\n#include <ATen/core/Tensor.h>\n\n" +
           (options_.graph ? "#include <functional>\n" : "") +
           "#include <vector>\n\n"
           "std::vector<at::Tensor> " +
           name_ + "(const std::vector<at::Tensor>& inputs);\n" +
           (options_.graph
                ? "// The same as a CUDA graph: the second call in a row with inputs in the same "
                  "memory captures it,\n// further ones launch it.\n" +
                      graph_head() + "();\n"
                : "");
  }

  const Routine& routine_;
  const EmitOptions& options_;
  const std::string name_;
  const std::unique_ptr<Functions> functions_;
  FunctionWriter& main_;
  Kernels& kernels_;
};

}  // namespace

CudaSource emit_linked(Program program, const EmitOptions& options) {
  const text::DeviceText device;
  expect_bound("cuda", program);
  check(program, {.linked = true, .graph = options.graph});
  return LinkedEmitter(program, options).source();
}

}  // namespace flashlight::cuda
