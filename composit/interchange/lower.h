// A graph of a target's operators: its row for each operation, or the operation's definition.
//
//   const Lowered lowered = lower(graph, {.name = "ONNX", .domain = "onnx", .rows = rows()});
//   print(lowered.graph);                       // %Conv = onnx::Conv(%x, %weight, …)
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "composit/interchange/row.h"
#include "composit/ir/graph.h"

namespace composit::interchange {

// What graphs are written for.
struct Target {
  std::string_view name;    // in errors: "ONNX"
  std::string_view domain;  // of its operators, which stay as they are: "onnx"
  const RowTable& rows;     // what it has of ATen
  // Without them, complex numbers are pairs of real ones: complex_pairs.h.
  bool has_complex = true;
};

struct Lowered {
  Graph graph;  // outputs of the graph, then a bool for each guard; no effects
  // What each guard asks, for people; in the order of their outputs.
  std::vector<std::string> guards = {};
};

// Says of a node of a graph, or of its regions, whether it may become a constant.
using MayFold = std::function<bool(const Node& node)>;

// Regions of the target's operators are lowered as well. What follows from constants is one, where
// `may_fold` is not given or says so. UserError that lists all nodes that have neither row nor
// definition, with module and line, and all effects that are no guards.
Lowered lower(const Graph& graph, const Target& target, const MayFold& may_fold = {});

// Where a node stands: " at model.cpp:12"; empty where it does not say.
std::string place_of(const Node& node);

}  // namespace composit::interchange
