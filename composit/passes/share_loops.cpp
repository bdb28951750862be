#include "composit/passes/share_loops.h"

#include <algorithm>

#include "composit/ir/flat_map.h"
#include "composit/ir/transform.h"
#include "composit/passes/common_subexpressions.h"

namespace composit {
namespace {

bool is_loop(const Node& node) {
  const std::string& name = node.op().str();
  return name == "composit::map" || name == "composit::scan" || name == "composit::while_loop";
}

size_t carried_of(const Node& loop) {
  return loop.op().str() == "composit::map" ? 0 : loop.arguments().at(0).size;
}

const Graph& body_of(const Node& loop) { return *loop.attribute("body").as<Region>(); }

// The number of results of the body after the carried values; the node has them at the same index.
size_t outputs_of(const Node& loop) { return body_of(loop).outputs().size() - carried_of(loop); }

// Equal for loops with the same trips: all but the outputs of their bodies.
Hash trips_of(const Node& loop) {
  Hasher hasher;
  hasher.add(std::string_view(loop.op().str()));
  for (const Argument& argument : loop.arguments()) hasher.add(uint64_t{argument.size});
  for (const LazyTensor& operand : loop.operands()) hasher.add(operand.hash());
  for (const NamedAttribute& attribute : loop.attributes()) {
    if (attribute.key() == "body") continue;
    hasher.add(attribute.key());
    attribute.value.add_to(hasher);
  }
  const Graph& body = body_of(loop);
  for (const LazyTensor& input : body.inputs()) hasher.add(input.hash());
  for (size_t i = 0; i < carried_of(loop); ++i) hasher.add(body.outputs()[i].hash());
  return hasher.finish();
}

// Loops with the same trips, and the outputs of any of them that are used.
struct LoopGroup {
  const Node* first = nullptr;
  LazyTensors outputs;           // of bodies
  std::vector<Type> types;       // of the stacked outputs
  FlatMap<Hash, size_t> places;  // among `outputs`
  NodePtr merged;
};

class LoopSharing {
 public:
  explicit LoopSharing(const Graph& graph) : graph_(graph) {
    find_used();
    for (const NodePtr& node : graph.nodes())
      if (is_loop(*node)) add(*node);
  }

  Graph run() {
    return rebuild(graph_, [&](const Node& node, const LazyTensors& operands) {
      std::optional<Replacement> replacement;
      if (is_loop(node)) replacement = replaced(node, operands);
      return replacement;
    });
  }

 private:
  void find_used() {
    const auto use = [&](const LazyTensor& tensor) {
      if (!tensor || !is_loop(*tensor.node)) return;
      auto& used = used_[tensor.node.get()];
      used.resize(tensor.node->outputs().size());
      used[tensor.index] = true;
    };
    for (const NodePtr& node : graph_.nodes())
      for (const LazyTensor& operand : node->operands()) use(operand);
    for (const LazyTensor& output : graph_.outputs()) use(output);
    for (const Mutation& mutation : graph_.mutations()) use(mutation.value);
  }
  bool is_used(const Node& loop, size_t output) const {
    const auto* used = used_.find(&loop);
    return used != nullptr && (*used)[output];
  }

  void add(const Node& loop) {
    LoopGroup& group = groups_[trips_of(loop)];
    if (group.first == nullptr) group.first = &loop;
    const size_t carried = carried_of(loop);
    Graph::Parts chosen{.inputs = body_of(loop).inputs()};
    for (size_t i = carried; i < carried + outputs_of(loop); ++i) {
      const LazyTensor& output = body_of(loop).outputs()[i];
      if (!is_used(loop, i) || !group.places.insert(output.hash(), group.places.size())) continue;
      chosen.outputs.push_back(output);
      group.types.push_back(loop.outputs()[i]);
    }
    // The bodies' inputs are equal, but each has its own.
    const auto outputs = inlined(Graph(std::move(chosen)), body_of(*group.first).inputs());
    group.outputs.insert(group.outputs.end(), outputs.begin(), outputs.end());
  }

  Replacement replaced(const Node& loop, const LazyTensors& operands) {
    LoopGroup& group = *groups_.find(trips_of(loop));
    if (group.merged == nullptr) group.merged = merged(group, operands);
    const size_t carried = carried_of(loop), count = outputs_of(loop);
    Replacement replacement;
    for (size_t i = 0; i < loop.outputs().size(); ++i) {
      size_t place = i;
      if (i >= carried + count) place = i - count + group.outputs.size();
      if (i >= carried && i < carried + count) {
        const size_t* found = group.places.find(body_of(loop).outputs()[i].hash());
        if (found == nullptr) {
          replacement.outputs.emplace_back();
          continue;
        }
        place = carried + *found;
      }
      replacement.outputs.push_back(LazyTensor{group.merged, static_cast<uint32_t>(place)});
    }
    return replacement;
  }

  static NodePtr merged(const LoopGroup& group, const LazyTensors& operands) {
    const Node& first = *group.first;
    const auto carried = static_cast<int64_t>(carried_of(first));
    Graph::Parts parts = body_of(first).parts();
    parts.outputs.resize(carried_of(first));
    parts.outputs.insert(parts.outputs.end(), group.outputs.begin(), group.outputs.end());
    const Graph body = common_subexpressions(Graph(std::move(parts)));
    NodeSpec spec = copy_of(first, operands);
    for (NamedAttribute& attribute : spec.attributes)
      if (attribute.key() == "body") attribute.value = std::make_shared<const Graph>(body);
    const auto stacked = spec.outputs.begin() + carried;
    spec.outputs.erase(stacked, stacked + static_cast<int64_t>(outputs_of(first)));
    spec.outputs.insert(spec.outputs.begin() + carried, group.types.begin(), group.types.end());
    return std::move(spec).make_node();
  }

  const Graph& graph_;
  FlatMap<const Node*, std::vector<bool>> used_;
  FlatMap<Hash, LoopGroup> groups_;
};

}  // namespace

Graph share_loops(const Graph& graph) {
  const Graph inner = rebuild_regions(graph, share_loops);
  return LoopSharing(inner).run();
}

}  // namespace composit
