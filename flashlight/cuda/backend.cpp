#include "flashlight/cuda/backend.h"

#include <algorithm>

#include "composit/io/saved_capture.h"
#include "composit/ir/error.h"
#include "composit/ops/draws.h"
#include "composit/ops/operations.h"
#include "flashlight/backends/cuda.h"
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
constexpr const char* kLinkedHeader = "flashlight_cuda_aten.cuh";

CudaSource source_for(const Graph& graph, const CompileOptions& options) {
  const Cuda cuda = Cuda::fields().typed(options.options);
  LowerOptions lowering = {.name = options.name, .results = options.results};
  if (!cuda.link_aten) return source_of(graph, lowering, {.graph = cuda.graph});
  lowering.called = schema_of_call;
  return linked_source_of(graph, lowering, {.graph = cuda.graph});
}

// A library that nvcc builds: "cmake -B build && cmake --build build".
std::string build_file(const std::string& name, bool linked) {
  return "cmake_minimum_required(VERSION 3.18)\nproject(" + name + " LANGUAGES CXX CUDA)\n\n" +
         (linked ? "find_package(Torch REQUIRED)\n\n" : "") + "add_library(" + name + " " + name +
         ".cu)\ntarget_include_directories(" + name + " PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})\n" +
         (linked ? "target_link_libraries(" + name + " PUBLIC torch)\n" : "");
}

class CudaBackend : public package::GeneratingBackend {
 public:
  std::string name() const override { return "cuda"; }
  std::string help() const override { return "CUDA C++ to be read, for nvcc"; }
  const composit::OptionTable& options() const override { return Cuda::fields().table(); }
  // Functions of the runtime are not on a GPU.
  bool has_code(const composit::Operation& operation) const override {
    return GeneratingBackend::has_code(operation) && operation.row.runtime.empty();
  }
  bool compiles() const override { return false; }

 protected:
  Compiled make(const Graph&, const CompileOptions&) const override {
    throw composit::UserError(
        "[cuda] this backend writes CUDA C++, which is called elsewhere: `flashlight emit"
        " --backend cuda` prints it, `flashlight compile --backend cuda` writes a folder");
  }
  std::string write(const Graph& graph, const CompileOptions& options) const override {
    return source_for(graph, options).text;
  }
  void write_folder(const composit::SavedCapture& capture, const std::string& folder,
                    const CompileOptions& options) const override {
    package::check_program(capture, folder);
    const bool linked = Cuda::fields().typed(options.options).link_aten;
    const CudaSource source = source_for(capture.graph, options);
    std::vector<toolchain::SourceFile> files = {
        {source.name + ".cu", source.text},
        {source.name + ".h", source.header},
        {kHeader, package::shipped_text(kHeader)},
        {"CMakeLists.txt", build_file(source.name, linked)}};
    if (linked) files.push_back({kLinkedHeader, package::shipped_text(kLinkedHeader)});
    toolchain::write_folder(files, folder, [](const std::filesystem::path&) {});
  }
};

const BackendRegistration kRegistration(backend());

}  // namespace

const composit::Backend& backend() {
  static const CudaBackend backend;
  return backend;
}

namespace {

Program lowered(const Graph& graph, const LowerOptions& options) {
  Program program = checked("lower", lower(graph, options));
  program = checked("fuse", fuse(std::move(program)));
  return checked("drop_zero_terms", drop_zero_terms(std::move(program)));
}

}  // namespace

CudaSource source_of(const Graph& graph, const LowerOptions& options,
                     const EmitOptions& emit_options) {
  return emit(lowered(graph, options), emit_options);
}

CudaSource linked_source_of(const Graph& graph, const LowerOptions& options,
                            EmitOptions emit_options) {
  for (const composit::Mutation& mutation : graph.mutations()) {
    const auto& inputs = graph.inputs();
    emit_options.targets.push_back(static_cast<size_t>(
        std::find(inputs.begin(), inputs.end(), mutation.target) - inputs.begin()));
  }
  return emit_linked(lowered(graph, options), emit_options);
}

const composit::Schema* schema_of_call(const composit::Node& node) {
  if (const composit::Draw* draw = composit::find_draw(node.op())) return &draw->schema;
  const composit::Operation* operation = composit::operation_of(node);
  if (operation == nullptr || operation->schema.name.domain() != "aten") return nullptr;
  // LibTorch's kernels for the CPU alone say so.
  const std::string_view name = operation->schema.name.base_name();
  const bool cpu_only = name.find("_for_cpu") != name.npos || name.find("mkldnn") != name.npos;
  // LibTorch has products of integers on the CPU alone.
  const composit::DType dtype = node.outputs().at(0).dtype;
  const bool is_product = operation->row.kind == composit::OpKind::contraction &&
                          (composit::is_floating_point(dtype) || composit::is_complex(dtype));
  const bool called = is_product || !operation->row.runtime.empty();
  return called && !cpu_only ? &operation->schema : nullptr;
}

}  // namespace flashlight::cuda
