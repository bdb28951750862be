#include "composit/family/roll_loops.h"

#include <algorithm>
#include <optional>
#include <set>

#include "composit/family/local_hash.h"
#include "composit/family/merge_branches.h"
#include "composit/ir/error.h"
#include "composit/ir/flat_map.h"
#include "composit/ir/transform.h"
#include "composit/ops/control_flow.h"
#include "composit/ops/functions.h"

namespace composit {
namespace {

const Symbol kReadNumber("aten::_local_scalar_dense"), kEffectKey("effect");

using Kind = TripOperand::Kind;

// A bool of one tensor; other questions make no loop.
bool is_question(const Node& node) {
  return node.op() == kReadNumber && bool_read_by(node).has_value();
}
std::string line_of(const Node& node) { return std::string(node.annotation("source")); }

// The trips of a loop in a graph: nodes between questions with the answer that goes on, up to one
// with the other answer.
struct AskedTrips {
  size_t effect = 0;                        // of the first question
  NodePtr first, last;                      // questions
  std::vector<std::vector<NodePtr>> nodes;  // by trip
  std::vector<LazyTensor> questions;        // at the end of each trip
};

// The trips from effect `at` on; nothing where it is not the first question of a loop.
std::optional<AskedTrips> trips_at(const Graph& graph, size_t at) {
  const auto& effects = graph.effects();
  if (!is_question(*effects[at])) return std::nullopt;
  const std::string line = line_of(*effects[at]);
  const std::optional<bool> goes_on = bool_read_by(*effects[at]);
  size_t end = at + 1;
  const auto asks = [&](size_t i) {
    return i < effects.size() && is_question(*effects[i]) && line_of(*effects[i]) == line;
  };
  while (asks(end) && bool_read_by(*effects[end]) == goes_on) ++end;
  if (!asks(end)) return std::nullopt;
  AskedTrips trips{at, effects[at], effects[end], {}, {}};
  size_t next = at;  // the question that comes next in the order of nodes
  for (const NodePtr& node : graph.nodes()) {
    if (is_input(*node)) continue;
    if (next <= end && node == effects[next]) {
      if (next > at) trips.questions.push_back(node->operands()[0]);
      if (next++ < end) trips.nodes.emplace_back();
    } else if (next > at && next <= end) {
      trips.nodes.back().push_back(node);
    }
  }
  if (next <= end) return std::nullopt;  // they are not in the order of nodes
  return trips;
}

// Trips, each node by its place in the first; the last one may lack nodes that nothing needs.
std::optional<TripPlaces> places_of(const AskedTrips& trips) {
  TripPlaces places;
  const std::vector<NodePtr>& first = trips.nodes[0];
  for (size_t trip = 0; trip < trips.nodes.size(); ++trip) {
    size_t place = 0;
    for (const NodePtr& node : trips.nodes[trip]) {
      const Hash hash = local_hash(*node);
      while (place < first.size() && local_hash(*first[place]) != hash) ++place;
      if (place == first.size()) return std::nullopt;
      places.insert(node.get(), {trip, place++});
    }
    const bool is_last = trip + 1 == trips.nodes.size();
    if (trips.nodes[trip].size() != first.size() && !is_last) return std::nullopt;
  }
  return places;
}

// The form of trips that are alike; nothing where they are not, or are too few to tell.
std::optional<LoopShape> shape_of(const AskedTrips& trips) {
  const size_t count = trips.nodes.size();
  const std::optional<TripPlaces> places = count < 2 ? std::nullopt : places_of(trips);
  if (!places) return std::nullopt;
  LoopShape shape{line_of(*trips.first), *bool_read_by(*trips.first), {}, {}, {}, 0, 0};
  const std::vector<NodePtr>& first = trips.nodes[0];
  const bool is_whole = trips.nodes[1].size() == first.size();
  if (!is_whole) return std::nullopt;
  for (size_t i = 0; i < first.size(); ++i) {
    shape.operations.push_back(first[i]->op());
    shape.operands.emplace_back();
    for (const LazyTensor& operand : trips.nodes[1][i]->operands()) {
      const auto found = operand_in(*places, 1, operand);
      if (!found) return std::nullopt;
      shape.operands.back().push_back(*found);
    }
  }
  const auto question = operand_in(*places, 1, trips.questions[1]);
  if (!question || question->kind != Kind::inner) return std::nullopt;
  shape.question = *question;
  return shape;
}

// Makes one loop of trips.
class LoopRoller {
 public:
  LoopRoller(const Graph& graph, const AskedTrips& trips, const LoopShape& shape)
      : graph_(graph), trips_(trips), shape_(shape) {}

  std::optional<Graph> run() {
    const std::optional<TripPlaces> places = places_of(trips_);
    if (!places || trips_.nodes[0].size() != shape_.operations.size()) return std::nullopt;
    places_ = *places;
    if (!fits() || !find_exits()) return std::nullopt;
    make_loop();
    return rest();
  }

 private:
  // A value that trips hand on, and what it is before the first.
  struct Slot {
    size_t node;
    uint32_t output;
    LazyTensor init;         // absent: nothing reads it
    bool is_before = false;  // the value of the trip before the last
  };

  const LazyTensor& operand_of_first(size_t node, size_t operand) const {
    return trips_.nodes[0][node]->operands()[operand];
  }
  Type type_of(size_t node, uint32_t output) const {
    return trips_.nodes[0][node]->outputs().at(output);
  }
  // Whether every trip is what the shape says.
  bool fits() {
    for (size_t trip = 0; trip < trips_.nodes.size(); ++trip) {
      for (const NodePtr& node : trips_.nodes[trip]) {
        const size_t place = places_.find(node.get())->second;
        if (node->op() != shape_.operations[place] || node->effect() >= 0 ||
            node->operands().size() != shape_.operands[place].size())
          return false;
        for (size_t i = 0; i < node->operands().size(); ++i)
          if (!fits(trip, place, i, node->operands()[i])) return false;
        if (trip == 0 && views_others(places_, *node)) return false;
      }
      const auto question = operand_in(places_, trip, trips_.questions[trip]);
      if (!question || *question != shape_.question) return false;
    }
    return true;
  }

  bool fits(size_t trip, size_t place, size_t operand, const LazyTensor& value) {
    const TripOperand& expected = shape_.operands[place][operand];
    const auto found = operand_in(places_, trip, value);
    if (!found) return false;
    if (trip > 0)
      return *found == expected &&
             (found->kind != Kind::outside ||
              value.defined() == operand_of_first(place, operand).defined()) &&
             (found->kind != Kind::outside || !value || value == operand_of_first(place, operand));
    if (expected.kind != Kind::carried) return *found == expected;
    if (found->kind != Kind::outside || !value) return false;
    if (!same_values(value.type(), type_of(expected.node, expected.output))) return false;
    add_slot(expected.node, expected.output, value);
    return true;
  }

  size_t add_slot(size_t node, uint32_t output, const LazyTensor& init, bool is_before = false) {
    for (size_t i = 0; i < slots_.size(); ++i)
      if (slots_[i].node == node && slots_[i].output == output &&
          slots_[i].is_before == is_before && (!init || slots_[i].init == init))
        return i;
    slots_.push_back({node, output, init, is_before});
    return slots_.size() - 1;
  }

  // The slot that a value behind the loop comes from; nothing: it is of an earlier trip.
  std::optional<size_t> exit_of(const std::pair<size_t, size_t>& place, uint32_t output) {
    const size_t count = trips_.nodes.size();
    if (place.first + 1 == count) return add_slot(place.second, output, {});
    if (place.first + 2 != count) return std::nullopt;
    add_slot(place.second, output, {});
    return add_slot(place.second, output, {}, /*is_before=*/true);
  }

  // What is read behind the loop is a value of the last trip, or of the one before.
  bool find_exits() {
    bool good = true;
    const auto visit = [&](const LazyTensor& value) {
      const auto* place = value ? places_.find(value.node.get()) : nullptr;
      if (place != nullptr) good = exit_of(*place, value.index).has_value() && good;
    };
    for (const NodePtr& node : behind())
      for (const LazyTensor& operand : node->operands()) visit(operand);
    for (const LazyTensor& output : graph_.outputs()) visit(output);
    for (const auto& [target, value] : graph_.mutations()) visit(value);
    return good;
  }

  std::vector<NodePtr> behind() const {
    const auto& nodes = graph_.nodes();
    const auto last = std::find(nodes.begin(), nodes.end(), trips_.last);
    std::vector<NodePtr> behind;
    for (auto node = last + 1; node != nodes.end(); ++node)
      if (!is_input(**node)) behind.push_back(*node);
    return behind;
  }

  LazyTensors body(const LazyTensors& carried) const {
    std::vector<NodePtr> copies;
    for (size_t place = 0; place < trips_.nodes[0].size(); ++place) {
      const Node& node = *trips_.nodes[0][place];
      LazyTensors operands;
      for (size_t i = 0; i < node.operands().size(); ++i) {
        const TripOperand& operand = shape_.operands[place][i];
        const LazyTensor& first = node.operands()[i];
        if (operand.kind == Kind::inner)
          operands.push_back({copies[operand.node], operand.output});
        else if (operand.kind == Kind::outside)
          operands.push_back(first);
        else
          operands.push_back(carried.at(1 + slot_of(operand, first)));
      }
      NodeSpec spec = copy_of(node, std::move(operands));
      spec.place = 0;
      copies.push_back(std::move(spec).make_node());
    }
    LazyTensors next = {{copies[shape_.question.node], shape_.question.output}};
    for (const Slot& slot : slots_)
      next.push_back(slot.is_before
                         ? carried.at(1 + slot_of({Kind::carried, slot.node, slot.output}))
                         : LazyTensor{copies[slot.node], slot.output});
    return next;
  }
  // `init`: absent for any.
  size_t slot_of(const TripOperand& operand, const LazyTensor& init = {}) const {
    const auto found = std::find_if(slots_.begin(), slots_.end(), [&](const Slot& slot) {
      return slot.node == operand.node && slot.output == operand.output && !slot.is_before &&
             (!init || (slot.init && slot.init == init));
    });
    return static_cast<size_t>(found - slots_.begin());
  }

  void make_loop() {
    LazyTensors init = {trips_.first->operands()[0]};
    for (const Slot& slot : slots_) {
      const Type type = type_of(slot.node, slot.output);
      init.push_back(slot.init ? slot.init : full(type.sizes, 0, type.dtype));
    }
    const auto condition = [&](const LazyTensors& carried) {
      return shape_.goes_on ? carried[0]
                            : apply("aten::logical_not", {ArgumentValue(carried[0])}).at(0);
    };
    const LazyTensors results =
        while_loop(condition, [&](const LazyTensors& carried) { return body(carried); }, init,
                   {.limit = shape_.most});
    const Node& plain = *results.at(0).node;
    NodeSpec spec = copy_of(plain, plain.operands());
    spec.place = 0;
    for (size_t i = 0; i < slots_.size(); ++i)
      spec.outputs[i + 1] = type_of(slots_[i].node, slots_[i].output);
    for (const std::string_view key : {"scope", "source"})
      if (const std::string_view remark = trips_.first->annotation(key); !remark.empty())
        spec.annotate(key, std::string(remark));
    loop_ = std::move(spec).make_node();
  }

  // A read of whether there were as few trips as nobody showed.
  NodePtr least_trips() const {
    const auto trips = static_cast<uint32_t>(loop_->outputs().size() - 1);
    List expected;
    expected.items.emplace_back(Scalar(true));
    NodeSpec spec =
        NodeSpec(kReadNumber)
            .tensor(apply_one("aten::ge.Scalar", {LazyTensor{loop_, trips}, Scalar(shape_.least)}))
            .run("expected", std::move(expected))
            .run("effect", int64_t{0});
    for (const Annotation& annotation : trips_.last->annotations())
      spec.annotations.push_back(annotation);
    return std::move(spec).make_node();
  }

  // The nodes behind the loop, made anew, with their effects in a row.
  Graph rest() {
    FlatMap<const Node*, NodePtr> now;
    const auto value = [&](const LazyTensor& old) {
      if (!old) return old;
      if (const auto* place = places_.find(old.node.get()))
        return LazyTensor{loop_, static_cast<uint32_t>(1 + *exit_of(*place, old.index))};
      const NodePtr* copy = now.find(old.node.get());
      return copy == nullptr ? old : LazyTensor{*copy, old.index};
    };
    Graph::Parts parts = graph_.parts();
    parts.effects.resize(trips_.effect + 1);
    const auto place_effect = [&](NodeSpec spec) {
      for (NamedAttribute& attribute : spec.execution)
        if (attribute.name == kEffectKey) attribute.value = parts.effects.back()->effect() + 1;
      parts.effects.push_back(std::move(spec).make_node());
      return parts.effects.back();
    };
    if (shape_.least > 1) {
      const NodePtr read = least_trips();
      place_effect(copy_of(*read, read->operands()));
    }
    for (const NodePtr& node : behind()) {
      LazyTensors operands;
      for (const LazyTensor& operand : node->operands()) operands.push_back(value(operand));
      NodeSpec spec = copy_of(*node, std::move(operands));
      spec.place = 0;
      now.insert(node.get(),
                 node->effect() >= 0 ? place_effect(std::move(spec)) : std::move(spec).make_node());
    }
    for (LazyTensor& output : parts.outputs) output = value(output);
    for (Mutation& mutation : parts.mutations) mutation.value = value(mutation.value);
    return Graph(std::move(parts));
  }
  size_t exit_of(size_t node, uint32_t output) { return add_slot(node, output, {}); }

  const Graph& graph_;
  const AskedTrips& trips_;
  const LoopShape& shape_;
  TripPlaces places_;
  std::vector<Slot> slots_;
  NodePtr loop_;
};

bool same_form(const LoopShape& a, const LoopShape& b) {
  return a.operations == b.operations && a.operands == b.operands && a.question == b.question;
}

}  // namespace

std::vector<LoopShape> loops_of(const std::vector<Graph>& examples) {
  std::vector<LoopShape> shapes;
  std::set<std::pair<std::string, bool>> unlike;  // loops of several forms
  const auto visit = [&](auto work) {
    for (const Graph& graph : examples)
      for (size_t at = 0; at < graph.effects().size();) {
        const std::optional<AskedTrips> trips = trips_at(graph, at);
        if (trips) work(*trips);
        at += trips ? trips->nodes.size() + 1 : 1;
      }
  };
  visit([&](const AskedTrips& trips) {
    const std::optional<LoopShape> shape = shape_of(trips);
    if (!shape) return;
    const auto known = std::find_if(shapes.begin(), shapes.end(), [&](const LoopShape& other) {
      return other.place == shape->place && other.goes_on == shape->goes_on;
    });
    if (known == shapes.end())
      shapes.push_back(*shape);
    else if (!same_form(*known, *shape))
      unlike.insert({shape->place, shape->goes_on});
  });
  visit([&](const AskedTrips& trips) {
    for (LoopShape& shape : shapes) {
      if (shape.place != line_of(*trips.first) || shape.goes_on != bool_read_by(*trips.first))
        continue;
      const auto count = static_cast<int64_t>(trips.nodes.size());
      shape.least = shape.least == 0 ? count : std::min(shape.least, count);
      shape.most = std::max(shape.most, count);
    }
  });
  std::erase_if(shapes, [&](const LoopShape& shape) {
    return shape.least == shape.most || unlike.contains({shape.place, shape.goes_on});
  });
  return shapes;
}

Graph rolled(const Graph& graph, const std::vector<LoopShape>& loops) {
  Graph now = graph;
  for (size_t at = 0; at < now.effects().size(); ++at) {
    const std::optional<AskedTrips> trips = trips_at(now, at);
    if (!trips) continue;
    for (const LoopShape& shape : loops) {
      const auto count = static_cast<int64_t>(trips->nodes.size());
      if (shape.place != line_of(*trips->first) || shape.goes_on != bool_read_by(*trips->first) ||
          count < shape.least || count > shape.most)
        continue;
      if (std::optional<Graph> one = LoopRoller(now, *trips, shape).run()) {
        now = *std::move(one);
        break;
      }
    }
  }
  return now;
}

std::string print(const LoopShape& loop) {
  return "while at " + (loop.place.empty() ? "an unknown line" : loop.place) + ": shown from " +
         std::to_string(loop.least) + " to " + std::to_string(loop.most) + " trips";
}

}  // namespace composit
