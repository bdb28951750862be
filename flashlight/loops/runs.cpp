#include "flashlight/loops/runs.h"

#include <algorithm>
#include <optional>

namespace flashlight::loops {
namespace {

// A loop must be worth it although the first and the last call stand outside of it.
constexpr size_t kLeastCalls = 4;

using Chain = std::vector<std::pair<size_t, size_t>>;

class Finder {
 public:
  Finder(const Routine& function, const Table<FunctionId, Routine>& functions)
      : function_(function), functions_(functions), uses_(function.values.size()) {
    for (const Step& step : function.steps)
      for (ValueId value : reads(step)) ++uses_[value];
  }

  std::vector<Run> run() const {
    std::vector<Run> runs;
    for (StepId step; step < function_.steps.size(); ++step) {
      Run run = from(step);
      if (run.count < kLeastCalls) continue;
      step += run.count - 1;
      runs.push_back(std::move(run));
    }
    return runs;
  }

 private:
  const Invocation* call(StepId step) const {
    return step < function_.steps.size() ? std::get_if<Invocation>(&function_.steps[step])
                                         : nullptr;
  }

  Run from(StepId step) const {
    Run run = {step, 1, {}};
    if (call(step) == nullptr || !call(step + 1)) return run;
    const std::optional<Chain> chain = chain_between(*call(step), call(step + 1));
    if (!chain) return run;
    run.chain = *chain;
    while (chain_between(*call(step + (run.count - 1)), call(step + run.count)) == chain)
      ++run.count;
    return run;
  }

  // Pairs arguments of `next` with results of `before`; nothing if `next` ends the run.
  std::optional<Chain> chain_between(const Invocation& before, const Invocation* next) const {
    if (next == nullptr || next->function != before.function) return std::nullopt;
    const Routine& callee = functions_[before.function];
    Chain chain;
    for (size_t i = 0; i < before.arguments.size(); ++i) {
      if (callee.values[callee.inputs[i]].role == Role::weight) continue;
      const auto result =
          std::find(before.results.begin(), before.results.end(), next->arguments[i]);
      if (result != before.results.end())
        chain.emplace_back(i, static_cast<size_t>(result - before.results.begin()));
      else if (next->arguments[i] != before.arguments[i])
        return std::nullopt;
    }
    for (ValueId value : before.results)
      if (function_.values[value].role != Role::temporary || uses_[value] != 1) return std::nullopt;
    return chain.size() == before.results.size() ? std::optional(chain) : std::nullopt;
  }

  const Routine& function_;
  const Table<FunctionId, Routine>& functions_;
  std::vector<size_t> uses_;  // by value: reading steps
};

}  // namespace

std::vector<Run> runs_of(const Routine& function, const Table<FunctionId, Routine>& functions) {
  return Finder(function, functions).run();
}

}  // namespace flashlight::loops
