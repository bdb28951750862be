#include "composit/family/roll_scans.h"

#include <algorithm>
#include <optional>
#include <set>

#include "composit/family/family.h"
#include "composit/family/scan_roller.h"
#include "composit/family/structure.h"
#include "composit/family/unify.h"
#include "composit/ir/transform.h"

namespace composit {
namespace {

// The graph with all trips of this form rolled; nothing where some cannot be.
std::optional<Graph> with_scans(Graph graph, ScanShape shape) {
  for (; shape.loops > 0; --shape.loops) {
    const TripSequence sequence(graph);
    const std::vector<Trips> all = trips_of(sequence, shape);
    if (all.size() != shape.loops) return std::nullopt;
    std::optional<Graph> now = with_scan(graph, sequence, all[0], shape);
    if (!now) return std::nullopt;
    graph = *std::move(now);
  }
  return graph;
}

// The numbers of trips by example and place; nothing where these are no loops over sizes: their
// number is another in some example, or their trips have too few numbers for a formula.
std::optional<std::vector<int64_t>> counts_of(const std::vector<TripSequence>& sequences,
                                              ScanShape& shape) {
  for (const TripSequence& sequence : sequences)
    shape.loops = std::max(shape.loops, trips_of(sequence, shape).size());
  std::vector<std::vector<int64_t>> counts;
  for (const TripSequence& sequence : sequences) {
    counts.emplace_back();
    for (const Trips& trips : trips_of(sequence, shape))
      counts.back().push_back(static_cast<int64_t>(trips.count));
    if (counts.back().size() != shape.loops) return std::nullopt;
  }
  bool differ = false;
  for (size_t loop = 0; loop < shape.loops; ++loop) {
    std::set<int64_t> numbers;
    for (const auto& of_example : counts) numbers.insert(of_example[loop]);
    differ = differ || numbers.size() >= kLeastExamples;
  }
  if (!differ) return std::nullopt;
  std::vector<int64_t> all;
  for (const auto& of_example : counts) all.insert(all.end(), of_example.begin(), of_example.end());
  return all;
}

bool is_alike(const std::vector<Graph>& graphs) {
  const std::vector<Hash> structure = structure_of(graphs[0]);
  return std::all_of(graphs.begin() + 1, graphs.end(),
                     [&](const Graph& graph) { return structure_of(graph) == structure; });
}

// Rolls the first form that all examples have; false: there is none.
bool roll_one(std::vector<Graph>& graphs, std::vector<ScanShape>& loops) {
  std::vector<TripSequence> sequences;
  for (const Graph& graph : graphs) sequences.emplace_back(graph);
  for (const TripSequence& from : sequences)
    for (ScanShape& shape : repeated(from)) {
      const auto counts = counts_of(sequences, shape);
      if (!counts) continue;
      std::vector<Graph> now;
      for (const Graph& graph : graphs) {
        std::optional<Graph> one = with_scans(graph, shape);
        if (!one) break;
        now.push_back(*std::move(one));
      }
      if (now.size() < graphs.size()) continue;
      graphs = std::move(now);
      shape.shown = *counts;
      loops.push_back(std::move(shape));
      return true;
    }
  return false;
}

// What is written into memory and read from there again, read where it comes from:
//   * a copy whose result is only written elsewhere is its source;
//   * what is read of a value where it was written last is what was written, and elsewhere, what
//     stood there before.
class Forwarding {
 public:
  explicit Forwarding(const Graph& graph) : graph_(graph) {
    for (const NodePtr& node : graph.nodes()) {
      const std::optional<Piece> access = access_of(*node);
      for (size_t i = 0; i < node->operands().size(); ++i)
        read(node->operands()[i], i == 1 && access && access->is_written);
    }
    for (const LazyTensor& output : graph.outputs()) read(output, false);
    for (const auto& [target, value] : graph.mutations()) read(value, false);
  }

  Graph run() const {
    return rebuild(graph_, [&](const Node& node, const LazyTensors& operands) {
      std::optional<Replacement> now;
      if (is_written_copy(node))
        now = Replacement{{operands[1]}, {}};
      else if (const auto source = source_of(node, operands))
        now = Replacement{{*source}, {}};
      return now;
    });
  }

 private:
  void read(const LazyTensor& value, bool writes) {
    if (!value) return;
    only_written_.insert(value.node.get(), true);
    if (!writes) only_written_[value.node.get()] = false;
  }

  bool is_written_copy(const Node& node) const {
    static const Symbol copy("aten::copy");
    const bool* is_written = only_written_.find(&node);
    return node.op() == copy && is_written != nullptr && *is_written &&
           same_values(node.operands().at(1).type(), node.outputs()[0]);
  }

  static std::optional<LazyTensor> source_of(const Node& node, const LazyTensors& operands) {
    const std::optional<Piece> reads = access_of(node);
    if (!reads || reads->is_written) return std::nullopt;
    LazyTensor from = operands[0];
    for (;;) {
      const std::optional<Piece> writes = access_of(*from.node);
      if (!writes || !writes->is_written || writes->axis != reads->axis) break;
      const int64_t begin = writes->index, end = begin + writes->width.value_or(1);
      if (writes->index == reads->index && writes->width == reads->width)
        return from.node->operands()[1];
      if (reads->index < end && reads->index + reads->width.value_or(1) > begin) break;
      from = from.node->operands()[0];
    }
    if (from == operands[0]) return std::nullopt;
    LazyTensors source = operands;
    source[0] = from;
    return LazyTensor{copy_of(node, std::move(source)).make_node(), 0};
  }

  const Graph& graph_;
  FlatMap<const Node*, bool> only_written_;
};

}  // namespace

std::vector<ScanShape> roll_scans(std::vector<Graph>& examples) {
  std::vector<ScanShape> loops;
  if (examples.empty() || is_alike(examples)) return loops;
  std::vector<Graph> graphs;
  for (const Graph& example : examples) graphs.push_back(Forwarding(example).run());
  while (!is_alike(graphs) && roll_one(graphs, loops)) {
  }
  if (!loops.empty()) examples = std::move(graphs);
  return loops;
}

Graph rolled(const Graph& graph, const std::vector<ScanShape>& loops) {
  if (loops.empty()) return graph;
  Graph now = Forwarding(graph).run();
  for (const ScanShape& shape : loops)
    if (std::optional<Graph> one = with_scans(now, shape)) now = *std::move(one);
  return now;
}

std::string print(const ScanShape& loop) {
  std::set<int64_t> shown(loop.shown.begin(), loop.shown.end());
  return "loop at " + (loop.place.empty() ? "an unknown line" : loop.place) + ": shown with " +
         list_of({shown.begin(), shown.end()}) + " trips";
}

}  // namespace composit
