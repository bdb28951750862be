#include "flashlight/mosaic/buffers.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <optional>
#include <set>

#include "composit/ir/error.h"
#include "flashlight/loops/statement.h"
#include "flashlight/mosaic/describe.h"
#include "flashlight/mosaic/early_checks.h"
#include "flashlight/mosaic/in_place.h"
#include "flashlight/mosaic/kernels/loops.h"

namespace flashlight::mosaic {
namespace {

constexpr int64_t kLineBytes = 64;

std::string name_of(const Plan& plan, ValueId value) { return value_names(plan.routine)[value]; }
int64_t bytes(const Plan& plan, ValueId value) { return plan.routine.values[value].type.nbytes(); }

void find_homes(Plan& plan) {
  const size_t count = plan.routine.values.size();
  Table<ValueId, size_t> kernels(count, 0);
  for (const auto* list : {&plan.prepare, &plan.run})
    for (const Kernel& kernel : *list) {
      std::set<ValueId> once;
      for (const ValueId value : touched(plan, kernel))
        if (once.insert(value).second) ++kernels[value];
    }
  plan.homes.assign(count, Home::caller);
  for (const ValueId i : plan.routine.values.ids()) {
    if (plan.routine.values[i].role != loops::Role::temporary) continue;
    plan.homes[i] = plan.frozen[i] ? Home::prepared : kernels[i] <= 1 ? Home::kernel : Home::arena;
  }
  // Nobody reads their results: in memory of the kernel they would be unused variables.
  for (const loops::Step& step : plan.routine.steps)
    if (is_early_check(step))
      for (const ValueId value : loops::writes(step)) plan.homes[value] = Home::arena;
}

// Gives the temporaries of a kernel that one thread runs alone memory in the arena.
void add_scratch(Plan& plan) {
  for (Kernel& kernel : plan.run) {
    if (kernel.form != &kLoops || kernel.split.parts > 0) continue;
    const int64_t size = data_of<LoopsData>(kernel).scheduled.needs.arena_bytes;
    if (size == 0) continue;
    kernel.scratch = plan.routine.values.add({composit::tensor_type(composit::DType::uint8, {size}),
                                              loops::Role::temporary,
                                              "scratch",
                                              {}});
    plan.homes.push_back(Home::arena);
  }
}

using Lifetimes = Table<ValueId, std::optional<loops::Lifetime>>;
// By value, during these kernels; nothing for one that has another home.
Lifetimes lifetimes(const Plan& plan, const std::vector<Kernel>& kernels, Home home) {
  Lifetimes lives(plan.routine.values.size());
  for (size_t kernel = 0; kernel < kernels.size(); ++kernel)
    for (const ValueId value : touched(plan, kernels[kernel])) {
      if (plan.homes[value] != home || bytes(plan, value) == 0) continue;
      if (!lives[value]) lives[value] = {bytes(plan, value), kernel, kernel};
      lives[value]->last = kernel;
    }
  return lives;
}
Lifetimes lifetimes(const Plan& plan) { return lifetimes(plan, plan.run, Home::arena); }

bool has_own_place(const Plan& plan, ValueId value) {
  const auto choice = plan.choices.find(value);
  return choice != plan.choices.end() && (choice->second.own_place || choice->second.offset);
}

// A value that is first written by the kernel that is the last to read another one takes its place,
// where the form of the kernel allows it.
void find_in_place(Plan& plan) {
  const auto lives = lifetimes(plan);
  std::set<ValueId> taken;
  for (size_t number = 0; number < plan.run.size(); ++number) {
    const Kernel& kernel = plan.run[number];
    const ValueIds values = touched(plan, kernel);
    for (const ValueId result : values) {
      if (!lives[result] || lives[result]->first != number || plan.in_place.contains(result) ||
          has_own_place(plan, result))
        continue;
      for (const ValueId operand : values) {
        const bool dies = lives[operand] && lives[operand]->last == number &&
                          lives[operand]->first < number && !taken.contains(operand);
        if (!dies || !may_overwrite(plan, kernel, result, operand)) continue;
        plan.in_place[result] = operand;
        taken.insert(operand);
        break;
      }
    }
  }
}

// True if this kernel may throw on bad data, where these indices are in range. No memory of the
// caller's may have been written before it.
bool may_refuse(const Plan& plan, const Kernel& kernel, const std::vector<DataIndex>& checked) {
  return std::any_of(kernel.steps.begin(), kernel.steps.end(), [&](StepId step) {
    return refuses(plan.routine, plan.routine.steps[step], checked);
  });
}

// Lets `result` be written in the memory of the caller's `input`, if nobody reads that any more,
// but for a kernel that reads each element before it writes the one in its place: whether that is
// so.
bool update(Plan& plan, ValueId result, ValueId input) {
  const composit::Type &a = plan.routine.values[result].type, &b = plan.routine.values[input].type;
  if (a.dtype != b.dtype || a.sizes != b.sizes) return false;
  bool is_written = false;
  std::vector<DataIndex> checked;
  for (const Kernel& kernel : plan.run) {
    const ValueIds values = touched(plan, kernel);
    const bool reads = loops::contains(values, input),
               writes = !is_written && loops::contains(values, result);
    is_written |= writes;
    if (is_written && may_refuse(plan, kernel, checked)) return false;
    for (const StepId step : kernel.steps)
      for (DataIndex& index : checked_by(plan.routine, plan.routine.steps[step]))
        checked.push_back(std::move(index));
    if (!is_written || !reads) continue;
    plan.in_place[result] = input;
    if (writes && only_copies(plan.routine, kernel.steps, result, input)) continue;
    if (!writes || !may_overwrite(plan, kernel, result, input)) return false;
  }
  return is_written;
}
// Kernels that copy an input whose new value is written over it.
void drop_copies(Plan& plan) {
  std::erase_if(plan.run, [&](const Kernel& kernel) {
    return std::any_of(plan.updates.begin(), plan.updates.end(), [&](const auto& one) {
      return only_copies(plan.routine, kernel.steps, one.first, one.second);
    });
  });
}
void find_updates(Plan& plan) {
  std::erase_if(plan.updates, [&](const auto& one) {
    const bool updates = update(plan, one.first, one.second);
    if (!updates) plan.in_place.erase(one.first);
    return !updates;
  });
}

// The buffers that values use one after the other.
std::vector<Buffer> chains(const Plan& plan) {
  const auto lives = lifetimes(plan);
  std::map<ValueId, ValueId> next;
  for (const auto& [result, operand] : plan.in_place) next[operand] = result;
  std::vector<Buffer> buffers;
  for (const ValueId value : lives.ids()) {
    if (!lives[value] || plan.in_place.contains(value)) continue;
    Buffer buffer = {{value}, {lives[value]->first}, *lives[value]};
    if (const auto choice = plan.choices.find(value); choice != plan.choices.end())
      buffer.life.offset = choice->second.offset;
    for (auto more = next.find(value); more != next.end(); more = next.find(more->second)) {
      buffer.values.push_back(more->second);
      buffer.starts.push_back(lives[more->second]->first);
      buffer.life.last = lives[more->second]->last;
    }
    buffers.push_back(std::move(buffer));
  }
  return buffers;
}

// Values of the preparation: those that `run` reads, then the others, which share memory.
void place_prepared(Plan& plan) {
  std::vector<bool> stays(plan.routine.values.size(), false);
  for (const Kernel& kernel : plan.run)
    for (const ValueId value : touched(plan, kernel)) stays[value] = true;
  plan.prepared_bytes = 0;
  const Lifetimes lives = lifetimes(plan, plan.prepare, Home::prepared);
  ValueIds leaving;
  std::vector<loops::Lifetime> list;
  for (const ValueId i : plan.homes.ids()) {
    if (plan.homes[i] != Home::prepared) continue;
    if (!stays[i]) {  // without kernels it is nowhere
      if (!lives[i]) continue;
      leaving.push_back(i);
      list.push_back(*lives[i]);
      continue;
    }
    plan.offsets[i] = plan.prepared_bytes;
    plan.prepared_bytes += (bytes(plan, i) + kLineBytes - 1) / kLineBytes * kLineBytes;
  }
  const std::vector<int64_t> offsets = loops::place(list);
  for (size_t i = 0; i < leaving.size(); ++i)
    plan.offsets[leaving[i]] = plan.prepared_bytes + offsets[i];
  plan.preparation_bytes = plan.prepared_bytes + loops::arena_size(list, offsets);
}

void place_values(Plan& plan) {
  plan.offsets.assign(plan.routine.values.size(), 0);
  plan.sum_bytes = 0;
  place_prepared(plan);
  const std::vector<Buffer> buffers = chains(plan);
  std::vector<loops::Lifetime> lives;
  for (const Buffer& buffer : buffers) {
    if (buffer.life.offset.value_or(0) % loops::kArenaAlignment != 0)
      throw composit::UserError(fmt::format("[mosaic] '{}' at {}: expected a multiple of {}",
                                            name_of(plan, buffer.values[0]), *buffer.life.offset,
                                            loops::kArenaAlignment));
    lives.push_back(buffer.life);
  }
  const std::vector<int64_t> offsets = loops::place(lives);
  for (size_t i = 0; i < buffers.size(); ++i)
    for (const ValueId value : buffers[i].values) {
      plan.offsets[value] = offsets[i];
      plan.sum_bytes += bytes(plan, value);
    }
  plan.arena_bytes = loops::arena_size(lives, offsets);
  plan.least_bytes = loops::least_size(lives, 1);
}

}  // namespace

ValueIds touched(const Plan& plan, const Kernel& kernel) {
  return kernel.form->touched(plan, kernel);
}

ValueIds written(const Plan& plan, const Kernel& kernel) {
  return kernel.form->written(plan, kernel);
}

std::vector<Buffer> buffers_of(const Plan& plan) {
  std::vector<Buffer> buffers = chains(plan);
  std::stable_sort(buffers.begin(), buffers.end(), [&](const Buffer& a, const Buffer& b) {
    const int64_t x = plan.offsets[a.values[0]], y = plan.offsets[b.values[0]];
    return x != y ? x < y : a.life.first < b.life.first;
  });
  return buffers;
}

void plan_buffers(Plan& plan) {
  find_homes(plan);
  const auto for_loops = [&plan](const auto& visit) {
    for (auto* list : {&plan.prepare, &plan.run})
      for (Kernel& kernel : *list)
        if (kernel.form == &kLoops) visit(plan, kernel);
  };
  for_loops(set_homes);
  find_in_place(plan);
  find_updates(plan);
  drop_copies(plan);
  for_loops(drop_needless);
  add_scratch(plan);
  place_values(plan);
  check_buffers(plan);
}

void check_buffers(const Plan& plan) {
  const std::vector<Buffer> buffers = chains(plan);
  const auto at = [&](const Buffer& one) { return plan.offsets[one.values[0]]; };
  const auto name = [&](const Buffer& one) { return name_of(plan, one.values[0]); };
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& a = buffers[i];
    if (at(a) < 0 || at(a) + a.life.bytes > plan.arena_bytes)
      throw composit::UserError(fmt::format("[mosaic] '{}' at {}: the arena has {} bytes", name(a),
                                            at(a), plan.arena_bytes));
    for (size_t j = i + 1; j < buffers.size(); ++j) {
      const Buffer& b = buffers[j];
      const bool meet = a.life.first <= b.life.last && b.life.first <= a.life.last;
      if (meet && at(a) < at(b) + b.life.bytes && at(b) < at(a) + a.life.bytes)
        throw composit::UserError(
            fmt::format("[mosaic] '{}' at {} and '{}' at {} overlap while both are needed", name(a),
                        at(a), name(b), at(b)));
    }
    for (const ValueId value : a.values)
      if (plan.offsets[value] != at(a))
        throw composit::UserError(
            fmt::format("[mosaic] '{}' is written over '{}', and lies elsewhere",
                        name_of(plan, value), name(a)));
  }
}

}  // namespace flashlight::mosaic
