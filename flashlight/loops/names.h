// Names values after the modules and operations of the model.
//
//   const Names names(graph);
//   names.of(node);         // "query": the result of the module "attention.self.query"
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
  // Uses as many parts of a module's path as tell it from the others: "dense", or "output.dense"
  // beside "intermediate.dense".
  explicit Names(const composit::Graph& graph);
  // The name for the results of a node: of the module whose result it is, or of the operation.
  std::string of(const composit::Node& node) const;

 private:
  composit::FlatMap<const composit::Node*, std::string> modules_;
};

// Per path, the shortest tail that no other has, of at least `parts` parts that are no numbers.
std::map<std::string, std::string> short_names(const std::set<std::string>& paths, size_t parts);

// True if the name of an argument is only its number.
bool is_number(std::string_view name);

}  // namespace flashlight::loops
