#include "flashlight/cpp/backend.h"

#include <optional>
#include <set>

#include "composit/ir/error.h"
#include "flashlight/backends/cpp.h"
#include "flashlight/backends/registry.h"
#include "flashlight/cpp/offline.h"
#include "flashlight/loops/fuse.h"
#include "flashlight/loops/recompute.h"
#include "flashlight/loops/signed_zero.h"
#include "flashlight/loops/tile.h"
#include "flashlight/loops/verify.h"
#include "flashlight/runtime/arena.hpp"
#include "flashlight/runtime/random.hpp"
#include "flashlight/toolchain/library.h"

namespace flashlight::cpp {
namespace {

using composit::Graph;
using composit::UserError;
// Returns nullptr, or what is wrong.
using Entry = const char*(const void* const*, const void* const*, void* const*, void*, void*);

// At least `bytes`, for this thread's calls.
void* arena_of_thread(int64_t bytes) {
  static thread_local fl::Memory arena;
  static thread_local int64_t size = 0;
  if (arena == nullptr || size < bytes) {
    arena = fl::allocate(static_cast<size_t>(bytes));
    size = bytes;
  }
  return arena.get();
}

toolchain::LineOrigin origin_in(const std::string& file, int first, int last,
                                const Origin& origin) {
  return {file, first, last, place_of(origin)};
}

class CppCode : public composit::Code {
 public:
  CppCode(composit::Ports ports, toolchain::Library library, Source source)
      : Code(std::move(ports)), library_(std::move(library)), source_(std::move(source)) {
    entry_ = library_.symbol<Entry>(source_.entry_name);
  }

  const std::string& source() const override { return source_.text; }
  bool draws() const override { return source_.draws; }
  void run(composit::InputBuffers inputs, composit::Buffers results,
           fl::Generator* generator) const override {
    std::vector<const void*> arguments, weights;
    arguments.reserve(source_.arguments.size());
    weights.reserve(source_.weights.size());
    for (const size_t input : source_.arguments) arguments.push_back(ports().given(input, inputs));
    for (size_t i = 0; i < source_.weights.size(); ++i) {
      const Array& constant = source_.constants[i];
      weights.push_back(constant.defined() ? constant.data()
                                           : ports().given(source_.weights[i], inputs));
    }
    std::optional<fl::Generator> fresh;
    if (source_.draws && generator == nullptr) generator = &fresh.emplace(kDefaultSeed);
    const char* error = entry_(arguments.data(), weights.data(), ports().places(results).data(),
                               arena_of_thread(source_.arena_bytes), generator);
    if (error != nullptr) throw UserError("[" + source_.name + "] " + error);
  }

 private:
  toolchain::Library library_;
  Source source_;
  Entry* entry_;
};

// Operations that may become calls of LibTorch.
AtenSchemas aten_of(const Graph& graph, const CompileOptions& options) {
  const bool is_linked = Cpp::fields().typed(options.options).link_aten;
  return is_linked && options.schemas ? aten_schemas(options.schemas(graph)) : AtenSchemas();
}

LowerOptions lowering_of(const Graph& graph, const CompileOptions& options) {
  return {.name = options.name, .results = options.results, .aten = aten_of(graph, options)};
}

toolchain::CompileOptions building_of(const CompileOptions& options) {
  toolchain::CompileOptions build = {.flags = default_flags()};
  if (Cpp::fields().typed(options.options).link_aten)
    for (const std::string& folder : options.torch_folders)
      build.flags.insert(build.flags.end(), {"-isystem", folder});
  build.flags.insert(build.flags.end(), options.flags.begin(), options.flags.end());
  return build;
}

// All graphs in one translation unit, by complete options.
std::vector<Compiled> compile_together(const std::vector<Graph>& graphs,
                                       const std::vector<std::string>& names,
                                       CompileOptions options) {
  toolchain::Sources sources;
  sources.headers.push_back({kRuntimeName, runtime_text()});
  toolchain::SourceFile unit = {"kernels.cpp", ""};
  std::set<std::string> headers;
  std::vector<Source> emitted;
  int lines = 0;
  for (size_t i = 0; i < graphs.size(); ++i) {
    options.name = names[i];
    emitted.push_back(source_of(graphs[i], lowering_of(graphs[i], options)));
    for (const std::string& header : emitted.back().headers)
      if (headers.insert(header).second)
        sources.headers.push_back({header, runtime_header(header)});
    for (const EmittedLines& place : emitted.back().origins)
      sources.origins.push_back(
          origin_in(unit.name, lines + place.first, lines + place.last, place.origin));
    unit.text += emitted.back().text;
    lines += emitted.back().lines;
  }
  sources.units.push_back(std::move(unit));
  const toolchain::Library library = toolchain::Library::load(sources, building_of(options));
  std::vector<Compiled> compiled;
  for (size_t i = 0; i < graphs.size(); ++i) {
    composit::Ports ports = composit::ports_of(graphs[i], emitted[i].name);
    compiled.emplace_back(
        std::make_shared<const CppCode>(std::move(ports), library, std::move(emitted[i])));
  }
  return compiled;
}

class CppBackend : public composit::Backend {
 public:
  std::string name() const override { return "cpp"; }
  std::string help() const override { return "C++ to be read, in one thread"; }
  const composit::OptionTable& options() const override { return Cpp::fields().table(); }
  bool has_code(const composit::Operation& operation) const override {
    return loops::has_code(operation);
  }

 protected:
  Compiled make(const Graph& graph, const CompileOptions& options) const override {
    return compile_together({graph}, {options.name}, options)[0];
  }
  std::string write(const Graph& graph, const CompileOptions& options) const override {
    return source_of(graph, lowering_of(graph, options)).text;
  }
  void write_folder(const composit::SavedCapture& capture, const std::string& folder,
                    const CompileOptions& options) const override {
    cpp::write_program(capture, folder,
                       {.name = options.name,
                        .output_names = options.results,
                        .aten = aten_of(capture.graph, options)});
  }
};

const BackendRegistration kRegistration(backend());

}  // namespace

const composit::Backend& backend() {
  static const CppBackend backend;
  return backend;
}

std::vector<std::string> default_flags() {
  return {"-std=c++17",         "-O3",    "-march=native", "-ffp-contract=fast", "-fno-math-errno",
          "-fno-trapping-math", "-fwrapv"};
}

Source source_of(const Graph& graph, const LowerOptions& options, const SplitOptions& split) {
  Program program = checked("lower", lower(graph, options));
  program = checked("fuse", fuse(std::move(program)));
  program = checked("drop_zero_terms", drop_zero_terms(std::move(program)));
  program = checked("recompute", recompute(std::move(program)));
  program = checked("tile", tile(std::move(program)));
  program = checked("split_long_functions", split_long_functions(std::move(program), split));
  return emit(std::move(program));
}

Compiled compile(const Graph& graph, const CompileOptions& options) {
  return backend().compile(graph, options);
}

std::vector<Compiled> compile(const std::vector<Graph>& graphs,
                              const std::vector<std::string>& names,
                              const CompileOptions& options) {
  CompileOptions all = options;
  all.options = composit::complete(options.options, backend().options(),
                                   composit::Option::Use::calls, backend().name());
  return compile_together(graphs, names, std::move(all));
}

}  // namespace flashlight::cpp
