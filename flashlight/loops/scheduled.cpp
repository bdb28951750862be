#include "flashlight/loops/scheduled.h"

#include <algorithm>

#include "flashlight/loops/arena.h"

namespace flashlight::loops {
namespace {

// Arrays up to these sizes are on the stack: inside of a loop, and elsewhere.
constexpr int64_t kMaxStackBytes = 16 << 10, kMaxSmallBytes = 256;

void set_item(const Item& item, size_t number, std::map<StepId, size_t>& item_of) {
  if (!item.is_loop()) item_of[item.step] = number;
  for (const Item& inner : item.body) set_item(inner, number, item_of);
}

class MemoryPlanner {
 public:
  MemoryPlanner(const Routine& function, ScheduledRoutine& result)
      : function_(function), result_(result), touching_(function.values.size()) {
    for (size_t item = 0; item < items().size(); ++item) set_item(items()[item], item, item_of_);
    for (const StepId step : function.steps.ids())
      for (const ValueIds& values : {reads(function.steps[step]), writes(function.steps[step])})
        for (const ValueId value : values) touching_[value].push_back(step);
  }

  void run() {
    find_turns();
    for (const ValueId value : function_.values.ids()) result_.is_local.push_back(is_local(value));
    place_arena();
  }

 private:
  const std::vector<Item>& items() const { return result_.schedule.items; }
  int64_t bytes(ValueId value) const {
    return result_.schedule.storage[value].elements *
           static_cast<int64_t>(composit::item_size(function_.values[value].type.dtype));
  }

  void find_turns() {
    for (const Run& run : result_.runs)
      for (size_t result = 0; result < run.chain.size(); ++result)
        for (size_t k = 0; k + 1 < run.count; ++k)
          result_.turns[results(run.first + k)[result]] = {results(run.first)[result],
                                                           run.first + (run.count - 1)};
  }
  const ValueIds& results(StepId call) const {
    return std::get<Invocation>(function_.steps[call]).results;
  }

  bool is_local(ValueId value) const {
    const Storage& storage = result_.schedule.storage[value];
    if (function_.values[value].role != Role::temporary) return false;
    if (storage.elements == 1 && !std::count(storage.kept.begin(), storage.kept.end(), true))
      return true;
    const bool in_loop = !storage.home.empty() || function_.is_loop_body;
    return bytes(value) <= (in_loop ? kMaxStackBytes : kMaxSmallBytes);
  }

  bool is_written(ValueId value) const {
    return std::any_of(touching_[value].begin(), touching_[value].end(),
                       [&](StepId step) { return contains(writes(function_.steps[step]), value); });
  }
  bool has_place(ValueId value) const {
    const auto turns = result_.turns.find(value);
    return function_.values[value].role == Role::temporary && !result_.is_local[value] &&
           is_written(value) && (turns == result_.turns.end() || turns->second.array == value);
  }

  Lifetime lifetime(ValueId value) const {
    Lifetime life = {bytes(value), items().size(), 0};
    for (const StepId step : touching_[value]) {
      life.first = std::min(life.first, item_of_.at(step));
      life.last = std::max(life.last, item_of_.at(step));
    }
    if (const auto turns = result_.turns.find(value); turns != result_.turns.end()) {
      life.bytes *= 2;
      life.last = item_of_.at(turns->second.last_step);
    }
    return life;
  }

  void place_arena() {
    std::vector<Lifetime> lifetimes;
    ValueIds values;
    for (const ValueId value : function_.values.ids()) {
      if (!has_place(value)) continue;
      lifetimes.push_back(lifetime(value));
      values.push_back(value);
    }
    const std::vector<int64_t> offsets = place(lifetimes);
    result_.offsets.resize(function_.values.size());
    for (size_t i = 0; i < values.size(); ++i) result_.offsets[values[i]] = offsets[i];
    result_.own_bytes = arena_size(lifetimes, offsets);
  }

  const Routine& function_;
  ScheduledRoutine& result_;
  std::map<StepId, size_t> item_of_;  // by step: the outermost item that has it
  Table<ValueId, StepIds> touching_;
};

Needs needs_of(const Routine& function, int64_t own_bytes,
               const Table<FunctionId, ScheduledRoutine>& scheduled) {
  Needs needs = {.has_arena = own_bytes > 0};
  int64_t most = 0;
  for (const Step& step : function.steps) {
    for (const FunctionId callee : callees(step)) {
      const Needs& called = scheduled[callee].needs;
      most = std::max(most, called.arena_bytes);
      needs.has_arena |= called.has_arena;
      needs.has_generator |= called.has_generator;
    }
    const auto* runtime = std::get_if<RuntimeCall>(&step);
    needs.has_generator |= runtime != nullptr && runtime->draws;
  }
  needs.arena_bytes = own_bytes + most;
  return needs;
}

}  // namespace

ScheduledRoutine scheduled_routine(const Routine& function,
                                   const Table<FunctionId, Routine>& functions,
                                   const Table<FunctionId, ScheduledRoutine>& scheduled) {
  return scheduled_routine(function, functions, scheduled, schedule_of(function));
}

ScheduledRoutine scheduled_routine(const Routine& function,
                                   const Table<FunctionId, Routine>& functions,
                                   const Table<FunctionId, ScheduledRoutine>& scheduled,
                                   Schedule schedule) {
  ScheduledRoutine result;
  result.schedule = std::move(schedule);
  result.runs = runs_of(function, functions);
  MemoryPlanner(function, result).run();
  result.needs = needs_of(function, result.own_bytes, scheduled);
  return result;
}

}  // namespace flashlight::loops
