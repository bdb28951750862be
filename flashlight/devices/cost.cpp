#include "flashlight/devices/cost.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "composit/ir/error.h"
#include "composit/ir/scope.h"
#include "composit/ir/transform.h"
#include "composit/op/call.h"
#include "composit/ops/operations.h"
#include "composit/passes/decompose.h"
#include "flashlight/backends/registry.h"
#include "flashlight/devices/draws.h"
#include "flashlight/loops/names.h"

namespace flashlight::devices {

using composit::Graph;
using composit::LazyTensor;
using composit::Node;
using composit::NodePtr;

namespace {

// ---- the work of nodes --------------------------------------------------------------------------

struct Work {
  double products = 0, convolutions = 0, bytes = 0;
};

double points_of(const composit::Statement& statement) {
  double points = 1;
  for (const composit::Axis& axis : statement.axes) points *= static_cast<double>(axis.extent);
  return points;
}

bool reduces(const composit::Statement& statement) {
  return std::any_of(statement.axes.begin(), statement.axes.end(), [](const composit::Axis& axis) {
    return axis.kind == composit::AxisKind::reduction;
  });
}

// A sum of products: its points, each one multiplication and one addition.
double operations_of(const Node& node) {
  const composit::Operation* operation = composit::operation_of(node);
  if (operation == nullptr || node.operands().size() < 2) return 0;
  const auto loops = composit::loops_of(*operation, composit::call_of(node, operation->schema));
  double operations = 0;
  if (loops)
    for (const composit::Statement& statement : loops->statements)
      if (reduces(statement)) operations += 2 * points_of(statement);
  return operations;
}

void add_work(const Node& node, Work& work) {
  if (!is_computed(node)) return;
  const double operations = operations_of(node);
  const bool convolves = node.op().base_name().find("conv") != std::string_view::npos;
  (convolves ? work.convolutions : work.products) += operations;
  if (operations > 0) return;
  for (const LazyTensor& operand : node.operands())
    work.bytes += static_cast<double>(operand.type().nbytes());
  for (const composit::Type& output : node.outputs())
    if (composit::is_defined(output)) work.bytes += static_cast<double>(output.nbytes());
}

// Its parts' where others define it.
Work work_of(const NodePtr& node) {
  Work work;
  const Graph small = composit::decompose(alone(*node), {.open_bodies = true});
  for (const NodePtr& one : small.nodes()) add_work(*one, work);
  return work;
}

// True if draws of the device's code for a program go on with the program's sequence.
bool keeps_sequence(const DeviceChoice& device, const Graph& graph,
                    const composit::CompileOptions& options) {
  composit::CompileOptions plain = {.name = "draws", .options = device.backend.options};
  plain.schemas = options.schemas;
  plain.torch_folders = options.torch_folders;
  try {
    return backend_named(device.backend.name).compile(graph, plain)->draws();
  } catch (const composit::UserError&) {
    return false;
  }
}

double seconds_on(const Speed& speed, const Work& work) {
  double seconds = 0;
  const auto add = [&](double amount, double rate) {
    if (amount > 0) seconds += rate > 0 ? amount / rate : HUGE_VAL;
  };
  add(work.products, speed.products);
  add(work.convolutions, speed.convolutions);
  add(work.bytes, speed.bytes);
  return seconds;
}

// ---- modules ------------------------------------------------------------------------------------

// The module up to its last number, or its first name: "encoder.layer.3", "embeddings".
std::string block_of(const std::string& module) {
  size_t end = 0;
  for (size_t first = 0; first < module.size();) {
    const size_t dot = std::min(module.find('.', first), module.size());
    const bool is_number = loops::is_number(std::string_view(module).substr(first, dot - first));
    if (is_number || end == 0) end = dot;
    first = dot + 1;
  }
  return module.substr(0, end);
}

struct Block {
  std::string module;           // empty: of no module
  std::vector<double> seconds;  // by device
  double bytes_read = 0;        // of values that other blocks made
  double callers_bytes = 0;     // of arguments that it reads, and of results that it makes
};

std::string milliseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f ms", 1e3 * seconds);
  return text;
}

using Chosen = std::vector<size_t>;  // a device for each block

// What a way costs beside computation.
struct Between {
  double calls = 0, copies = 0;  // seconds
  double all() const { return calls + copies; }
};

class Proposer {
 public:
  Proposer(const Graph& graph, const NodeNames& names, const std::vector<DeviceChoice>& devices,
           const Costs& costs, const composit::CompileOptions& options,
           const std::vector<Line>& given)
      : names_(names), devices_(devices), costs_(costs), options_(options), given_(given) {
    for (const NodePtr& node : graph.nodes())
      if (is_computed(*node)) add(node);
    for (const LazyTensor& output : graph.outputs()) add_result(output);
    for (const composit::Mutation& mutation : graph.mutations()) add_result(mutation.value);
  }

  Proposal run() {
    const Chosen chosen = fastest();
    Proposal proposal;
    std::optional<size_t> star;
    for (size_t i = 0; i < blocks_.size(); ++i) {
      if (blocks_[i].module.empty())
        star = i;
      else
        add_line(blocks_[i].module, chosen[i], reason(i, chosen), proposal);
    }
    if (star)
      add_line("*", chosen[*star], reason(*star, chosen), proposal);
    else if (!blocks_.empty())
      add_line("*", chosen[0], "no operation is outside of modules", proposal);
    return proposal;
  }

 private:
  void add(const NodePtr& node) {
    const std::string module = block_of(names_.module(*node));
    const auto [found, is_new] = numbers_.emplace(module, blocks_.size());
    if (is_new) blocks_.push_back({module, std::vector<double>(devices_.size(), 0.0)});
    Block& block = blocks_[found->second];
    block_of_.insert(node.get(), found->second);
    const Work work = work_of(node);
    bool any = false;
    for (size_t device = 0; device < devices_.size(); ++device) {
      const double seconds =
          can_run_on(device, node) ? seconds_on(costs_.speeds[device], work) : HUGE_VAL;
      any = any || seconds < HUGE_VAL;
      block.seconds[device] += seconds;
    }
    if (!any) refuse(*node);
    for (const LazyTensor& operand : node->operands()) add_read(operand, found->second);
  }

  // A value is copied once for all that read it in a block. Weights are copied before calls.
  void add_read(const LazyTensor& value, size_t number) {
    if (!value || !passed_.insert({value.node.get(), value.index, number}).second) return;
    const auto bytes = static_cast<double>(value.type().nbytes());
    const size_t* maker = block_of_.find(value.node.get());
    if (maker != nullptr && *maker != number) blocks_[number].bytes_read += bytes;
    if (composit::is_input(*value.node) &&
        composit::input_kind(*value.node) == composit::InputKind::user_input)
      blocks_[number].callers_bytes += bytes;
  }
  void add_result(const LazyTensor& value) {
    const size_t* maker = value ? block_of_.find(value.node.get()) : nullptr;
    if (maker != nullptr)
      blocks_[*maker].callers_bytes += static_cast<double>(value.type().nbytes());
  }

  // Layers draw and guard alike, so code for the first one tells for all without regions.
  bool can_run_on(size_t device, const NodePtr& node) {
    bool has_regions = false;
    composit::for_each_region(*node, [&](const composit::Region&) { has_regions = true; });
    if (has_regions || (node->effect() < 0 && composit::operation_of(*node) != nullptr))
      return has_code(device, *node);
    const auto [known, is_new] = has_code_.emplace(std::pair(device, node->op().str()), false);
    if (is_new) known->second = has_code(device, *node);
    return known->second;
  }
  bool has_code(size_t device, const Node& node) const {
    if (!can_run(backend_named(devices_[device].backend.name), node)) return false;
    if (node.effect() < 0) return true;
    const Graph program = alone(node);
    return find_draw_in(program) == nullptr || keeps_sequence(devices_[device], program, options_);
  }

  [[noreturn]] void refuse(const Node& node) const {
    std::string names;
    for (const DeviceChoice& device : devices_) names += (names.empty() ? "" : ", ") + device.name;
    throw composit::UserError("[devices] expected a device that has code for " + node.op().str() +
                              " ('" + names_.name(node) +
                              "') among those to choose from, received " + names);
  }

  // The best way to each block and device, block by block.
  Chosen fastest() const {
    const size_t devices = devices_.size();
    std::vector<Chosen> from(blocks_.size(), Chosen(devices));
    std::vector<double> best(devices, 0.0);
    for (size_t i = 0; i < blocks_.size(); ++i) {
      std::vector<double> next(devices, HUGE_VAL);
      for (size_t to = 0; to < devices; ++to)
        for (size_t before = 0; before < devices; ++before) {
          const double seconds =
              best[before] + blocks_[i].seconds[to] + between(before, to, i).all();
          if (seconds >= next[to]) continue;
          next[to] = seconds;
          from[i][to] = before;
        }
      best = next;
    }
    Chosen chosen(blocks_.size());
    size_t device = static_cast<size_t>(std::min_element(best.begin(), best.end()) - best.begin());
    for (size_t i = blocks_.size(); i-- > 0;) {
      chosen[i] = device;
      device = from[i][device];
    }
    return chosen;
  }
  // Of a block on `to` after one on `before`; nothing is before the first one.
  Between between(size_t before, size_t to, size_t block) const {
    Between all;
    const auto copies = [&](const std::string& memory, double bytes) {
      if (memory != devices_[to].memory) all.copies += bytes / costs_.copied_bytes;
    };
    copies(kCallersMemory, blocks_[block].callers_bytes);
    if (block == 0 || before == to) return all;
    all.calls += costs_.speeds[to].call;
    copies(devices_[before].memory, blocks_[block].bytes_read);
    return all;
  }
  // Of a block and the next one, with this block elsewhere.
  Between around(const Chosen& chosen, size_t block, size_t device) const {
    Between all = between(block == 0 ? device : chosen[block - 1], device, block);
    if (block + 1 == chosen.size()) return all;
    const Between next = between(device, chosen[block + 1], block + 1);
    return {all.calls + next.calls, all.copies + next.copies};
  }

  void add_line(const std::string& what, size_t device, const std::string& reason,
                Proposal& proposal) const {
    const auto covers = [&](const Line& line) {
      return line.what == "*" || composit::is_within(what, line.what);
    };
    if (std::any_of(given_.begin(), given_.end(), covers)) return;
    const std::string& name = devices_[device].name;
    proposal.lines.push_back({what, name});
    proposal.text += what + ": on " + name + "   # " + reason + "\n";
  }

  std::string reason(size_t block, const Chosen& chosen) const {
    std::string reason;
    for (size_t other = 0; other < devices_.size(); ++other) {
      const double seconds = blocks_[block].seconds[other];
      reason += (reason.empty() ? "" : ", ") + devices_[other].name + " " +
                (seconds < HUGE_VAL ? milliseconds(seconds) : "has no code");
    }
    return reason + in_spite_of(block, chosen);
  }

  // What calls and copies made of it, where another device is faster for the block alone.
  std::string in_spite_of(size_t block, const Chosen& chosen) const {
    const std::vector<double>& seconds = blocks_[block].seconds;
    const auto faster =
        static_cast<size_t>(std::min_element(seconds.begin(), seconds.end()) - seconds.begin());
    const double slower = seconds[chosen[block]] - seconds[faster];
    if (!(slower > 0 && slower < HUGE_VAL)) return "";
    const Between here = around(chosen, block, chosen[block]),
                  there = around(chosen, block, faster);
    std::string more;
    const auto add = [&](double difference, const char* of) {
      if (difference > 0)
        more += (more.empty() ? "" : " and ") + milliseconds(difference) + " more of " + of;
    };
    add(there.copies - here.copies, "copies");
    add(there.calls - here.calls, "calls");
    if (more.empty()) return "";  // as fast, but for rounding
    return "; " + milliseconds(slower) + " slower, but " + devices_[faster].name + " has " + more;
  }

  const NodeNames& names_;
  const std::vector<DeviceChoice>& devices_;
  const Costs& costs_;
  const composit::CompileOptions& options_;
  const std::vector<Line>& given_;
  std::map<std::pair<size_t, std::string>, bool> has_code_;  // by device and operation
  std::vector<Block> blocks_;                                // in the order of their first nodes
  std::map<std::string, size_t> numbers_;
  composit::FlatMap<const Node*, size_t> block_of_;
  std::set<std::tuple<const Node*, uint32_t, size_t>> passed_;  // values that a block reads
};

}  // namespace

Proposal propose(const Graph& graph, const NodeNames& names,
                 const std::vector<DeviceChoice>& devices, const Costs& costs,
                 const composit::CompileOptions& options, const std::vector<Line>& given) {
  return Proposer(graph, names, devices, costs, options, given).run();
}

}  // namespace flashlight::devices
