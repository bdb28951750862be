#include "flashlight/cuda/emit.h"

#include "composit/op/nest.h"
#include "flashlight/cuda/kernels.h"
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
        kernels_(routine_, {name_, "arena", "stream", "error"}) {}

  CudaSource source() {
    Code body = kernels_.temporaries();
    for (const Step& step : routine_.steps)
      if (const auto launch = kernels_.add(std::get<Nest>(step))) body += launched(*launch);
    body += text::returned("cudaSuccess");

    CudaSource source;
    source.name = name_;
    source.arena_bytes = kernels_.arena_bytes();
    source.text = "#include \"flashlight_cuda.cuh\"\n\nnamespace {\n" + text::str(kernels_.text()) +
                  "\n}  // namespace\n\n" +
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
    list.push_back(kernels_.arena_bytes() > 0 ? "void* arena" : "void* /*arena*/");
    list.push_back("cudaStream_t stream");
    return list;
  }

  static Code launched(const Launch& launch) {
    std::vector<std::string> words = {launch.kernel, launch.grid, "stream"};
    words.insert(words.end(), launch.arguments.begin(), launch.arguments.end());
    Code code = text::call({.target = "cudaError_t error_" + launch.kernel,
                            .function = "fl::launch",
                            .arguments = {words.begin(), words.end()}});
    code += text::block(text::If{"error_" + launch.kernel + " != cudaSuccess"},
                        text::returned("error_" + launch.kernel));
    return code;
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
           "_arena_bytes = " + std::to_string(kernels_.arena_bytes()) +
           " };\n\n#ifdef __cplusplus\nextern \"C\"\n#endif\ncudaError_t " + name_ + "(" +
           arguments + ");\n";
  }

  const Routine& routine_;
  std::string name_;
  Kernels kernels_;
};

}  // namespace

CudaSource emit(Program program) {
  expect_bound("cuda", program);
  check(program.functions.back(), [](const Step&) { return "on a GPU"; });
  return Emitter(program).source();
}

}  // namespace flashlight::cuda
