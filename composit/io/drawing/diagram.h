// A graph as it is drawn: items (boxes of text), edges, and boxes around items that stand for
// module scopes.
//
//   Diagram diagram = make_diagram(graph, /*open_bodies=*/false);
//   fold_repeats(diagram);  simplify(diagram);                       // arrange.h
//
// Parameters, buffers and constants are no items; they stand in the label of the item that reads
// them. Items are numbered in topological order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "composit/io/drawing/op_kind.h"
#include "composit/ir/graph.h"

namespace composit::drawing {

inline constexpr uint32_t kNone = UINT32_MAX;

// A parameter, buffer or constant beside an item.
struct Satellite {
  std::string name;  // full: "encoder.layer.0.weight"
  std::string type;
};

struct Item {
  OpKind kind = OpKind::other;
  std::string title;    // "conv2d"
  std::string caption;  // name of the scope that holds nothing but this item
  std::vector<std::string> types;
  std::vector<Satellite> satellites;
  std::vector<std::string> remarks;  // "effect 3"
  std::vector<std::string> writes;   // names of the inputs that hold its outputs afterwards
  std::string tooltip;
  uint32_t box = 0;
  Hash signature;  // operation, attributes and types; equal for items that a reader may take for
                   // the same
};

struct Edge {
  uint32_t from;
  uint32_t to;
  auto operator<=>(const Edge&) const = default;
};

// An item or a box inside a box.
struct Member {
  uint32_t index;
  bool is_box;
};

struct Box {
  std::string name;  // relative to the parent's
  std::string path;
  uint32_t parent = kNone;
  std::vector<Member> members;  // in the order of their first items
  uint32_t repeats = 1;         // how many equal boxes in a row this one stands for
  std::string last_name;        // of the last one of those
  uint64_t nodes = 0;           // in it and all boxes inside, repeats counted
};

struct Diagram {
  std::vector<Item> items;
  std::vector<Edge> edges;  // sorted, each once
  std::vector<Box> boxes;   // boxes[0] is the whole picture
};

// All items in `box` and the boxes inside it, in topological order.
std::vector<uint32_t> items_in(const Diagram& diagram, uint32_t box);

// `open_bodies`: nodes with a `body` become boxes that show it.
Diagram make_diagram(const Graph& graph, bool open_bodies);

}  // namespace composit::drawing
