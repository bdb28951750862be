#include "flashlight/mosaic/backend.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "composit/ir/error.h"
#include "flashlight/mosaic/buffers.h"
#include "flashlight/mosaic/called_functions.h"
#include "flashlight/mosaic/emit.h"
#include "flashlight/runtime/random.hpp"

namespace flashlight::mosaic {

using composit::Array;
using composit::Graph;
using composit::UserError;
using Run = const char*(const void* const*, const void* const*, void* const*, const void*, void*,
                        void*, int64_t*, int);

struct Compiled::Code {
  toolchain::Library library;
  Source source;
  Plan plan;
  int threads = 1;
  Run* run = nullptr;
  // Arenas that no call uses.
  mutable std::mutex mutex = {};
  mutable std::vector<fl::Memory> arenas = {};

  Code(toolchain::Library made, Source text, Plan planned)
      : library(std::move(made)), source(std::move(text)), plan(std::move(planned)) {}

  bool may_update(size_t result) const {
    return plan.updates.contains(plan.routine.results[result]);
  }
  // What is written over an input, in memory of its own, is written over a copy of it.
  void copy_updated(const std::vector<const void*>& inputs,
                    const std::vector<void*>& results) const {
    const loops::Routine& routine = plan.routine;
    for (size_t i = 0; i < results.size(); ++i) {
      if (!may_update(i) || !plan.in_place.contains(routine.results[i])) continue;
      const ValueId value = plan.updates.at(routine.results[i]);
      const auto input = std::find(routine.inputs.begin(), routine.inputs.end(), value);
      const void* from =
          plan.ports.given(static_cast<size_t>(input - routine.inputs.begin()), inputs);
      if (from != results[i])
        std::memcpy(results[i], from, static_cast<size_t>(routine.values[value].type.nbytes()));
    }
  }

  fl::Memory take_arena() const {
    const std::lock_guard lock(mutex);
    if (arenas.empty()) return fl::allocate(static_cast<std::size_t>(plan.arena_bytes));
    fl::Memory arena = std::move(arenas.back());
    arenas.pop_back();
    return arena;
  }
  void give_arena(fl::Memory arena) const {
    const std::lock_guard lock(mutex);
    arenas.push_back(std::move(arena));
  }
};

// ---- compiling ----------------------------------------------------------------------------------

std::vector<Kernels> compile_kernels(std::vector<Plan> plans, const CompileOptions& options) {
  std::vector<Source> emitted;
  for (const Plan& plan : plans) {
    check_buffers(plan);
    emitted.push_back(emit(plan, plan.name));
  }
  const toolchain::Library library = build(emitted, options.flags, options.progress);
  std::vector<Kernels> all;
  for (size_t i = 0; i < plans.size(); ++i) {
    auto code =
        std::make_shared<Compiled::Code>(library, std::move(emitted[i]), std::move(plans[i]));
    code->run = code->library.symbol<Run>(code->source.run_name);
    code->threads = thread_count(options.threads);
    all.emplace_back().code_ = std::move(code);
  }
  return all;
}

std::vector<Kernels> compile_kernels(const std::vector<Graph>& graphs,
                                     const std::vector<std::string>& names,
                                     const CompileOptions& options) {
  std::vector<Plan> plans;
  PlanOptions planning = options.plan;
  for (size_t i = 0; i < graphs.size(); ++i) {
    planning.name = names[i];
    plans.push_back(plan_of(graphs[i], planning));
  }
  return compile_kernels(std::move(plans), options);
}

Kernels compile_kernels(const Graph& graph, const CompileOptions& options) {
  return compile_kernels({graph}, {options.plan.name}, options)[0];
}

Compiled compile(const Graph& graph, const std::vector<Array>& weights,
                 const CompileOptions& options) {
  return compile_kernels(graph, options).prepare(weights);
}

Compiled Kernels::prepare(const std::vector<Array>& weights) const {
  return {code_,
          mosaic::prepare(code_->plan, code_->source, code_->library, weights, code_->threads)};
}

bool Kernels::is_frozen(size_t input) const {
  const std::vector<size_t>& read = code_->source.weights;
  return loops::contains(read, input) && code_->plan.frozen[code_->plan.routine.inputs[input]];
}
bool Kernels::may_update(size_t result) const { return code_->may_update(result); }
bool Kernels::draws() const { return mosaic::draws(code_->plan); }
const std::string& Kernels::source() const { return code_->source.text; }

// ---- calls --------------------------------------------------------------------------------------

Compiled::Compiled(std::shared_ptr<const Code> code, Prepared prepared)
    : code_(std::move(code)), prepared_(std::make_shared<const Prepared>(std::move(prepared))) {}

const std::string& Compiled::source() const { return code_->source.text; }
const Plan& Compiled::plan() const { return code_->plan; }
bool Compiled::may_update(size_t result) const { return code_->may_update(result); }

Profile Compiled::profile(const std::vector<const void*>& inputs, const std::vector<void*>& results,
                          fl::Generator& generator) const {
  Profile profile = code_->source.timed;
  std::vector<int64_t> times(profile.size() + 1);
  call(inputs, results, generator, times.data());
  for (size_t i = 0; i < profile.size(); ++i) {
    profile[i].start = times[i];
    profile[i].end = times[i + 1];
  }
  return profile;
}

Profile Compiled::profile(const std::vector<const void*>& inputs,
                          const std::vector<void*>& results) const {
  fl::Generator generator(cpp::kDefaultSeed);
  return profile(inputs, results, generator);
}

void Compiled::run(const std::vector<const void*>& inputs, const std::vector<void*>& results,
                   uint64_t seed) const {
  fl::Generator generator(seed);
  run(inputs, results, generator);
}

void Compiled::run(const std::vector<const void*>& inputs, const std::vector<void*>& results,
                   fl::Generator& generator) const {
  call(inputs, results, generator, nullptr);
}

void Compiled::call(const std::vector<const void*>& inputs, const std::vector<void*>& results,
                    fl::Generator& generator, int64_t* times) const {
  const Source& source = code_->source;
  const auto given = [&](size_t input) { return code_->plan.ports.given(input, inputs); };
  std::vector<const void*> arguments, weights;
  for (const size_t input : source.arguments) arguments.push_back(given(input));
  for (size_t i = 0; i < source.weights.size(); ++i) {
    const Array& known = prepared_->weights[i];
    weights.push_back(known.defined()            ? known.data()
                      : source.is_read_by_run[i] ? given(source.weights[i])
                                                 : nullptr);
  }
  code_->copy_updated(inputs, results);
  fl::Memory arena = code_->take_arena();
  const char* error =
      code_->run(arguments.data(), weights.data(), results.data(), prepared_->memory.get(),
                 arena.get(), &generator, times, code_->threads);
  code_->give_arena(std::move(arena));
  if (error != nullptr) throw UserError("[" + source.name + "] " + error);
}

std::vector<Array> Compiled::operator()(const std::vector<Array>& inputs, uint64_t seed) const {
  return code_->plan.ports.call(
      inputs, [&](const auto& pointers, const auto& places) { run(pointers, places, seed); });
}

}  // namespace flashlight::mosaic
