#include "flashlight/mosaic/sized.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <utility>

#include "composit/io/log.h"
#include "composit/ir/error.h"
#include "flashlight/loops/sizes.h"
#include "flashlight/mosaic/backend.h"
#include "flashlight/mosaic/buffers.h"
#include "flashlight/mosaic/mosaic_code.h"
#include "flashlight/mosaic/plan_form.h"
#include "flashlight/mosaic/step_runner.h"
#include "flashlight/mosaic/step_texts.h"

namespace flashlight::mosaic {
namespace {

using composit::Compiled;
using composit::Graph;
using composit::UserError;

// How far from a size others are looked at that share texts with it.
constexpr int64_t kNear[] = {1, -1, 2, -2, 4, -4, 8, -8, 16, -16, 32, -32};

// A plan as steps.
struct Written {
  Plan plan;
  OpenProgram program;
};

bool has_sizes_of(const Plan& plan, const Graph& graph) {
  const composit::Ports ports = composit::ports_of(graph, plan.name);
  const auto same = [](const std::vector<composit::Type>& a, const std::vector<composit::Type>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
      return x.dtype == y.dtype && x.sizes == y.sizes;
    });
  };
  return same(plan.ports.inputs, ports.inputs) && same(plan.ports.results, ports.results);
}

class Sized : public composit::SizedCode {
 public:
  Sized(const std::vector<Graph>& shown, PlanOptions options, int threads,
        std::vector<std::string> flags)
      : options_(std::move(options)),
        threads_(thread_count(threads)),
        flags_(std::move(flags)),
        texts_(flags_) {
    make_forms(shown);
    std::vector<OpenProgram> all;
    for (const Graph& graph : shown) {
      all.push_back(written_at(graph).program);
      texts_.see(all.back());
    }
    // No call is to wait for a compiler that could have run before.
    std::vector<const OpenProgram*> programs;
    for (size_t i = 0; i < all.size(); ++i) {
      look_near(shown[i], all[i]);
      programs.push_back(&all[i]);
    }
    compile(programs);
  }

  Compiled at(const Graph& graph) override {
    if (is_closed_) return fixed(graph);
    const Written there = written_at(graph);
    check_buffers(there.plan);
    std::optional<ReadySteps> steps = found(there.program);
    if (!steps) {
      const std::lock_guard lock(mutex_);
      steps = texts_.find(there.program);  // another thread was faster
      if (!steps) {
        texts_.see(there.program);
        look_near(graph, there.program);
        compile({&there.program});
        if (!is_closed_) steps = texts_.find(there.program);
      }
    }
    return steps ? code_of(there, *steps) : fixed(graph);
  }
  std::optional<Compiled> at_once(const Graph& graph) override {
    if (is_closed_) return std::nullopt;  // a compiler has to run
    {
      const std::shared_lock lock(mutex_, std::try_to_lock);
      if (!lock) return std::nullopt;  // one is running
    }
    const Written there = written_at(graph);
    const std::optional<ReadySteps> steps = found(there.program);
    if (!steps) return std::nullopt;
    check_buffers(there.plan);
    return code_of(there, *steps);
  }
  size_t compilations() const override {
    const std::shared_lock lock(mutex_);
    return texts_.compilations() + fixed_;
  }

 private:
  std::optional<ReadySteps> found(const OpenProgram& program) const {
    const std::shared_lock lock(mutex_);
    return texts_.find(program);
  }

  // Some sizes have another form than others: rows of 512 numbers are set apart in memory. Without
  // a form, a size is planned from its graph.
  void make_forms(const std::vector<Graph>& shown) {
    std::vector<std::vector<PlanForm>> groups;
    for (const Graph& graph : shown) {
      const PlanForm form = form_of(graph, options_);
      const bool is_known = std::any_of(groups.begin(), groups.end(), [&](auto& group) {
        group.push_back(form);
        if (joined(group)) return true;
        group.pop_back();
        return false;
      });
      if (!is_known) groups.push_back({form});
    }
    for (const std::vector<PlanForm>& group : groups)
      if (group.size() > 1) forms_.push_back(*joined(group));
  }
  static std::optional<PlanForm> joined(const std::vector<PlanForm>& forms) {
    try {
      return form_of(forms);
    } catch (const UserError&) {
      return std::nullopt;
    }
  }

  Written written_at(const Graph& graph) const {
    if (std::optional<Plan> plan = bound_plan(graph)) return written(std::move(*plan));
    return written(plan_of(graph, options_));
  }
  static Written written(Plan plan) {
    OpenProgram program = open_steps(plan);
    return {std::move(plan), std::move(program)};
  }

  // The sizes that a form has names for; nothing where it has others.
  static std::optional<loops::SizeNumbers> sizes_of(const PlanForm& form, const Graph& graph) {
    std::vector<composit::Type> inputs;
    for (const composit::LazyTensor& input : graph.inputs()) inputs.push_back(input.type());
    try {
      return loops::sizes_given(form.program, inputs);
    } catch (const UserError&) {
      return std::nullopt;
    }
  }
  static std::optional<Plan> plan_at(const PlanForm& form, const loops::SizeNumbers& sizes) {
    try {
      return plan_of(bind_sizes(form, sizes));
    } catch (const UserError&) {  // outside of what was shown
      return std::nullopt;
    }
  }
  std::optional<Plan> bound_plan(const Graph& graph) const {
    for (const PlanForm& form : forms_) {
      const std::optional<loops::SizeNumbers> sizes = sizes_of(form, graph);
      std::optional<Plan> plan = sizes ? plan_at(form, *sizes) : std::nullopt;
      if (plan && has_sizes_of(*plan, graph)) return plan;
    }
    return std::nullopt;
  }

  // A text that was seen at one size has no data yet: other sizes show which numbers differ.
  void look_near(const Graph& graph, const OpenProgram& program) {
    for (const PlanForm& form : forms_) {
      const std::optional<loops::SizeNumbers> sizes = sizes_of(form, graph);
      if (!sizes) continue;
      for (const int64_t step : kNear)
        for (const auto& [name, number] : *sizes) {
          if (!texts_.has_news(program)) return;
          loops::SizeNumbers near = *sizes;
          near[name] += step;
          if (near[name] < 1) continue;
          if (std::optional<Plan> plan = plan_at(form, near)) texts_.see(open_steps(*plan));
        }
    }
  }

  void compile(const std::vector<const OpenProgram*>& programs) {
    try {
      texts_.compile(programs);
    } catch (const UserError& error) {
      // A type that data does not have: the text with constants is right, and slower to get.
      composit::log_warning("[mosaic] '" + options_.name +
                            "' is compiled for each size: " + error.what());
      is_closed_ = true;
    }
  }
  // The program of a size alone.
  Compiled fixed(const Graph& graph) {
    ++fixed_;
    return mosaic::compile({plan_of(graph, options_)}, threads_, flags_)[0];
  }

  Compiled code_of(const Written& at, const ReadySteps& steps) const {
    const auto source = std::make_shared<const Source>(at.program.source);
    // Only what it shows: the steps' own texts would be kept for each size.
    const auto text = [listing = StepListing(at.program, steps)] { return listing.text(); };
    return {std::make_shared<const MosaicCode>(
        at.plan.ports,
        std::make_shared<const Kernels>(Kernels{.runner = step_runner(at.program, steps, threads_),
                                                .source = source,
                                                .calls = CallPlan(at.plan),
                                                .arenas = arenas_,
                                                .text = text}))};
  }

  const PlanOptions options_;
  const int threads_;
  const std::vector<std::string> flags_;
  std::vector<PlanForm> forms_;  // each for a part of the sizes
  const std::shared_ptr<package::ArenaPool> arenas_ = std::make_shared<package::ArenaPool>();
  mutable std::shared_mutex mutex_;  // of the texts: while the compiler runs nobody reads them
  StepTexts texts_;
  std::atomic<bool> is_closed_ = false;  // no size is data
  std::atomic<size_t> fixed_ = 0;        // programs that were compiled for one size
};

}  // namespace

std::shared_ptr<composit::SizedCode> sized_code(const std::vector<Graph>& shown,
                                                const PlanOptions& options, int threads,
                                                const std::vector<std::string>& flags) {
  return std::make_shared<Sized>(shown, options, threads, flags);
}

}  // namespace flashlight::mosaic
