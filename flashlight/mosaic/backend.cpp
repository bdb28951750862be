#include "flashlight/mosaic/backend.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <algorithm>
#include <mutex>
#include <set>
#include <thread>

#include "composit/ir/error.h"
#include "flashlight/cpp/backend.h"
#include "flashlight/cpp/ports.h"
#include "flashlight/cpp/runtime/random.hpp"
#include "flashlight/mosaic/emit.h"
#include "flashlight/mosaic/runtime_text.h"
#include "flashlight/toolchain/library.h"

namespace flashlight::mosaic {
namespace {

using composit::Array;
using composit::Graph;
using composit::UserError;
using Prepare = const char*(const void* const*, void*, int);
using Run = const char*(const void* const*, const void* const*, void* const*, void*, void*, void*,
                        int64_t*, int);

// In large pages, where the system has them: panels pass by too fast for tables of small ones.
std::shared_ptr<std::byte> allocate_large(int64_t bytes) {
  constexpr size_t kLargePage = size_t{1} << 21;
  const auto size = static_cast<size_t>(bytes);
  if (size < kLargePage) return cpp::allocate(bytes);
  constexpr std::align_val_t kAlignment{kLargePage};
  auto* memory = static_cast<std::byte*>(::operator new(size, kAlignment));
#if defined(__linux__)
  madvise(memory, size, MADV_HUGEPAGE);
#endif
  return {memory, [kAlignment](std::byte* p) { ::operator delete(p, kAlignment); }};
}

}  // namespace

struct Compiled::State {
  toolchain::Library library;
  Source source;
  Plan plan;
  int threads = 1;
  Run* run = nullptr;
  cpp::Ports ports = {};
  std::vector<Array> frozen = {};  // by place among the weights; undefined: given in each call
  std::shared_ptr<std::byte> prepared = {};
  // Arenas that no call uses.
  mutable std::mutex mutex = {};
  mutable std::vector<std::shared_ptr<std::byte>> arenas = {};

  State(toolchain::Library made, Source text, Plan planned)
      : library(std::move(made)), source(std::move(text)), plan(std::move(planned)) {}

  std::shared_ptr<std::byte> take_arena() const {
    const std::lock_guard lock(mutex);
    if (arenas.empty()) return allocate_large(plan.arena_bytes);
    std::shared_ptr<std::byte> arena = std::move(arenas.back());
    arenas.pop_back();
    return arena;
  }
  void give_arena(std::shared_ptr<std::byte> arena) const {
    const std::lock_guard lock(mutex);
    arenas.push_back(std::move(arena));
  }
};

namespace {

// Several graphs as one unit; one as its own.
toolchain::Library library_of(const std::vector<Source>& emitted, const CompileOptions& options) {
  toolchain::Sources sources;
  sources.headers = {{cpp::kRuntimeName, cpp::runtime_text()}, {kRuntimeName, runtime_text()}};
  toolchain::SourceFile all = {"programs.cpp", ""};
  std::set<std::string> headers;
  for (const Source& source : emitted) {
    all.text += source.text;
    headers.insert(source.headers.begin(), source.headers.end());
  }
  for (const std::string& header : headers)
    sources.headers.push_back({header, cpp::runtime_header(header)});
  if (emitted.size() == 1) {
    for (size_t i = 0; i < emitted[0].units.size(); ++i)
      sources.units.push_back(
          {i == 0 ? "program.cpp" : "kernels_" + std::to_string(i) + ".cpp", emitted[0].units[i]});
  } else {
    sources.units.push_back(std::move(all));
  }
  toolchain::CompileOptions build = {.flags = cpp::default_flags(), .progress = options.progress};
  build.flags.push_back("-mprefer-vector-width=512");
  build.flags.push_back("-pthread");
  build.flags.insert(build.flags.end(), options.flags.begin(), options.flags.end());
  return toolchain::Library::load(sources, build);
}

// Packs weights, and computes what depends on them alone.
void prepare(const std::vector<Array>& weights, Compiled::State& state) {
  const Source& source = state.source;
  std::vector<const void*> pointers;
  for (size_t i = 0; i < source.weights.size(); ++i) {
    Array array = source.constants[i];
    const size_t input = source.weights[i];
    const bool frozen = !array.defined() && state.plan.frozen[state.plan.routine.inputs[input]];
    if (frozen && input < weights.size() && weights[input].defined()) {
      state.ports.check(input, weights[input]);
      array = weights[input].contiguous();
    }
    if (frozen && !array.defined())
      throw UserError("[" + source.name + "] '" + state.ports.input_names[input] +
                      "' has no value to be compiled with");
    state.frozen.push_back(array);
    pointers.push_back(array.defined() ? array.data() : nullptr);
  }
  state.prepared = allocate_large(state.plan.prepared_bytes);
  const char* error = state.library.symbol<Prepare>(source.prepare_name)(
      pointers.data(), state.prepared.get(), state.threads);
  if (error != nullptr) throw UserError("[" + source.name + "] " + error);
}

}  // namespace

std::vector<Compiled> compile(const std::vector<Graph>& graphs,
                              const std::vector<std::string>& names,
                              const std::vector<std::vector<Array>>& weights,
                              const CompileOptions& options) {
  std::vector<Plan> plans;
  std::vector<Source> emitted;
  for (size_t i = 0; i < graphs.size(); ++i) {
    plans.push_back(plan_of(
        graphs[i], {.name = names[i], .results = options.results, .freeze = options.freeze}));
    emitted.push_back(emit(plans.back(), names[i]));
  }
  const toolchain::Library library = library_of(emitted, options);
  std::vector<Compiled> compiled;
  for (size_t i = 0; i < graphs.size(); ++i) {
    auto state =
        std::make_shared<Compiled::State>(library, std::move(emitted[i]), std::move(plans[i]));
    state->run = state->library.symbol<Run>(state->source.run_name);
    state->threads = options.threads > 0
                         ? options.threads
                         : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    state->ports = cpp::ports_of(graphs[i], state->source.name);
    prepare(weights.at(i), *state);
    compiled.emplace_back().state_ = std::move(state);
  }
  return compiled;
}

Compiled compile(const Graph& graph, const std::vector<Array>& weights,
                 const CompileOptions& options) {
  return compile({graph}, {options.name}, {weights}, options)[0];
}

const std::string& Compiled::source() const { return state_->source.text; }
const Plan& Compiled::plan() const { return state_->plan; }

Profile Compiled::profile(const std::vector<const void*>& inputs,
                          const std::vector<void*>& results) const {
  const State& state = *state_;
  Profile profile = state.source.timed;
  std::vector<int64_t> times(profile.size() + 1);
  call(inputs, results, cpp::kDefaultSeed, times.data());
  for (size_t i = 0; i < profile.size(); ++i) {
    profile[i].start = times[i];
    profile[i].end = times[i + 1];
  }
  return profile;
}

void Compiled::run(const std::vector<const void*>& inputs, const std::vector<void*>& results,
                   uint64_t seed) const {
  call(inputs, results, seed, nullptr);
}

void Compiled::call(const std::vector<const void*>& inputs, const std::vector<void*>& results,
                    uint64_t seed, int64_t* times) const {
  const State& state = *state_;
  const auto given = [&](size_t input) { return state.ports.given(input, inputs); };
  std::vector<const void*> arguments, weights;
  for (const size_t input : state.source.arguments) arguments.push_back(given(input));
  for (size_t i = 0; i < state.source.weights.size(); ++i)
    weights.push_back(state.frozen[i].defined() ? state.frozen[i].data()
                                                : given(state.source.weights[i]));
  fl::Generator generator(seed);
  std::shared_ptr<std::byte> arena = state.take_arena();
  const char* error =
      state.run(arguments.data(), weights.data(), results.data(), state.prepared.get(), arena.get(),
                &generator, times, state.threads);
  state.give_arena(std::move(arena));
  if (error != nullptr) throw UserError("[" + state.source.name + "] " + error);
}

std::vector<Array> Compiled::operator()(const std::vector<Array>& inputs, uint64_t seed) const {
  return state_->ports.call(
      inputs, [&](const auto& pointers, const auto& places) { run(pointers, places, seed); });
}

}  // namespace flashlight::mosaic
