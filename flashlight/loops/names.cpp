#include "flashlight/loops/names.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "composit/ir/scope.h"

namespace flashlight::loops {
namespace {

using composit::Graph;
using composit::Node;

// The last `parts` parts of a path; numbers do not count.
std::string tail(const std::string& module, size_t parts) {
  size_t begin = module.size();
  while (begin > 0 && parts > 0) {
    const size_t dot = module.rfind('.', begin - 1);
    const size_t first = dot == std::string::npos ? 0 : dot + 1;
    parts -= is_number(std::string_view(module).substr(first, begin - first)) ? 0 : 1;
    begin = dot == std::string::npos ? 0 : dot;
  }
  return module.substr(begin > 0 ? begin + 1 : 0);
}

std::string operation_name(const Node& node) {
  if (const composit::Attribute* name = node.find_attribute("name"))
    if (const auto* text = name->get_if<std::string>()) return *text;
  std::string_view name = node.op().base_name();
  name.remove_prefix(std::min(name.find_first_not_of('_'), name.size()));
  return std::string(name);
}

// True if a node outside of its module, or an output of the graph, uses what `node` makes.
bool leaves_module(const Graph& graph, const Node& node, std::string_view module) {
  const auto& uses = graph.successors(node);
  const bool outside = std::any_of(uses.begin(), uses.end(), [&](const composit::Use& use) {
    return !composit::is_within(use.node->annotation("scope"), module);
  });
  const auto& outputs = graph.outputs();
  return outside || std::any_of(outputs.begin(), outputs.end(),
                                [&](const auto& output) { return output.node.get() == &node; });
}

}  // namespace

Names::Names(const Graph& graph) {
  std::map<std::string, std::vector<const Node*>> results;
  for (const composit::NodePtr& node : graph.nodes()) {
    const std::string module(node->annotation("scope"));
    const bool made = !composit::is_input(*node) && node->op() != composit::ops::kConstant;
    if (made && !module.empty() && leaves_module(graph, *node, module))
      results[module].push_back(node.get());
  }
  std::set<std::string> modules;
  for (const auto& [module, nodes] : results) modules.insert(module);
  const auto names = short_names(modules, 1);
  // If several nodes leave a module, the last one gets its name.
  for (const auto& [module, nodes] : results) modules_.insert(nodes.back(), names.at(module));
}

std::string Names::of(const Node& node) const {
  const std::string* module = modules_.find(&node);
  return module == nullptr ? operation_name(node) : *module;
}

std::map<std::string, std::string> short_names(const std::set<std::string>& paths, size_t parts) {
  std::map<std::string, std::string> names;
  for (const std::string& path : paths) {
    const auto is_ambiguous = [&](size_t count) {
      return std::any_of(paths.begin(), paths.end(), [&](const std::string& other) {
        return other != path && tail(other, count) == tail(path, count);
      });
    };
    size_t count = parts;
    while (is_ambiguous(count) && tail(path, count) != path) ++count;
    names[path] = tail(path, count);
  }
  return names;
}

bool is_number(std::string_view name) {
  return std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

}  // namespace flashlight::loops
