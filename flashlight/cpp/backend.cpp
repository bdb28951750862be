#include "flashlight/cpp/backend.h"

#include <set>

#include "composit/ir/error.h"
#include "flashlight/loops/fuse.h"
#include "flashlight/loops/ports.h"
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

}  // namespace

struct Compiled::State {
  toolchain::Library library;
  Source source;
  Entry* entry;
  Ports ports;
};

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

std::vector<Compiled> compile(const std::vector<Graph>& graphs,
                              const std::vector<std::string>& names,
                              const CompileOptions& options) {
  toolchain::Sources sources;
  sources.headers.push_back({kRuntimeName, runtime_text()});
  toolchain::SourceFile unit = {"kernels.cpp", ""};
  std::set<std::string> headers;
  std::vector<Source> emitted;
  int lines = 0;
  for (size_t i = 0; i < graphs.size(); ++i) {
    emitted.push_back(
        source_of(graphs[i], {.name = names[i], .results = options.results, .aten = options.aten}));
    for (const std::string& header : emitted.back().headers)
      if (headers.insert(header).second)
        sources.headers.push_back({header, runtime_header(header)});
    const std::string& text = emitted.back().text;
    for (const EmittedLines& place : emitted.back().origins)
      sources.origins.push_back(
          origin_in(unit.name, lines + place.first, lines + place.last, place.origin));
    unit.text += text;
    lines += static_cast<int>(std::count(text.begin(), text.end(), '\n'));
  }
  sources.units.push_back(std::move(unit));
  toolchain::CompileOptions build = {.flags = default_flags(), .progress = options.progress};
  build.flags.insert(build.flags.end(), options.flags.begin(), options.flags.end());
  const toolchain::Library library = toolchain::Library::load(sources, build);
  std::vector<Compiled> compiled;
  for (size_t i = 0; i < graphs.size(); ++i) {
    auto* entry = library.symbol<Entry>(emitted[i].entry_name);
    Ports ports = ports_of(graphs[i], emitted[i].name);
    Compiled::State state = {library, std::move(emitted[i]), entry, std::move(ports)};
    compiled.emplace_back().state_ = std::make_shared<const Compiled::State>(std::move(state));
  }
  return compiled;
}

Compiled compile(const Graph& graph, const CompileOptions& options) {
  return compile({graph}, {options.name}, options)[0];
}

const std::string& Compiled::source() const { return state_->source.text; }

std::vector<Array> Compiled::operator()(const std::vector<Array>& inputs, uint64_t seed) const {
  return state_->ports.call(
      inputs, [&](const auto& pointers, const auto& places) { run(pointers, places, seed); });
}

bool Compiled::draws() const { return state_->source.draws; }

void Compiled::run(const std::vector<const void*>& inputs, const std::vector<void*>& results,
                   uint64_t seed) const {
  fl::Generator generator(seed);
  run(inputs, results, generator);
}

void Compiled::run(const std::vector<const void*>& inputs, const std::vector<void*>& results,
                   fl::Generator& generator) const {
  const State& state = *state_;
  const Source& source = state.source;
  const auto given = [&](size_t input) { return state.ports.given(input, inputs); };
  std::vector<const void*> arguments, weights;
  for (size_t input : source.arguments) arguments.push_back(given(input));
  for (size_t i = 0; i < source.weights.size(); ++i) {
    const Array& constant = source.constants[i];
    weights.push_back(constant.defined() ? constant.data() : given(source.weights[i]));
  }
  const char* error = state.entry(arguments.data(), weights.data(), results.data(),
                                  arena_of_thread(source.arena_bytes), &generator);
  if (error != nullptr) throw UserError("[" + source.name + "] " + error);
}

namespace {

class CppBackend : public composit::Backend {
 public:
  std::string name() const override { return "cpp"; }
  Callable compile(const Graph& graph) const override {
    return [compiled = flashlight::cpp::compile(graph)](const std::vector<Array>& inputs) {
      return compiled(inputs);
    };
  }
};

}  // namespace

const composit::Backend& backend() {
  static const CppBackend backend;
  return backend;
}

}  // namespace flashlight::cpp
