// A graph as parts, each of which one device computes.
//
//   const Partition parts = partition(graph, names, placement);
//   parts.parts[1].graph;               // reads parts.values[parts.parts[1].reads[0]], …
//
// Parts run stage by stage: a part reads what earlier stages made, so those of one stage may run at
// the same time. Draws and guards keep their order. Constants, and views of inputs that cost
// nothing to make again, are in each part that reads them.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "composit/ir/graph.h"
#include "flashlight/devices/placement.h"

namespace flashlight::devices {

using Numbers = std::vector<size_t>;

// A value that parts pass on.
struct PassedValue {
  std::string name;
  composit::Type type;
  size_t maker = kCaller;  // the part; kCaller: an input of the graph
  bool is_weight = false;  // a parameter or buffer that is neither written nor a result
  static constexpr size_t kCaller = SIZE_MAX;
};

struct Part {
  size_t device = 0;  // among Placement::devices
  size_t stage = 0;
  composit::Graph graph = {};  // its inputs are the values of `reads`, its outputs those of `makes`
  Numbers reads = {}, makes = {};  // among Partition::values
  size_t operations = 0;           // computed nodes
  bool has_effects = false;        // draws or guards
};

struct Partition {
  std::vector<DeviceChoice> devices;
  std::vector<PassedValue> values;  // the graph's inputs first
  std::vector<Part> parts;          // by stage
  Numbers results;                  // outputs that are there, then mutations: among `values`
  std::set<size_t> decided;         // Placement::lines of what parts compute, not make again
};

// "// ---- part 3 on small", and the source; of a backend without one, the operations, as comments.
std::string section(const Partition& partition, size_t part, const std::string& source);

Partition partition(const composit::Graph& graph, const NodeNames& names,
                    const Placement& placement);

}  // namespace flashlight::devices
