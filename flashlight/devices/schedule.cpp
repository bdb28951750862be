#include "flashlight/devices/schedule.h"

#include <algorithm>
#include <map>
#include <optional>

namespace flashlight::devices {

const std::string& memory_of(const Partition& partition, size_t value) {
  static const std::string callers = kCallersMemory;
  const size_t maker = partition.values[value].maker;
  if (maker == PassedValue::kCaller) return callers;
  return partition.devices[partition.parts[maker].device].memory;
}

namespace {

class Scheduler {
 public:
  Scheduler(const Partition& partition, bool keeps_weights)
      : partition_(partition), keeps_weights_(keeps_weights), part_tasks_(partition.parts.size()) {}

  Schedule run() {
    std::optional<size_t> last_effect;
    for (size_t i = 0; i < partition_.parts.size(); ++i) {
      const Part& part = partition_.parts[i];
      const DeviceChoice& device = partition_.devices[part.device];
      Numbers after;
      for (const size_t value : part.reads)
        if (const auto task = available(value, device.memory)) after.push_back(*task);
      if (part.has_effects && last_effect) after.push_back(*last_effect);
      part_tasks_[i] = add({.number = i, .queue = queue("device " + device.name)}, after);
      if (part.has_effects) last_effect = part_tasks_[i];
    }
    for (const size_t value : partition_.results) available(value, kCallersMemory);
    schedule_.queues = queues_.size();
    find_overlaps();
    return std::move(schedule_);
  }

 private:
  size_t queue(const std::string& name) {
    return queues_.emplace(name, queues_.size()).first->second;
  }

  size_t add(Task task, Numbers after) {
    std::sort(after.begin(), after.end());
    after.erase(std::unique(after.begin(), after.end()), after.end());
    std::erase_if(after, [&](size_t one) { return schedule_.tasks[one].queue == task.queue; });
    task.after = std::move(after);
    schedule_.tasks.push_back(std::move(task));
    return schedule_.tasks.size() - 1;
  }

  // The task after which a value is in this memory; none for an input that the caller has there.
  std::optional<size_t> available(size_t value, const std::string& memory) {
    const std::string& home = memory_of(partition_, value);
    const size_t maker = partition_.values[value].maker;
    const auto made =
        maker == PassedValue::kCaller ? std::nullopt : std::optional(part_tasks_[maker]);
    if (home == memory) return made;
    const bool is_kept = keeps_weights_ && partition_.values[value].is_weight;
    const auto [found, is_new] = copied_.emplace(std::pair(value, memory), 0);
    if (is_new && is_kept) schedule_.kept.push_back({value, home, memory});
    if (is_kept) return std::nullopt;
    if (is_new) {
      schedule_.copies.push_back({value, home, memory});
      found->second = add({.is_copy = true,
                           .number = schedule_.copies.size() - 1,
                           .queue = queue("memory " + memory)},
                          made ? Numbers{*made} : Numbers{});
    }
    return found->second;
  }

  // Two tasks overlap if neither comes before the other by waiting and by the order of queues.
  void find_overlaps() {
    const std::vector<Task>& tasks = schedule_.tasks;
    std::vector<std::vector<bool>> before(tasks.size(), std::vector<bool>(tasks.size()));
    std::vector<std::optional<size_t>> last(schedule_.queues);
    schedule_.copy_overlaps.resize(schedule_.copies.size());
    for (size_t i = 0; i < tasks.size(); ++i) {
      Numbers direct = tasks[i].after;
      if (last[tasks[i].queue]) direct.push_back(*last[tasks[i].queue]);
      last[tasks[i].queue] = i;
      for (const size_t one : direct) {
        before[i][one] = true;
        for (size_t k = 0; k < one; ++k)
          if (before[one][k]) before[i][k] = true;
      }
      for (size_t k = 0; k < i; ++k)
        if (!before[i][k]) overlap(tasks[i], tasks[k]);
    }
  }
  void overlap(const Task& a, const Task& b) {
    schedule_.overlaps = true;
    if (a.is_copy && !b.is_copy) schedule_.copy_overlaps[a.number] = true;
    if (b.is_copy && !a.is_copy) schedule_.copy_overlaps[b.number] = true;
  }

  const Partition& partition_;
  const bool keeps_weights_;
  Schedule schedule_;
  Numbers part_tasks_;                                       // by part
  std::map<std::pair<size_t, std::string>, size_t> copied_;  // task by value and memory
  std::map<std::string, size_t> queues_;
};

}  // namespace

Schedule schedule_of(const Partition& partition, bool keeps_weights) {
  return Scheduler(partition, keeps_weights).run();
}

}  // namespace flashlight::devices
