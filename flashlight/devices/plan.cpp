#include "flashlight/devices/plan.h"

#include <algorithm>
#include <set>

#include "composit/io/log.h"
#include "composit/ir/print.h"
#include "flashlight/backends/devices.h"
#include "flashlight/devices/cost.h"

namespace flashlight::devices {

using composit::CompileOptions;
using composit::Graph;

namespace {

std::vector<DeviceChoice> devices_to_propose(const std::string& names, const Choices& choices) {
  std::vector<DeviceChoice> devices;
  for (const std::string& name : names_between_commas(names)) {
    devices.push_back(device_named(name, choices, "option 'propose'"));
    expect_compiles(devices.back());
  }
  return devices;
}

std::string count_text(size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

// Lines of the text that place something, of which no part is the one that computes it.
std::vector<Line> remade_lines(const Graph& graph, const Choices& choices,
                               const Placement& placement, const Partition& partition) {
  std::set<size_t> placing;
  for (const composit::NodePtr& node : graph.nodes())
    if (const size_t* line = placement.lines.find(node.get())) placing.insert(*line);
  std::vector<Line> lines;
  for (const size_t line : placing)
    if (choices.lines[line].number > 0 && choices.lines[line].what != "*" &&
        partition.decided.count(line) == 0)
      lines.push_back(choices.lines[line]);
  return lines;
}

class Printer {
 public:
  explicit Printer(const Plan& plan) : plan_(plan), all_(plan.partition) {}

  std::string run() {
    if (!plan_.proposal.empty()) text_ += "proposed:\n" + plan_.proposal + "\n";
    for (const Line& line : plan_.unused)
      text_ += "choices, line " + std::to_string(line.number) + ": other lines place all of '" +
               line.what + "'\n";
    for (const Line& line : plan_.remade)
      text_ += "choices, line " + std::to_string(line.number) + ": each part that reads '" +
               line.what + "' makes it, as a view of an input costs nothing\n";
    for (const DeviceChoice& device : all_.devices)
      text_ += "device " + device.name + ": " + describe(device) + "\n";
    for (size_t i = 0; i < all_.parts.size(); ++i) part(i);
    borders();
    copies();
    return text_;
  }

 private:
  void part(size_t number) {
    const Part& part = all_.parts[number];
    text_ += "\npart " + std::to_string(number) + " on " + all_.devices[part.device].name +
             ", stage " + std::to_string(part.stage) + ": " +
             count_text(part.operations, "operation") + "\n";
    Numbers passed;
    size_t inputs = 0;
    for (const size_t value : part.reads) {
      if (all_.values[value].maker != PassedValue::kCaller) passed.push_back(value);
      inputs += all_.values[value].maker == PassedValue::kCaller ? 1 : 0;
    }
    text_ += "  reads " + count_text(inputs, "input");
    if (!passed.empty()) text_ += ", " + count_text(passed.size(), "value") + values(passed);
    text_ += "\n  makes " + count_text(part.makes.size(), "value") + values(part.makes) + "\n";
  }

  std::string values(const Numbers& numbers) const {
    constexpr size_t kMost = 8;
    std::string text;
    for (size_t i = 0; i < std::min(kMost, numbers.size()); ++i)
      text += (i == 0 ? ": " : ", ") + value(numbers[i]);
    if (numbers.size() > kMost) text += " and " + std::to_string(numbers.size() - kMost) + " more";
    return text;
  }
  std::string value(size_t number) const {
    return all_.values[number].name + " " + composit::print(all_.values[number].type);
  }

  // Values that one part makes and another one reads.
  void borders() {
    int64_t bytes = 0;
    size_t count = 0;
    for (size_t value = 0; value < all_.values.size(); ++value) {
      if (all_.values[value].maker == PassedValue::kCaller) continue;
      const bool crosses = std::any_of(all_.parts.begin(), all_.parts.end(), [&](const Part& part) {
        return std::count(part.reads.begin(), part.reads.end(), value) > 0;
      });
      if (!crosses) continue;
      ++count;
      bytes += all_.values[value].type.nbytes();
    }
    text_ += "\n" + count_text(count, "value") + " of " +
             composit::format_bytes(static_cast<uint64_t>(bytes)) +
             (count == 1 ? " passes" : " pass") + " from part to part\n";
  }

  void copies() {
    const Schedule& schedule = plan_.schedule;
    text_ += total(schedule.copies, "copy", "copies") + " at each call\n";
    for (size_t i = 0; i < schedule.copies.size(); ++i) {
      const Copy& copy = schedule.copies[i];
      text_ += "  " + value(copy.value) + ": " + copy.from + " to " + copy.to +
               (schedule.copy_overlaps[i] ? ", while a device computes" : "") + "\n";
    }
    if (!schedule.kept.empty())
      text_ += total(schedule.kept, "copy", "copies") + " of weights, once\n";
  }
  std::string total(const std::vector<Copy>& copies, const char* one, const char* several) const {
    int64_t bytes = 0;
    for (const Copy& copy : copies) bytes += all_.values[copy.value].type.nbytes();
    return std::to_string(copies.size()) + " " + (copies.size() == 1 ? one : several) + " of " +
           composit::format_bytes(static_cast<uint64_t>(bytes));
  }

  const Plan& plan_;
  const Partition& all_;
  std::string text_;
};

}  // namespace

Plan plan_of(const Graph& graph, const CompileOptions& options) {
  const Devices chosen = Devices::fields().typed(options.options);
  const NodeNames names(graph);
  Choices choices = parse_choices(chosen.choices);
  Plan plan;
  if (!chosen.propose.empty()) {
    const std::vector<DeviceChoice> devices = devices_to_propose(chosen.propose, choices);
    const Costs costs = costs_of(devices, options);
    const Proposal proposal = propose(graph, names, devices, costs, options, choices.lines);
    plan.proposal = proposal.text;
    choices.lines.insert(choices.lines.end(), proposal.lines.begin(), proposal.lines.end());
  }
  Placement placement = place(graph, names, choices, chosen.lenient);
  plan.partition = partition(graph, names, placement);
  plan.unused = std::move(placement.unused);
  plan.remade = remade_lines(graph, choices, placement, plan.partition);
  plan.schedule = schedule_of(plan.partition, options.may_prepare);
  return plan;
}

std::string print(const Plan& plan) { return Printer(plan).run(); }

}  // namespace flashlight::devices
