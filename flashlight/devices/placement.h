// The device of each node of a graph.
//
//   const NodeNames names(graph);
//   const Placement placement = place(graph, names, parse_choices("*: on mosaic"));
//   placement.devices[placement.device_of(node)].name;
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "composit/ir/flat_map.h"
#include "composit/ir/graph.h"
#include "composit/op/backend.h"
#include "flashlight/devices/choices.h"

namespace flashlight::devices {

// The names and modules of nodes. Inputs and constants have none.
//
// A node of a backward pass that LibTorch ran, and of an optimizer, belongs to no module of the
// program. It counts to the module of a parameter that it reads, else to that of what it reads of
// the forward pass, else to that of its largest operand.
class NodeNames {
 public:
  explicit NodeNames(const composit::Graph& graph);
  // Distinct: "relu_3", or after the module whose result it is, "query". The name of a module is
  // no name of another module's value: a line of choices would mean both.
  const std::string& name(const composit::Node& node) const;
  // "encoder.layer.3", or empty.
  const std::string& module(const composit::Node& node) const;

 private:
  struct Entry {
    std::string name, module;
  };
  const Entry& entry(const composit::Node& node) const;
  void find_modules(const composit::Graph& graph);
  std::string module_of(const composit::Node& node) const;
  composit::FlatMap<const composit::Node*, Entry> entries_;
};

// True for a node that computes: no input and no constant.
bool is_computed(const composit::Node& node);

// The node as a program of its own.
composit::Graph alone(const composit::Node& node);

// True if the backend has code for the node. What no row defines (draws, guards) is compiled to
// see.
bool can_run(const composit::Backend& backend, const composit::Node& node);

struct Placement {
  std::vector<DeviceChoice> devices;  // those that compute something, in order of their first node
  composit::FlatMap<const composit::Node*, size_t> numbers;
  composit::FlatMap<const composit::Node*, size_t> lines;  // among those of the choices
  std::vector<Line> unused;  // lines all of whose values other lines place

  size_t device_of(const composit::Node& node) const { return *numbers.find(&node); }
};

// UserError for a line that names nothing in the graph, unless `lenient`, and for a node that no
// line covers.
Placement place(const composit::Graph& graph, const NodeNames& names, const Choices& choices,
                bool lenient = false);

}  // namespace flashlight::devices
