#include "flashlight/cpp/backend.h"

#include <atomic>
#include <optional>
#include <set>

#include "composit/io/log.h"
#include "composit/ir/error.h"
#include "flashlight/backends/cpp.h"
#include "flashlight/backends/registry.h"
#include "flashlight/cpp/sized.h"
#include "flashlight/loops/fuse.h"
#include "flashlight/loops/recompute.h"
#include "flashlight/loops/signed_zero.h"
#include "flashlight/loops/tile.h"
#include "flashlight/loops/verify.h"
#include "flashlight/package/backend.h"
#include "flashlight/package/program_folder.h"
#include "flashlight/package/shipped.h"
#include "flashlight/runtime/arena.hpp"
#include "flashlight/toolchain/library.h"

namespace flashlight::cpp {
namespace {

using composit::Graph;
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

class CppCode : public package::GeneratedCode {
 public:
  CppCode(composit::Ports ports, toolchain::Library library, const Source& source)
      : GeneratedCode(std::move(ports), std::make_shared<const package::Source>(source)),
        library_(std::move(library)),
        entry_(library_.symbol<Entry>(source.entry_name)),
        arena_bytes_(source.arena_bytes) {}

  void run(composit::InputBuffers inputs, composit::Buffers results,
           fl::Generator* generator) const override {
    call(inputs, results, generator, [&](const package::Pointers& at) {
      return entry_(at.arguments.data(), at.weights.data(), at.results.data(),
                    arena_of_thread(arena_bytes_), at.generator);
    });
  }

 private:
  toolchain::Library library_;
  Entry* entry_;
  int64_t arena_bytes_;
};

// Returns the same. `sizes` are the numbers of Source::sizes.
using SizedEntry = const char*(const void* const*, const void* const*, void* const*, const int64_t*,
                               void*);

// The text of all sizes, compiled.
struct SizedLibrary {
  toolchain::Library library;
  std::shared_ptr<const package::Source> source;
  SizedEntry* entry;
};

class SizedCppCode : public package::GeneratedCode {
 public:
  SizedCppCode(composit::Ports ports, std::shared_ptr<const SizedLibrary> library,
               std::vector<int64_t> sizes)
      : GeneratedCode(std::move(ports), library->source),
        library_(std::move(library)),
        sizes_(std::move(sizes)) {}

  void run(composit::InputBuffers inputs, composit::Buffers results,
           fl::Generator* generator) const override {
    call(inputs, results, generator, [&](const package::Pointers& at) {
      return library_->entry(at.arguments.data(), at.weights.data(), at.results.data(),
                             sizes_.data(), at.generator);
    });
  }

 private:
  std::shared_ptr<const SizedLibrary> library_;
  std::vector<int64_t> sizes_;
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
  toolchain::CompileOptions build = {.flags = package::default_flags()};
  if (Cpp::fields().typed(options.options).link_aten)
    for (const std::string& folder : options.torch_folders)
      build.flags.insert(build.flags.end(), {"-isystem", folder});
  build.flags.insert(build.flags.end(), options.flags.begin(), options.flags.end());
  return build;
}

// All texts in one translation unit.
toolchain::Sources sources_of(const std::vector<Source>& emitted) {
  toolchain::Sources sources;
  sources.headers.push_back(package::shipped_file(package::kRuntimeName));
  toolchain::SourceFile unit = {"kernels.cpp", ""};
  std::set<std::string> headers;
  int lines = 0;
  for (const Source& source : emitted) {
    for (const std::string& header : source.headers)
      if (headers.insert(header).second) sources.headers.push_back(package::shipped_file(header));
    for (const EmittedLines& place : source.origins)
      sources.origins.push_back(
          origin_in(unit.name, lines + place.first, lines + place.last, place.origin));
    unit.text += source.text;
    lines += source.lines;
  }
  sources.units.push_back(std::move(unit));
  return sources;
}

// All graphs in one translation unit, by complete options.
std::vector<Compiled> compile_together(const std::vector<Graph>& graphs,
                                       const std::vector<std::string>& names,
                                       CompileOptions options) {
  std::vector<Source> emitted;
  for (size_t i = 0; i < graphs.size(); ++i) {
    options.name = names[i];
    emitted.push_back(source_of(graphs[i], lowering_of(graphs[i], options)));
  }
  const toolchain::Library library =
      toolchain::Library::load(sources_of(emitted), building_of(options));
  std::vector<Compiled> compiled;
  for (size_t i = 0; i < graphs.size(); ++i) {
    composit::Ports ports = composit::ports_of(graphs[i], emitted[i].name);
    compiled.emplace_back(std::make_shared<const CppCode>(std::move(ports), library, emitted[i]));
  }
  return compiled;
}

// One text where the program has one; sizes at which it has other loops are compiled alone.
class Sized : public composit::SizedCode {
 public:
  Sized(const std::vector<composit::SizedGraph>& shown, const CompileOptions& options)
      : options_(options) {
    try {
      if (shown.empty()) return;
      program_.emplace(shown, lowering_of(shown[0].graph, options));
      library_ = compiled(*program_);
    } catch (const composit::UserError& error) {
      composit::log_warning("[cpp] '" + options.name +
                            "' is compiled for each size: " + error.what());
      program_.reset();
    }
  }

  Compiled at(const Graph& graph) override {
    if (auto made = at_once(graph)) return std::move(*made);
    ++alone_;
    return backend().compile(graph, options_);
  }
  std::optional<Compiled> at_once(const Graph& graph) override {
    const auto sizes = program_ ? program_->sizes_of(graph) : std::nullopt;
    if (!sizes) return std::nullopt;
    return Compiled(std::make_shared<const SizedCppCode>(
        composit::ports_of(graph, program_->source().name), library_, *sizes));
  }
  size_t compilations() const override { return (program_ ? 1 : 0) + alone_; }
  const std::string& source() const override {
    return program_ ? program_->source().text : SizedCode::source();
  }

 private:
  std::shared_ptr<const SizedLibrary> compiled(const SizedProgram& program) const {
    const Source& source = program.source();
    const toolchain::Library library =
        toolchain::Library::load(sources_of({source}), building_of(options_));
    return std::make_shared<const SizedLibrary>(
        SizedLibrary{library, std::make_shared<const package::Source>(source),
                     library.symbol<SizedEntry>(source.entry_name)});
  }

  CompileOptions options_;
  std::optional<SizedProgram> program_;
  std::shared_ptr<const SizedLibrary> library_;
  std::atomic<size_t> alone_ = 0;
};

class CppBackend : public package::GeneratingBackend {
 public:
  std::string name() const override { return "cpp"; }
  std::string help() const override { return "C++ to be read, in one thread"; }
  const composit::OptionTable& options() const override { return Cpp::fields().table(); }

 protected:
  Compiled make(const Graph& graph, const CompileOptions& options) const override {
    return compile_together({graph}, {options.name}, options)[0];
  }
  std::shared_ptr<composit::SizedCode> make_sized(const std::vector<composit::SizedGraph>& shown,
                                                  const CompileOptions& options) const override {
    return std::make_shared<Sized>(shown, options);
  }
  std::string write(const Graph& graph, const CompileOptions& options) const override {
    return source_of(graph, lowering_of(graph, options)).text;
  }
  void write_folder(const composit::SavedCapture& capture, const std::string& folder,
                    const CompileOptions& options) const override {
    cpp::write_program(capture, folder, lowering_of(capture.graph, options));
  }
  void write_sized_folder(const composit::SavedCapture& capture,
                          const composit::SizedGraphs& graphs, const std::string& folder,
                          const CompileOptions& options) const override {
    cpp::write_program(capture, graphs, folder, lowering_of(capture.graph, options));
  }
};

const BackendRegistration kRegistration(backend());

}  // namespace

const composit::Backend& backend() {
  static const CppBackend backend;
  return backend;
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

void write_program(const composit::SavedCapture& capture, const std::filesystem::path& folder,
                   const LowerOptions& options) {
  package::check_program(capture, folder);
  const Source source = source_of(capture.graph, options, {.loop_bodies = false});
  package::write_program(capture,
                         {.source = source,
                          .structs = source.structs,
                          .declaration = source.declaration,
                          .functions = source.functions,
                          .flags = package::default_flags()},
                         folder, options.results);
}

namespace {

// "tokens = 1, batch = 2".
std::string sizes_text(const composit::SizedGraph& graph) {
  std::string text;
  for (const auto& [name, number] : graph.sizes)
    text += (text.empty() ? "" : ", ") + name + " = " + std::to_string(number);
  return text;
}

// The ranges of the text's sizes, which are those of the program's sizes of these names.
std::vector<composit::SizeRange> ranges_of(const Source& source,
                                           const std::vector<composit::SizeRange>& ranges) {
  std::vector<composit::SizeRange> all;
  for (const std::string& name : source.sizes) {
    const auto range = std::find_if(ranges.begin(), ranges.end(),
                                    [&](const auto& one) { return size_word(one.name) == name; });
    if (range == ranges.end())
      throw composit::UserError(
          "[cpp] expected numbers of the program to be products of its sizes, "
          "received '" +
          name + "', which is none: bind it at one size");
    all.push_back({name, range->least, range->most, range->step});
  }
  return all;
}

}  // namespace

void write_program(const composit::SavedCapture& capture, const composit::SizedGraphs& graphs,
                   const std::filesystem::path& folder, const LowerOptions& options) {
  package::check_program(capture, folder);
  const SizedProgram program(graphs.shown, options, {.loop_bodies = false});
  for (const composit::SizedGraph& one : graphs.shown)
    if (!program.sizes_of(one.graph))
      throw composit::UserError(
          "[cpp] expected loops of one form at all sizes, received others at " + sizes_text(one) +
          ": unify examples without that size");
  const Source& source = program.source();
  package::write_program(capture,
                         {.source = source,
                          .structs = source.structs,
                          .declaration = source.declaration,
                          .functions = source.functions,
                          .flags = package::default_flags(),
                          .sizes = ranges_of(source, graphs.ranges),
                          .passed_sizes = source.passed_sizes,
                          .inputs = source.inputs,
                          .results = source.results,
                          .takes_memory = source.takes_memory},
                         folder, options.results);
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
