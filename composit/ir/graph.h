// A view of a graph: what goes in, what comes out, what must happen on the way.
//
//   Graph g({.inputs = {x}, .outputs = {y}});
//   for (const NodePtr& node : g.nodes()) ...       // operands before users
//   g == parse(print(g));
//
// Graphs share their nodes. The same class is the body of a region, whose inputs are then its block
// arguments.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "composit/ir/flat_map.h"
#include "composit/ir/node.h"

namespace composit {

// After a run `target`, an input, holds `value`.
struct Mutation {
  LazyTensor target;  // an input
  LazyTensor value;   // its content at the end
  bool operator==(const Mutation&) const = default;
};

// A user of a node's output: operand number `operand` of `node` is output `output`.
struct Use {
  const Node* node;  // the user
  uint32_t operand;  // among the operands of the user
  uint32_t output;   // which output of the node is used
};

class Graph {
 public:
  // The parts of a graph.
  struct Parts {
    LazyTensors inputs = {};               // in declared order; unused inputs included
    LazyTensors outputs = {};              // may repeat; an empty one is an undefined tensor
    std::vector<Mutation> mutations = {};  // one per input that is written
    std::vector<NodePtr> effects = {};     // in effect order
  };

  Graph() : Graph(Parts{}) {}  // without inputs and outputs
  // Inputs that outputs, mutations and effects need have to be among `parts.inputs`: see verify.h.
  explicit Graph(Parts parts);

  // The parts that the graph was made of.
  const LazyTensors& inputs() const { return state_->parts.inputs; }
  const LazyTensors& outputs() const { return state_->parts.outputs; }
  const std::vector<Mutation>& mutations() const { return state_->parts.mutations; }
  const std::vector<NodePtr>& effects() const { return state_->parts.effects; }
  const Parts& parts() const { return state_->parts; }

  // Every node that is needed, operands before users, in the order of creation (Node::place);
  // computed on first call.
  const std::vector<NodePtr>& nodes() const;
  // The number of nodes, inputs and constants included.
  size_t size() const { return nodes().size(); }
  // Users of all outputs of `node` within this graph, in topological order. O(edges) on first call.
  const std::vector<Use>& successors(const Node& node) const;

  // The hash of everything that `==` compares: the parts, and the hashes of nodes. Computed on
  // first call.
  Hash hash() const;
  bool operator==(const Graph& other) const { return hash() == other.hash(); }

 private:
  struct State {
    Parts parts;
    std::once_flag ordered, linked;
    std::vector<NodePtr> nodes;
    FlatMap<const Node*, std::vector<Use>> uses;
  };
  std::shared_ptr<State> state_;  // copies of a Graph share it
};

// All nodes the roots depend on, roots included, operands before users, ordered by Node::place.
// Iterative, O(n log n).
std::vector<NodePtr> topological_order(const std::vector<NodePtr>& roots);

// Calls `visit` with every region among the attributes of `node`, but not with those within them.
void for_each_region(const Node& node, const std::function<void(const Region&)>& visit);

}  // namespace composit
