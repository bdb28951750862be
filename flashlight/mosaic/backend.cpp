#include "flashlight/mosaic/backend.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include "composit/ir/error.h"
#include "flashlight/backends/mosaic.h"
#include "flashlight/backends/profile.h"
#include "flashlight/backends/registry.h"
#include "flashlight/mosaic/buffers.h"
#include "flashlight/mosaic/emit.h"
#include "flashlight/mosaic/offline.h"
#include "flashlight/mosaic/prepare.h"
#include "flashlight/package/arena_pool.h"
#include "flashlight/package/backend.h"

namespace flashlight::mosaic {
namespace {

using composit::Array;
using composit::Buffers;
using composit::Compiled;
using composit::CompileOptions;
using composit::Graph;
using composit::InputBuffers;
using composit::UserError;
using Run = const char*(const void* const*, const void* const*, void* const*, const void*, void*,
                        void*, int64_t*, int);

// The part of a compiled model that is the same for all sets of weights.
struct Kernels {
  toolchain::Library library;
  Source source;
  Plan plan;
  int threads;
  Run* run;
  package::ArenaPool arenas;

  Kernels(toolchain::Library made, Source text, Plan planned, int thread_count)
      : library(std::move(made)),
        source(std::move(text)),
        plan(std::move(planned)),
        threads(thread_count),
        run(library.symbol<Run>(source.run_name)),
        arenas(static_cast<std::size_t>(plan.arena_bytes)) {}

  bool may_update(size_t result) const {
    return plan.updates.contains(plan.routine.results[result]);
  }
  // A result that is written over an input in memory of its own is written over a copy of the
  // input.
  void copy_updated(InputBuffers inputs, Buffers results) const {
    const loops::Routine& routine = plan.routine;
    for (size_t i = 0; i < results.size(); ++i) {
      if (!may_update(i) || !plan.in_place.contains(routine.results[i])) continue;
      const ValueId value = plan.updates.at(routine.results[i]);
      const auto input = std::find(routine.inputs.begin(), routine.inputs.end(), value);
      const void* from =
          plan.ports.given(static_cast<size_t>(input - routine.inputs.begin()), inputs);
      if (from != results[i].data)
        std::memcpy(results[i].data, from,
                    static_cast<size_t>(routine.values[value].type.nbytes()));
    }
  }
};

class MosaicCode : public package::GeneratedCode {
 public:
  explicit MosaicCode(std::shared_ptr<const Kernels> kernels, std::optional<Prepared> prepared = {})
      : GeneratedCode(kernels->plan.ports, {kernels, &kernels->source}),
        kernels_(std::move(kernels)),
        prepared_(std::move(prepared)) {}

  bool is_frozen(size_t input) const override {
    const Plan& plan = kernels_->plan;
    return loops::contains(kernels_->source.weights, input) &&
           plan.frozen[plan.routine.inputs[input]];
  }
  bool may_update(size_t result) const override { return kernels_->may_update(result); }

  // Weights that calls read as they are stay shared with the caller. Those that are packed are not
  // needed any more.
  std::shared_ptr<const composit::Code> prepare(const std::vector<Array>& weights) const override {
    return std::make_shared<const MosaicCode>(
        kernels_, mosaic::prepare(kernels_->plan, kernels_->source, kernels_->library, weights,
                                  kernels_->threads));
  }

  void run(InputBuffers inputs, Buffers results, fl::Generator* generator) const override {
    run_timed(inputs, results, generator, nullptr);
  }
  Profile profile(InputBuffers inputs, Buffers results, fl::Generator* generator) const override {
    Profile profile = kernels_->source.timed;
    std::vector<int64_t> times(profile.size() + 1);
    run_timed(inputs, results, generator, times.data());
    for (size_t i = 0; i < profile.size(); ++i) {
      profile[i].start = times[i];
      profile[i].end = times[i + 1];
    }
    return profile;
  }

  const Plan& plan() const { return kernels_->plan; }

 private:
  void run_timed(InputBuffers inputs, Buffers results, fl::Generator* generator,
                 int64_t* times) const {
    COMPOSIT_ASSERT(prepared_, "code is prepared before it is run");
    call(inputs, results, generator, [&](const package::Pointers& at) {
      kernels_->copy_updated(inputs, results);
      const package::ArenaPool::Loan arena = kernels_->arenas.take();
      return kernels_->run(at.arguments.data(), at.weights.data(), at.results.data(),
                           prepared_->memory.get(), arena.get(), at.generator, times,
                           kernels_->threads);
    });
  }
  const void* weight(size_t place, InputBuffers inputs) const override {
    const Array& known = prepared_->weights[place];
    if (known.defined()) return known.data();
    const Source& source = kernels_->source;
    return source.is_read_by_run[place] ? ports().given(source.weights[place], inputs) : nullptr;
  }

  std::shared_ptr<const Kernels> kernels_;
  std::optional<Prepared> prepared_;
};

// ---- options ------------------------------------------------------------------------------------

Mosaic typed(const CompileOptions& options) {
  Mosaic typed = Mosaic::fields().typed(options.options);
  if (typed.threads < 0 || typed.threads > std::numeric_limits<int>::max())
    throw UserError("[mosaic] option 'threads': expected a number of threads, or 0, received " +
                    std::to_string(typed.threads));
  return typed;
}

PlanOptions planning_of(const Mosaic& options, const CompileOptions& all) {
  return {.name = all.name,
          .results = all.results,
          .freeze = options.freeze && all.may_prepare,
          .winograd = options.winograd,
          .strassen = options.strassen,
          .update_inputs = all.may_update,
          .choices = parse_choices(options.choices)};
}

class MosaicBackend : public package::GeneratingBackend {
 public:
  std::string name() const override { return "mosaic"; }
  std::string help() const override { return "tiled kernels in threads, to be fast"; }
  const composit::OptionTable& options() const override { return Mosaic::fields().table(); }

 protected:
  Compiled make(const Graph& graph, const CompileOptions& options) const override {
    const Mosaic chosen = typed(options);
    const Compiled made = mosaic::compile({plan_of(graph, planning_of(chosen, options))},
                                          static_cast<int>(chosen.threads), options.flags)[0];
    // Otherwise there is nothing to wait for.
    return options.may_prepare ? made : made->prepare({});
  }
  std::string write(const Graph& graph, const CompileOptions& options) const override {
    return emit(plan_of(graph, planning_of(typed(options), options)), options.name).text;
  }
  std::string describe_plan(const Graph& graph, const CompileOptions& options) const override {
    return print(mosaic::plan_of(graph, planning_of(typed(options), options)));
  }
  void write_folder(const composit::SavedCapture& capture, const std::string& folder,
                    const CompileOptions& options) const override {
    const Mosaic chosen = typed(options);
    PlanOptions planning = planning_of(chosen, options);
    planning.freeze = true;
    mosaic::write_program(capture, folder,
                          {.plan = std::move(planning),
                           .threads = static_cast<int>(chosen.threads),
                           .march = chosen.march});
  }
};

const BackendRegistration kRegistration(backend());

}  // namespace

const composit::Backend& backend() {
  static const MosaicBackend backend;
  return backend;
}

std::vector<Compiled> compile(std::vector<Plan> plans, int threads,
                              const std::vector<std::string>& flags) {
  std::vector<Source> emitted;
  for (const Plan& plan : plans) {
    check_buffers(plan);
    emitted.push_back(emit(plan, plan.name));
  }
  const toolchain::Library library = build(emitted, flags);
  std::vector<Compiled> all;
  for (size_t i = 0; i < plans.size(); ++i)
    all.emplace_back(std::make_shared<const MosaicCode>(std::make_shared<const Kernels>(
        library, std::move(emitted[i]), std::move(plans[i]), thread_count(threads))));
  return all;
}

const Plan& plan_of(const composit::Code& code) {
  const auto* const made = dynamic_cast<const MosaicCode*>(&code);
  COMPOSIT_ASSERT(made != nullptr, "code of mosaic");
  return made->plan();
}

}  // namespace flashlight::mosaic
