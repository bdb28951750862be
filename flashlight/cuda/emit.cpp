#include "flashlight/cuda/emit.h"

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
  explicit Emitter(const Program& program)
      : routine_(program.functions.back()),
        name_(text::identifier(routine_.name)),
        functions_(write_functions(program, /*linked=*/false)),
        kernels_(functions_->main->kernels()) {}

  CudaSource source() {
    Code body = kernels_.temporaries();
    body += functions_->steps;
    body += text::returned("cudaSuccess");
    CudaSource source;
    source.name = name_;
    source.arena_bytes = functions_->arena_bytes;
    source.text = "#include \"flashlight_cuda.cuh\"\n\n" + functions_->hidden +
                  text::str(text::code(
                      text::Definition{"extern \"C\" cudaError_t " + name_, parameters(), body}));
    source.header = header();
    return source;
  }

 private:
  std::vector<std::string> parameters() const {
    std::vector<std::string> list;
    for (const ValueId value : routine_.inputs)
      if (!kernels_.is_constant(value))
        list.push_back("const " + kernels_.type(value) + "* " + kernels_.name(value));
    for (const ValueId value : routine_.results)
      list.push_back(kernels_.type(value) + "* " + kernels_.name(value));
    list.push_back(functions_->arena_bytes > 0 ? "void* arena" : "void* /*arena*/");
    list.push_back("cudaStream_t stream");
    return list;
  }

  std::string header() const {
    std::string text = "// Sizes: ";
    const char* separator = "";
    for (const ValueIds& list : {routine_.inputs, routine_.results})
      for (const ValueId value : list) {
        if (kernels_.is_constant(value)) continue;
        text += separator + kernels_.name(value) + composit::str(routine_.values[value].type.sizes);
        separator = ", ";
      }
    std::string arguments;
    for (const std::string& one : parameters()) arguments += (arguments.empty() ? "" : ", ") + one;
    return text + ".\n// All memory is the device's, row-major; `arena` has " + name_ +
           "_arena_bytes.\n#pragma once\n\n#include <cuda_runtime_api.h>\n\nenum { " + name_ +
           "_arena_bytes = " + std::to_string(functions_->arena_bytes) +
           " };\n\n#ifdef __cplusplus\nextern \"C\"\n#endif\ncudaError_t " + name_ + "(" +
           arguments + ");\n";
  }

  const Routine& routine_;
  std::string name_;
  const std::unique_ptr<Functions> functions_;
  Kernels& kernels_;
};

}  // namespace

CudaSource emit(Program program) {
  expect_bound("cuda", program);
  check(program, /*linked=*/false);
  return Emitter(program).source();
}

}  // namespace flashlight::cuda
