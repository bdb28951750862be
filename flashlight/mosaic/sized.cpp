#include "flashlight/mosaic/sized.h"

#include <atomic>
#include <optional>
#include <utility>

#include "composit/io/log.h"
#include "flashlight/mosaic/backend.h"
#include "flashlight/mosaic/mosaic_code.h"
#include "flashlight/mosaic/sized_plans.h"
#include "flashlight/mosaic/step_runner.h"

namespace flashlight::mosaic {
namespace {

using composit::Compiled;
using composit::Graph;

class Sized : public composit::SizedCode {
 public:
  Sized(const std::vector<Graph>& shown, PlanOptions options, int threads,
        std::vector<std::string> flags)
      : options_(std::move(options)),
        threads_(thread_count(threads)),
        flags_(std::move(flags)),
        plans_(shown, options_, flags_) {
    if (!plans_.fault().empty())
      composit::log_warning("[mosaic] '" + options_.name +
                            "' is compiled for each size: " + plans_.fault());
  }

  Compiled at(const Graph& graph) override {
    const std::optional<SizedPlan> plan = plans_.fault().empty() ? plans_.at(graph) : std::nullopt;
    return plan ? code_of(*plan) : fixed(graph);
  }
  std::optional<Compiled> at_once(const Graph& graph) override {
    const std::optional<SizedPlan> plan = plans_.at_once(graph);
    return plan ? std::optional(code_of(*plan)) : std::nullopt;
  }
  size_t compilations() const override { return plans_.compilations() + fixed_; }

 private:
  // The program of a size alone: the text with constants is right, and slower to get.
  Compiled fixed(const Graph& graph) {
    ++fixed_;
    return mosaic::compile({plan_of(graph, options_)}, threads_, flags_)[0];
  }

  Compiled code_of(const SizedPlan& at) const {
    const auto source = std::make_shared<const Source>(at.program.source);
    // Only what it shows: the steps' own texts would be kept for each size.
    const auto text = [listing = StepListing(at.program, at.steps)] { return listing.text(); };
    return {std::make_shared<const MosaicCode>(
        at.plan.ports, std::make_shared<const Kernels>(
                           Kernels{.runner = step_runner(at.program, at.steps, threads_),
                                   .source = source,
                                   .calls = CallPlan(at.plan),
                                   .arenas = arenas_,
                                   .text = text}))};
  }

  const PlanOptions options_;
  const int threads_;
  const std::vector<std::string> flags_;
  SizedPlans plans_;
  const std::shared_ptr<package::ArenaPool> arenas_ = std::make_shared<package::ArenaPool>();
  std::atomic<size_t> fixed_ = 0;  // programs that were compiled for one size
};

}  // namespace

std::shared_ptr<composit::SizedCode> sized_code(const std::vector<Graph>& shown,
                                                const PlanOptions& options, int threads,
                                                const std::vector<std::string>& flags) {
  return std::make_shared<Sized>(shown, options, threads, flags);
}

}  // namespace flashlight::mosaic
