#include "flashlight/cuda/emit.h"

#include <algorithm>
#include <map>

#include "composit/op/nest.h"
#include "flashlight/cuda/function_writer.h"
#include "flashlight/loops/sizes.h"
#include "flashlight/text/literal.h"
#include "flashlight/text/printer.h"

namespace flashlight::cuda {

using text::Code;

namespace {

class Emitter {
 public:
  Emitter(Program& program, const EmitOptions& options)
      : options_(options),
        routine_(program.functions.back()),
        name_(function_name(routine_.name)),
        functions_(write_functions(program, /*linked=*/false)),
        kernels_(functions_->main->kernels()) {
    for (const ValueIds& list : {routine_.inputs, routine_.results})
      for (const ValueId value : list)
        if (!kernels_.is_constant(value))
          pointers_[value] =
              is_converted(value)
                  ? kernels_.unused(kernels_.name(value) + (is_complex(value) ? "_parts" : "_bits"))
                  : kernels_.name(value);
  }

  CudaSource source() {
    Code body = converted();
    body += kernels_.temporaries();
    body += functions_->steps;
    body += text::returned("cudaSuccess");
    CudaSource source;
    source.name = name_;
    source.arena_bytes = functions_->arena_bytes;
    Code functions =
        text::code(text::Definition{"extern \"C\" cudaError_t " + name_, parameters(), body});
    if (options_.graph) functions += graph();
    source.text =
        "#include \"flashlight_cuda.cuh\"\n\n" + functions_->hidden + text::str(functions);
    source.header = header();
    return source;
  }

 private:
  // C has no 16-bit floats and, for C++ and a device, no complex numbers: their bits and their
  // parts are passed.
  composit::DType dtype(ValueId value) const { return routine_.values[value].type.dtype; }
  bool is_complex(ValueId value) const { return composit::is_complex(dtype(value)); }
  bool is_converted(ValueId value) const {
    return composit::is_half(dtype(value)) || is_complex(value);
  }
  std::string parameter(ValueId value) const {
    const std::string type = !is_converted(value)                          ? kernels_.type(value)
                             : !is_complex(value)                          ? "uint16_t"
                             : dtype(value) == composit::DType::complex128 ? "double"
                                                                           : "float";
    return type + "* " + pointers_.at(value);
  }
  Code converted() const {
    Code code;
    const auto add = [&](ValueId value, const std::string& constness) {
      if (is_converted(value) && !kernels_.is_constant(value))
        code += text::assignment("auto* const " + kernels_.name(value),
                                 "reinterpret_cast<" + constness + kernels_.type(value) + "*>(" +
                                     pointers_.at(value) + ")");
    };
    for (const ValueId value : routine_.inputs) add(value, "const ");
    for (const ValueId value : routine_.results) add(value, "");
    return code;
  }

  std::vector<std::string> parameters() const {
    std::vector<std::string> list;
    for (const ValueId value : routine_.inputs)
      if (!kernels_.is_constant(value)) list.push_back("const " + parameter(value));
    for (const ValueId value : routine_.results) list.push_back(parameter(value));
    list.push_back(functions_->arena_bytes > 0 ? "void* arena" : "void* /*arena*/");
    list.push_back("cudaStream_t stream");
    return list;
  }

  std::vector<std::string> graph_parameters() const {
    std::vector<std::string> list = parameters();
    list.push_back("cudaGraphExec_t* graph");
    return list;
  }
  // The function that captures a call.
  Code graph() const {
    std::string arguments;
    for (const ValueIds& list : {routine_.inputs, routine_.results})
      for (const ValueId value : list)
        if (!kernels_.is_constant(value)) arguments += pointers_.at(value) + ", ";
    arguments += functions_->arena_bytes > 0 ? "arena, stream" : "nullptr, stream";
    const std::string call = "[&] { return " + name_ + "(" + arguments + "); }";
    Code code = text::blank();
    code += text::code(
        text::Definition{"extern \"C\" cudaError_t " + name_ + "_graph", graph_parameters(),
                         text::returned("fl::captured(stream, graph, " + call + ")")});
    return code;
  }

  std::string declaration(const std::string& name,
                          const std::vector<std::string>& parameters) const {
    std::string list;
    for (const std::string& one : parameters) list += (list.empty() ? "" : ", ") + one;
    return "cudaError_t " + name + "(" + list + ");\n";
  }

  bool has_complex() const {
    const auto is = [this](ValueId value) {
      return !kernels_.is_constant(value) && is_complex(value);
    };
    return std::any_of(routine_.inputs.begin(), routine_.inputs.end(), is) ||
           std::any_of(routine_.results.begin(), routine_.results.end(), is);
  }

  std::string header() const {
    std::string text = "// Sizes: ";
    const char* separator = "";
    for (const ValueIds& list : {routine_.inputs, routine_.results})
      for (const ValueId value : list) {
        if (kernels_.is_constant(value)) continue;
        const Type& type = routine_.values[value].type;
        text += separator + kernels_.name(value) + composit::str(type.sizes);
        if (is_converted(value)) text += " of " + std::string(composit::name(type.dtype));
        separator = ", ";
      }
    return text + (has_complex() ? "; real and imaginary parts side by side, aligned as two" : "") +
           ".\n// All memory is the device's, row-major; `arena` has " + name_ +
           "_arena_bytes.\n#pragma once\n\n#include <cuda_runtime_api.h>\n#include <stdbool.h>\n"
           "#include <stdint.h>\n\nenum { " +
           name_ + "_arena_bytes = " + std::to_string(functions_->arena_bytes) +
           " };\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n" +
           declaration(name_, parameters()) +
           (options_.graph
                ? "// Captures a call, which cudaGraphLaunch(*graph, stream) repeats with the same "
                  "memory.\n// `stream` is not the default one.\n" +
                      declaration(name_ + "_graph", graph_parameters())
                : "") +
           "#ifdef __cplusplus\n}\n#endif\n";
  }

  const EmitOptions& options_;
  const Routine& routine_;
  std::string name_;
  const std::unique_ptr<Functions> functions_;
  Kernels& kernels_;
  std::map<ValueId, std::string> pointers_;  // that a caller passes
};

}  // namespace

CudaSource emit(Program program, const EmitOptions& options) {
  const text::DeviceText device;
  expect_bound("cuda", program);
  check(program, {.linked = false, .graph = options.graph});
  return Emitter(program, options).source();
}

}  // namespace flashlight::cuda
