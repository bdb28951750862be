// What values are called: after modules and operations of the model.
//
//   const Names names(graph);
//   names.of(node);         // "query": what leaves the module "attention.self.query"
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "composit/ir/flat_map.h"
#include "composit/ir/graph.h"

namespace flashlight::loops {

class Names {
 public:
  // Modules are told apart by as many parts of their path as it takes: "dense", or "output.dense"
  // beside "intermediate.dense".
  explicit Names(const composit::Graph& graph);
  // Of the results of a node of the graph: the module whose result it is, or the operation.
  std::string of(const composit::Node& node) const;

 private:
  composit::FlatMap<const composit::Node*, std::string> modules_;
};

// Per path, its shortest tail, of at least `parts` parts but for numbers, that no other one has.
std::map<std::string, std::string> short_names(const std::set<std::string>& paths, size_t parts);

// Whether a name of an argument is only its number.
bool is_number(std::string_view name);

}  // namespace flashlight::loops
