#include "flashlight/cuda/backend.h"

#include "composit/io/saved_capture.h"
#include "composit/ir/error.h"
#include "flashlight/backends/registry.h"
#include "flashlight/loops/fuse.h"
#include "flashlight/loops/runtime_call.h"
#include "flashlight/loops/signed_zero.h"
#include "flashlight/loops/verify.h"
#include "flashlight/package/backend.h"
#include "flashlight/package/program_folder.h"
#include "flashlight/package/shipped.h"
#include "flashlight/toolchain/write_folder.h"

namespace flashlight::cuda {
namespace {

using composit::Compiled;
using composit::CompileOptions;
using composit::Graph;

constexpr const char* kHeader = "flashlight_cuda.cuh";

LowerOptions lowering_of(const CompileOptions& options) {
  return {.name = options.name, .results = options.results, .outline = false};
}

// A library that nvcc builds: "cmake -B build && cmake --build build".
std::string build_file(const std::string& name) {
  return "cmake_minimum_required(VERSION 3.18)\nproject(" + name +
         " LANGUAGES CXX CUDA)\n\nadd_library(" + name + " " + name +
         ".cu)\ntarget_include_directories(" + name + " PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})\n";
}

class CudaBackend : public package::GeneratingBackend {
 public:
  std::string name() const override { return "cuda"; }
  std::string help() const override { return "CUDA C++ to be read, for nvcc"; }
  // Functions of the runtime are not on a GPU.
  bool has_code(const composit::Operation& operation) const override {
    return GeneratingBackend::has_code(operation) && operation.row.runtime.empty();
  }

 protected:
  Compiled make(const Graph&, const CompileOptions&) const override {
    throw composit::UserError(
        "[cuda] this backend writes CUDA C++, which is called elsewhere: `flashlight emit"
        " --backend cuda` prints it, `flashlight compile --backend cuda` writes a folder");
  }
  std::string write(const Graph& graph, const CompileOptions& options) const override {
    return source_of(graph, lowering_of(options)).text;
  }
  void write_folder(const composit::SavedCapture& capture, const std::string& folder,
                    const CompileOptions& options) const override {
    package::check_program(capture, folder);
    const CudaSource source = source_of(capture.graph, lowering_of(options));
    toolchain::write_folder({{source.name + ".cu", source.text},
                             {source.name + ".h", source.header},
                             {kHeader, package::shipped_text(kHeader)},
                             {"CMakeLists.txt", build_file(source.name)}},
                            folder, [](const std::filesystem::path&) {});
  }
};

const BackendRegistration kRegistration(backend());

}  // namespace

const composit::Backend& backend() {
  static const CudaBackend backend;
  return backend;
}

CudaSource source_of(const Graph& graph, const LowerOptions& options) {
  Program program = checked("lower", lower(graph, options));
  program = checked("fuse", fuse(std::move(program)));
  program = checked("drop_zero_terms", drop_zero_terms(std::move(program)));
  return emit(std::move(program));
}

}  // namespace flashlight::cuda
