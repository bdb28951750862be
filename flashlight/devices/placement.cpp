#include "flashlight/devices/placement.h"

#include <algorithm>
#include <optional>
#include <set>

#include "composit/ir/error.h"
#include "composit/ir/scope.h"
#include "composit/ir/transform.h"
#include "composit/ir/words.h"
#include "composit/ops/operations.h"
#include "flashlight/loops/names.h"

namespace flashlight::devices {

using composit::Graph;
using composit::LazyTensor;
using composit::Node;
using composit::NodePtr;
using composit::UserError;

bool is_computed(const Node& node) {
  return !composit::is_input(node) && node.op() != composit::ops::kConstant;
}

Graph alone(const Node& node) {
  composit::LazyTensors operands;
  for (const LazyTensor& operand : node.operands())
    operands.push_back(composit::input("x" + std::to_string(operands.size()), operand.type()));
  composit::Graph::Parts parts = {.inputs = operands};
  const NodePtr copy = composit::copy_of(node, operands).make_node();
  for (uint32_t i = 0; i < node.outputs().size(); ++i)
    if (composit::is_defined(node.outputs()[i])) parts.outputs.push_back({copy, i});
  if (copy->effect() >= 0) parts.effects.push_back(copy);
  return Graph(std::move(parts));
}

namespace {

bool compiles_alone(const composit::Backend& backend, const Node& node) {
  try {
    backend.compile(alone(node));
    return true;
  } catch (const UserError&) {
    return false;
  }
}

}  // namespace

bool can_run(const composit::Backend& backend, const Node& node) {
  if (const composit::Operation* operation = composit::operation_of(node))
    return backend.has_code(*operation);
  return backend.runs_operators_without_rows() || compiles_alone(backend, node);
}

namespace {

// "encoder.layer.3.query.weight" is of the module "encoder.layer.3.query".
std::string module_of_parameter(const Node& input) {
  if (composit::input_kind(input) != composit::InputKind::parameter &&
      composit::input_kind(input) != composit::InputKind::buffer)
    return "";
  const std::string& name = composit::input_name(input);
  const size_t dot = name.rfind('.');
  return dot == std::string::npos ? "" : name.substr(0, dot);
}

// Adds a module and those that it is in.
void add_with_outer(const std::string& module, std::set<std::string>& modules) {
  for (size_t dot = module.find('.'); dot != module.npos; dot = module.find('.', dot + 1))
    modules.insert(module.substr(0, dot));
  if (!module.empty()) modules.insert(module);
}

}  // namespace

NodeNames::NodeNames(const Graph& graph) {
  find_modules(graph);
  std::set<std::string> modules;
  for (const NodePtr& node : graph.nodes())
    if (is_computed(*node)) add_with_outer(module(*node), modules);
  const loops::Names names(graph);
  std::set<std::string> taken;
  for (const LazyTensor& input : graph.inputs()) taken.insert(composit::input_name(*input.node));
  for (const NodePtr& node : graph.nodes()) {
    if (!is_computed(*node)) continue;
    Entry& entry = *entries_.find(node.get());
    const std::string name = names.of(*node);
    if (modules.count(name) > 0 && name != entry.module) taken.insert(name);
    entry.name = composit::unused_name(name, taken);
  }
}

void NodeNames::find_modules(const Graph& graph) {
  for (const NodePtr& node : graph.nodes())
    if (is_computed(*node)) entries_.insert(node.get(), {"", module_of(*node)});
}

std::string NodeNames::module_of(const Node& node) const {
  const std::string own(node.annotation("scope"));
  if (!own.empty()) return own;
  std::string of_forward, of_largest;
  int64_t largest = -1;
  for (const LazyTensor& operand : node.operands()) {
    const Node& maker = *operand.node;
    if (composit::is_input(maker)) {
      const std::string module = module_of_parameter(maker);
      if (!module.empty()) return module;
      continue;
    }
    const Entry* known = entries_.find(&maker);
    if (known == nullptr || known->module.empty()) continue;
    if (!maker.annotation("scope").empty()) of_forward = known->module;
    if (operand.type().nbytes() > largest) {
      largest = operand.type().nbytes();
      of_largest = known->module;
    }
  }
  return of_forward.empty() ? of_largest : of_forward;
}

const NodeNames::Entry& NodeNames::entry(const Node& node) const {
  const Entry* found = entries_.find(&node);
  COMPOSIT_ASSERT(found != nullptr, "a node of the graph that computes");
  return *found;
}
const std::string& NodeNames::name(const Node& node) const { return entry(node).name; }
const std::string& NodeNames::module(const Node& node) const { return entry(node).module; }

namespace {

class Placer {
 public:
  Placer(const NodeNames& names, const Choices& choices) : names_(names), choices_(choices) {
    for (size_t i = 0; i < choices.lines.size(); ++i) lines_[choices.lines[i].what] = i;
    used_.resize(choices.lines.size());
  }

  void add(const Node& node) {
    const Line* line = line_of(node);
    if (line == nullptr) {
      uncovered_.insert(names_.name(node));
      return;
    }
    placement_.numbers.insert(&node, number_of(*line));
    placement_.lines.insert(&node, static_cast<size_t>(line - choices_.lines.data()));
  }

  Placement finish(const Graph& graph, bool lenient) {
    for (size_t i = 0; i < used_.size() && !lenient; ++i) {
      const bool is_proposed = choices_.lines[i].number == 0;
      if (used_[i] || is_proposed || choices_.lines[i].what == "*") continue;
      expect_named(graph, choices_.lines[i]);
      placement_.unused.push_back(choices_.lines[i]);
    }
    if (!uncovered_.empty())
      throw UserError("[devices] no choice says where " +
                      composit::nearest("", {uncovered_.begin(), uncovered_.end()}) +
                      " run: add a line '*: on DEVICE'");
    return std::move(placement_);
  }

 private:
  // The line of the value, of the innermost module, or "*".
  const Line* line_of(const Node& node) {
    if (const Line* line = find(names_.name(node))) return line;
    for (std::string module = names_.module(node); !module.empty();) {
      if (const Line* line = find(module)) return line;
      const size_t dot = module.rfind('.');
      module.resize(dot == std::string::npos ? 0 : dot);
    }
    return find("*");
  }
  const Line* find(const std::string& what) {
    const auto found = lines_.find(what);
    if (found == lines_.end()) return nullptr;
    used_[found->second] = true;
    return &choices_.lines[found->second];
  }

  size_t number_of(const Line& line) {
    const auto [found, is_new] = numbers_.emplace(line.device, placement_.devices.size());
    if (is_new)
      placement_.devices.push_back(
          device_named(line.device, choices_, "choices, line " + std::to_string(line.number)));
    return found->second;
  }

  // A line whose value or module another line covers names something, too.
  void expect_named(const Graph& graph, const Line& line) const {
    std::set<std::string> names;
    for (const NodePtr& node : graph.nodes()) {
      if (!is_computed(*node)) continue;
      const std::string& module = names_.module(*node);
      if (names_.name(*node) == line.what || composit::is_within(module, line.what)) return;
      names.insert(names_.name(*node));
      add_with_outer(module, names);
    }
    throw UserError("[devices] choices, line " + std::to_string(line.number) +
                    ": expected a value or a module of the program, as in " +
                    composit::nearest(line.what, {names.begin(), names.end()}) + ", received '" +
                    line.what + "'");
  }

  const NodeNames& names_;
  const Choices& choices_;
  std::map<std::string, size_t> lines_;
  std::vector<bool> used_;
  std::map<std::string, size_t> numbers_;  // of devices
  std::set<std::string> uncovered_;
  Placement placement_;
};

}  // namespace

Placement place(const Graph& graph, const NodeNames& names, const Choices& choices, bool lenient) {
  Placer placer(names, choices);
  for (const NodePtr& node : graph.nodes())
    if (is_computed(*node)) placer.add(*node);
  return placer.finish(graph, lenient);
}

}  // namespace flashlight::devices
