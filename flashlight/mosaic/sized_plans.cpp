#include "flashlight/mosaic/sized_plans.h"

#include <algorithm>
#include <mutex>

#include "composit/ir/error.h"
#include "flashlight/loops/sizes.h"
#include "flashlight/mosaic/buffers.h"

namespace flashlight::mosaic {
namespace {

using composit::Graph;
using composit::UserError;

// How far from a size others are looked at that share texts with it.
constexpr int64_t kNear[] = {1, -1, 2, -2, 4, -4, 8, -8, 16, -16, 32, -32};

bool has_sizes_of(const Plan& plan, const Graph& graph) {
  const composit::Ports ports = composit::ports_of(graph, plan.name);
  const auto same = [](const std::vector<composit::Type>& a, const std::vector<composit::Type>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
      return x.dtype == y.dtype && x.sizes == y.sizes;
    });
  };
  return same(plan.ports.inputs, ports.inputs) && same(plan.ports.results, ports.results);
}

std::optional<PlanForm> joined(const std::vector<PlanForm>& forms) {
  try {
    return form_of(forms);
  } catch (const UserError&) {
    return std::nullopt;
  }
}

// The sizes that a form has names for; nothing where it has others.
std::optional<loops::SizeNumbers> sizes_of(const PlanForm& form, const Graph& graph) {
  std::vector<composit::Type> inputs;
  for (const composit::LazyTensor& input : graph.inputs()) inputs.push_back(input.type());
  try {
    return loops::sizes_given(form.program, inputs);
  } catch (const UserError&) {
    return std::nullopt;
  }
}
std::optional<Plan> plan_at(const PlanForm& form, const loops::SizeNumbers& sizes) {
  try {
    return plan_of(bind_sizes(form, sizes));
  } catch (const UserError&) {  // outside of what was shown
    return std::nullopt;
  }
}

}  // namespace

SizedPlans::SizedPlans(const std::vector<Graph>& shown, PlanOptions options,
                       std::vector<std::string> flags)
    : options_(std::move(options)), texts_(std::move(flags)) {
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

void SizedPlans::compile(const std::vector<const OpenProgram*>& programs) {
  try {
    texts_.compile(programs);
  } catch (const UserError& error) {
    fault_ = error.what();
  }
}

std::optional<ReadySteps> SizedPlans::found(const OpenProgram& program) const {
  const std::shared_lock lock(mutex_);
  return fault_.empty() ? texts_.find(program) : std::nullopt;
}

std::optional<SizedPlan> SizedPlans::at(const Graph& graph) {
  Written there = written_at(graph);
  check_buffers(there.plan);
  std::optional<ReadySteps> steps = found(there.program);
  if (!steps) {
    const std::lock_guard lock(mutex_);
    if (fault_.empty()) steps = texts_.find(there.program);  // another thread was faster
    if (!steps && fault_.empty()) {
      texts_.see(there.program);
      look_near(graph, there.program);
      compile({&there.program});
      if (fault_.empty()) steps = texts_.find(there.program);
    }
  }
  if (!steps) return std::nullopt;
  return SizedPlan{std::move(there.plan), std::move(there.program), std::move(*steps)};
}

std::optional<SizedPlan> SizedPlans::at_once(const Graph& graph) {
  {
    const std::shared_lock lock(mutex_, std::try_to_lock);
    if (!lock || !fault_.empty()) return std::nullopt;  // the compiler runs, or has to
  }
  Written there = written_at(graph);
  std::optional<ReadySteps> steps = found(there.program);
  if (!steps) return std::nullopt;
  check_buffers(there.plan);
  return SizedPlan{std::move(there.plan), std::move(there.program), std::move(*steps)};
}

std::string SizedPlans::fault() const {
  const std::shared_lock lock(mutex_);
  return fault_;
}

size_t SizedPlans::compilations() const {
  const std::shared_lock lock(mutex_);
  return texts_.compilations();
}

// Some sizes have another form than others: rows of 512 numbers are set apart in memory. Without
// a form, a size is planned from its graph.
void SizedPlans::make_forms(const std::vector<Graph>& shown) {
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
SizedPlans::Written SizedPlans::written_at(const Graph& graph) const {
  std::optional<Plan> plan = bound_plan(graph);
  if (!plan) plan = plan_of(graph, options_);
  OpenProgram program = open_steps(*plan);
  return {std::move(*plan), std::move(program)};
}

std::optional<Plan> SizedPlans::bound_plan(const Graph& graph) const {
  for (const PlanForm& form : forms_) {
    const std::optional<loops::SizeNumbers> sizes = sizes_of(form, graph);
    std::optional<Plan> plan = sizes ? plan_at(form, *sizes) : std::nullopt;
    if (plan && has_sizes_of(*plan, graph)) return plan;
  }
  return std::nullopt;
}

// A text that was seen at one size has no data yet: other sizes show which numbers differ.
void SizedPlans::look_near(const Graph& graph, const OpenProgram& program) {
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

}  // namespace flashlight::mosaic
