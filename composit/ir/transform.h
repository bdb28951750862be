// Tools for passes: they make a graph of a graph, and share all nodes that do not change.
//
//   Graph relu6 = rebuild(graph, [](const Node& node, const LazyTensors& operands) {
//     std::optional<Replacement> replacement;  // nothing: keep it
//     if (node.op() == Symbol("aten::relu")) {
//       NodeSpec spec = copy_of(node, operands);
//       spec.op = Symbol("aten::relu6");
//       replacement = replace_by(std::move(spec).make_node());
//     }
//     return replacement;
//   });
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "composit/ir/graph.h"

namespace composit {

// The values that replace the outputs of a node in the new graph.
struct Replacement {
  LazyTensors outputs = {};           // one per output of the node; absent for an unused one
  std::vector<NodePtr> effects = {};  // the nodes that take the node's place in the effect order
};

// `node` for another one with the same outputs.
Replacement replace_by(const NodePtr& node);

// The start of a node that replaces `node`: equal to it but for its operands (as many as it has),
// and at the same position in the order of nodes.
NodeSpec copy_of(const Node& node, LazyTensors operands);

// Gets a node of the old graph and its operands in the new one; an operand whose node left it out
// is absent. No result: keep the node.
using Rewrite =
    std::function<std::optional<Replacement>(const Node& node, const LazyTensors& operands)>;

// Calls `rewrite` for every node but those within regions, operands first. A node that is kept is
// shared if its operands are what they were, and copied with the new ones otherwise. An input that
// is replaced by another kind of node stays in the list of inputs. InternalError where a value that
// was left out is needed after all. New effects must keep to the order of places (`verify`).
// Linear, not recursive.
Graph rebuild(const Graph& graph, const Rewrite& rewrite);

// The graph with each region of its nodes replaced by pass(region), which must keep the types of
// what goes in and comes out. Regions within regions are left to `pass`; one that several nodes
// share is passed once and still shared.
Graph rebuild_regions(const Graph& graph, const std::function<Graph(const Graph&)>& pass);

// The nodes of `body` with `arguments`, one per input, in the place of its inputs; its outputs.
// `edit`, where given, may change what it likes in a node before it is made.
LazyTensors inlined(const Graph& body, const LazyTensors& arguments,
                    const std::function<void(NodeSpec&)>& edit = {});

// A remark for a node of a graph or of its regions.
struct NodeAnnotation {
  const Node* node;       // a node of the graph
  Annotation annotation;  // a remark on the node, or on an operand
};

// The graph with these remarks. One of the same key and operand is replaced. UserError for a node
// that is not in the graph.
Graph annotate(const Graph& graph, const std::vector<NodeAnnotation>& annotations);

}  // namespace composit
