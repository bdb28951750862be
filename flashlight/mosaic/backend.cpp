#include "flashlight/mosaic/backend.h"

#include <limits>

#include "composit/ir/error.h"
#include "flashlight/backends/mosaic.h"
#include "flashlight/backends/profile.h"
#include "flashlight/backends/registry.h"
#include "flashlight/mosaic/buffers.h"
#include "flashlight/mosaic/emit.h"
#include "flashlight/mosaic/mosaic_code.h"
#include "flashlight/mosaic/offline.h"
#include "flashlight/mosaic/prepare.h"
#include "flashlight/mosaic/sized.h"
#include "flashlight/mosaic/written_values.h"
#include "flashlight/toolchain/isa.h"

namespace flashlight::mosaic {
namespace {

using composit::Compiled;
using composit::CompileOptions;
using composit::Graph;
using composit::UserError;

// ---- options ------------------------------------------------------------------------------------

Mosaic typed(const CompileOptions& options) {
  Mosaic typed = Mosaic::fields().typed(options.options);
  if (typed.threads < 0 || typed.threads > std::numeric_limits<int>::max())
    throw UserError("[mosaic] option 'threads': expected a number of threads, or 0, received " +
                    std::to_string(typed.threads));
  return typed;
}

composit::DType format_of(const std::string& option, const std::string& received) {
  for (const composit::DType one : {composit::DType::float32, composit::DType::bfloat16})
    if (received == composit::name(one)) return one;
  throw UserError("[mosaic] option '" + option + "': expected float32 or bfloat16, received '" +
                  received + "'");
}

PlanOptions planning_of(const Mosaic& options, const CompileOptions& all) {
  return {.name = all.name,
          .results = all.results,
          .freeze = options.freeze && all.may_prepare,
          .winograd = options.winograd,
          .strassen = options.strassen,
          .products = format_of("products", options.products),
          .values = format_of("values", options.values),
          .has_matrix_unit = toolchain::host_has_matrix_unit(),
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
  std::shared_ptr<composit::SizedCode> make_sized(const std::vector<composit::SizedGraph>& shown,
                                                  const CompileOptions& options) const override {
    const Mosaic chosen = typed(options);
    std::vector<composit::Graph> graphs;
    for (const composit::SizedGraph& one : shown) graphs.push_back(one.graph);
    return sized_code(graphs, planning_of(chosen, options), static_cast<int>(chosen.threads),
                      options.flags);
  }
  std::string write(const Graph& graph, const CompileOptions& options) const override {
    return emit(plan_of(graph, planning_of(typed(options), options)), options.name).text;
  }
  std::string describe_plan(const Graph& graph, const CompileOptions& options) const override {
    return print(mosaic::plan_of(graph, planning_of(typed(options), options)));
  }
  std::vector<composit::WrittenValue> list_written(const Graph& graph,
                                                   const CompileOptions& options) const override {
    return mosaic::written_values(graph, planning_of(typed(options), options));
  }
  void write_folder(const composit::SavedCapture& capture, const std::string& folder,
                    const CompileOptions& options) const override {
    mosaic::write_program(capture, folder, program_options(options));
  }
  void write_sized_folder(const composit::SavedCapture& capture,
                          const composit::SizedGraphs& graphs, const std::string& folder,
                          const CompileOptions& options) const override {
    mosaic::write_program(capture, graphs, folder, program_options(options));
  }

 private:
  static ProgramOptions program_options(const CompileOptions& options) {
    const Mosaic chosen = typed(options);
    PlanOptions planning = planning_of(chosen, options);
    planning.freeze = true;
    return {.plan = std::move(planning),
            .threads = static_cast<int>(chosen.threads),
            .march = chosen.march};
  }
};

const BackendRegistration kRegistration(backend());

}  // namespace

const composit::Backend& backend() {
  static const MosaicBackend backend;
  return backend;
}

PlanOptions plan_options(const CompileOptions& options) {
  CompileOptions all = options;
  all.options = composit::complete(options.options, Mosaic::fields().table(),
                                   composit::Option::Use::calls, "mosaic");
  return planning_of(typed(all), all);
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
  for (size_t i = 0; i < plans.size(); ++i) {
    const auto source = std::make_shared<const Source>(std::move(emitted[i]));
    const auto runner =
        library_runner(library, *source, {plans[i].prepared_bytes, plans[i].preparation_bytes},
                       thread_count(threads));
    const auto plan = std::make_shared<const Plan>(std::move(plans[i]));
    all.emplace_back(std::make_shared<const MosaicCode>(
        plan->ports,
        std::make_shared<const Kernels>(Kernels{.runner = runner,
                                                .source = source,
                                                .calls = CallPlan(*plan),
                                                .arenas = std::make_shared<package::ArenaPool>(),
                                                .plan = plan})));
  }
  return all;
}

const Plan& plan_of(const composit::Code& code) {
  const auto* const made = dynamic_cast<const MosaicCode*>(&code);
  COMPOSIT_ASSERT(made != nullptr, "code of mosaic");
  COMPOSIT_ASSERT(made->plan() != nullptr, "code of one graph");
  return *made->plan();
}

}  // namespace flashlight::mosaic
