#include "composit/family/scan_roller.h"

#include <algorithm>
#include <map>
#include <set>

#include "composit/family/bind.h"
#include "composit/family/views.h"
#include "composit/ir/transform.h"
#include "composit/ops/control_flow.h"
#include "composit/ops/functions.h"

namespace composit {
namespace {

using Kind = TripOperand::Kind;

const Symbol kStack("aten::stack"), kCat("aten::cat");

// Makes one scan of trips.
class ScanRoller {
 public:
  ScanRoller(const Graph& graph, const TripSequence& sequence, const Trips& trips,
             const ScanShape& shape)
      : graph_(graph), sequence_(sequence), trips_(trips), shape_(shape) {}

  // Nothing where a value of a trip is read in a way that no scan gives.
  std::optional<Graph> run() {
    const size_t end = trips_.begin + trips_.count * length();
    for (size_t i = end; i < sequence_.nodes.size(); ++i) behind_.insert(sequence_.nodes[i].get());
    find_writes();
    if (!find_carried() || !find_slots() || !find_stacks()) return std::nullopt;
    make_scan();
    return rest();
  }

 private:
  // A value that trips hand on, and what it is before the first; of one trip back, or of more.
  struct Carried {
    size_t node;
    uint32_t output;
    size_t back;
    LazyTensor init;
    std::optional<size_t> from = {};  // of more: the value of one less, which it is next
    bool operator==(const Carried&) const = default;
  };
  using Value = std::pair<size_t, uint32_t>;  // of a trip: a node, and one of its outputs

  size_t length() const { return shape_.forms.size(); }
  const Node& first(size_t place) const { return *sequence_.nodes[trips_.begin + place]; }
  const std::pair<size_t, size_t>* place_of(const LazyTensor& value) const {
    return value ? trips_.places.find(value.node.get()) : nullptr;
  }

  // Trips that write one behind the other write all at once, behind the loop.
  void find_writes() {
    for (size_t i = 0; i < length(); ++i)
      if (shape_.steps[i] != 0 && access_of(first(i))->is_written) writes_.push_back(i);
  }
  bool writes(size_t place) const {
    return std::find(writes_.begin(), writes_.end(), place) != writes_.end();
  }

  // False: there are fewer trips than some values are handed on for.
  bool find_carried() {
    for (size_t i = 0; i < length(); ++i)
      for (size_t j = writes(i) ? 1 : 0; j < shape_.operands[i].size(); ++j) {
        const TripOperand& operand = shape_.operands[i][j];
        if (operand.kind != Kind::carried) continue;
        if (operand.back > trips_.count) return false;
        carried_of_[{i, j}] = add_carried(operand, i, j);
      }
    return true;
  }
  // What operand `j` of node `i` hands on; in trip t, before the first has been handed on for as
  // many, it is what the value of `back` - t trips back is at first.
  size_t add_carried(const TripOperand& operand, size_t i, size_t j) {
    std::optional<size_t> from;
    for (size_t back = 1; back <= operand.back; ++back) {
      const size_t trip = operand.back - back;
      const Node& node = *sequence_.nodes[trips_.begin + trip * length() + i];
      const Carried one{operand.node, operand.output, back, node.operands()[j], from};
      const auto known = std::find(carried_.begin(), carried_.end(), one);
      from = static_cast<size_t>(known - carried_.begin());
      if (known == carried_.end()) carried_.push_back(one);
    }
    return *from;
  }
  // The number of a value of one trip back.
  std::optional<size_t> carried_of(size_t node, uint32_t output) const {
    for (size_t i = 0; i < carried_.size(); ++i)
      if (carried_[i].node == node && carried_[i].output == output && carried_[i].back == 1)
        return i;
    return std::nullopt;
  }

  // ---- what trips read -------------------------------------------------------------------------

  // Where the trips read or write that have an access at this place.
  Places places_of(size_t place) const {
    return places_from(*access_of(first(place)), shape_.steps[place]);
  }
  static Places places_from(const Piece& piece, int64_t step) {
    return {piece.of, piece.axis, piece.index, step, piece.width};
  }

  bool find_slots() {
    const auto add = [&](const Places& places, const Type& type) {
      if (places.step == 0 || places.width == 0) return false;
      slots_.push_back(slots_at(places, static_cast<int64_t>(trips_.count)));
      slot_types_.push_back(type);
      return true;
    };
    for (size_t i = 0; i < length(); ++i) {
      const Node& node = first(i);
      const std::optional<Piece> access = access_of(node);
      if (shape_.steps[i] != 0 && !access->is_written) {
        slot_of_node_[i] = slots_.size();
        add(places_of(i), node.outputs()[0]);
        continue;
      }
      for (size_t j = 0; j < node.operands().size(); ++j) {
        const TripOperand& operand = shape_.operands[i][j];
        if (operand.kind != Kind::slot) continue;
        slot_of_operand_[{i, j}] = slots_.size();
        const LazyTensor& value = node.operands()[j];
        if (!add(places_from(*piece_of(value), operand.step), value.type())) return false;
      }
    }
    return true;
  }

  // ---- what is read of trips -------------------------------------------------------------------

  // Values of all trips, in their order or in reverse, from operand `begin` of a node on.
  struct Run {
    Value value;
    bool reverse = false;
  };
  std::optional<Run> run_at(const Node& node, size_t begin) const {
    const auto* place = place_of(node.operands()[begin]);
    if (place == nullptr || slot_of_node_.contains(place->second) ||
        begin + trips_.count > node.operands().size())
      return std::nullopt;
    const Run run{{place->second, node.operands()[begin].index}, place->first != 0};
    for (size_t i = 0; i < trips_.count; ++i) {
      const LazyTensor& operand = node.operands()[begin + i];
      const auto* other = place_of(operand);
      const size_t trip = run.reverse ? trips_.count - 1 - i : i;
      if (other == nullptr || *other != std::pair(trip, run.value.first) ||
          operand.index != run.value.second)
        return std::nullopt;
    }
    return run;
  }

  // True for a node that puts together values of all trips.
  bool joins(const Node& node) const {
    if ((node.op() != kStack && node.op() != kCat) || !is_contiguous(node.outputs()[0]))
      return false;
    bool any = false;
    for (size_t j = 0; j < node.operands().size(); ++j) {
      any = any || run_at(node, j);
      if (node.operands()[j].dtype() != node.outputs()[0].dtype) return false;
    }
    return any;
  }

  // The value after the last trip, which the next would take.
  bool is_final(const std::pair<size_t, size_t>& place, uint32_t output) const {
    return place.first + 1 == trips_.count && carried_of(place.second, output).has_value();
  }

  // True where trips write every index of some range, each once.
  bool is_dense_write(size_t place) const {
    const std::optional<Piece> access = access_of(first(place));
    return !access->width || *access->width == std::abs(shape_.steps[place]);
  }

  bool find_stacks() {
    bool good = true;
    const auto read = [&](const LazyTensor& value) {
      const auto* place = place_of(value);
      if (place == nullptr) return;
      if (writes(place->second)) {
        good = good && place->first + 1 == trips_.count && is_dense_write(place->second);
        return;
      }
      if (slot_of_node_.contains(place->second)) return;  // it stands outside as well
      good = good && is_contiguous(value.type());
      if (!is_final(*place, value.index)) stacks_.insert({place->second, value.index});
    };
    for (size_t i = trips_.begin + trips_.count * length(); i < sequence_.nodes.size(); ++i) {
      const Node& node = *sequence_.nodes[i];
      const bool is_join = joins(node);
      for (size_t j = 0; j < node.operands().size(); ++j) {
        const std::optional<Run> run = is_join ? run_at(node, j) : std::nullopt;
        if (!run) {
          read(node.operands()[j]);
          continue;
        }
        stacks_.insert(run->value);
        j += trips_.count - 1;
      }
    }
    for (const LazyTensor& output : graph_.outputs()) read(output);
    for (const auto& [target, value] : graph_.mutations()) read(value);
    return good;
  }

  // ---- the loop --------------------------------------------------------------------------------

  // A trip as a graph of values with the types that they have in the capture, and what it takes
  // from outside.
  Graph trip(LazyTensors& outside) const {
    Graph::Parts parts;
    const auto block = [&](const Type& type) {
      parts.inputs.push_back(input(std::to_string(parts.inputs.size()), type, InputKind::block));
      return parts.inputs.back();
    };
    LazyTensors carried, slots, values;
    for (const Carried& one : carried_)
      carried.push_back(block(first(one.node).outputs()[one.output]));
    for (const Type& type : slot_types_) slots.push_back(block(type));
    const auto from_outside = [&](const LazyTensor& value) {
      if (!value || value.node->op() == ops::kConstant) return value;
      const auto known = std::find(outside.begin(), outside.end(), value);
      if (known != outside.end())
        return parts.inputs.at(carried.size() + slots.size() +
                               static_cast<size_t>(known - outside.begin()));
      outside.push_back(value);
      return block(value.type());
    };
    std::vector<NodePtr> copies(length());
    const auto value_of = [&](size_t place, uint32_t output) {
      const auto slot = slot_of_node_.find(place);
      return slot == slot_of_node_.end() ? LazyTensor{copies[place], output}
                                         : slots.at(slot->second);
    };
    const auto operand_of = [&](size_t place, size_t j) {
      const TripOperand& operand = shape_.operands[place][j];
      const LazyTensor& value = first(place).operands()[j];
      if (operand.kind == Kind::inner) return value_of(operand.node, operand.output);
      if (operand.kind == Kind::carried) return carried.at(carried_of_.at({place, j}));
      if (operand.kind == Kind::slot) return slots.at(slot_of_operand_.at({place, j}));
      return from_outside(value);
    };
    for (size_t i = 0; i < length(); ++i) {
      if (slot_of_node_.contains(i) || writes(i)) continue;
      LazyTensors operands;
      for (size_t j = 0; j < first(i).operands().size(); ++j) operands.push_back(operand_of(i, j));
      NodeSpec spec = copy_of(first(i), std::move(operands));
      spec.place = 0;
      copies[i] = std::move(spec).make_node();
    }
    for (const Carried& one : carried_)
      parts.outputs.push_back(one.from ? carried.at(*one.from) : value_of(one.node, one.output));
    for (const auto& [place, output] : stacks_) parts.outputs.push_back(value_of(place, output));
    for (const size_t place : writes_) parts.outputs.push_back(operand_of(place, 1));
    return Graph(std::move(parts));
  }

  void make_scan() {
    LazyTensors outside, init;
    Family plain;
    plain.example = trip(outside);
    std::vector<Type> dense;
    for (const LazyTensor& block : plain.example.inputs())
      dense.push_back(tensor_type(block.dtype(), block.sizes()));
    const Graph body = bind_types(plain, dense).graph;
    for (const Carried& one : carried_) init.push_back(one.init);
    const auto count = static_cast<std::ptrdiff_t>(carried_.size());
    const ScanBody step = [&](const LazyTensors& carried, const LazyTensors& slots) {
      LazyTensors arguments = carried;
      arguments.insert(arguments.end(), slots.begin(), slots.end());
      arguments.insert(arguments.end(), outside.begin(), outside.end());
      const LazyTensors all = inlined(body, arguments, [](NodeSpec& spec) { spec.place = 0; });
      return ScanStep{{all.begin(), all.begin() + count}, {all.begin() + count, all.end()}};
    };
    const ScanStep results = scan(step, init, slots_, {.length = trips_.count});
    const LazyTensor& any = results.carried.empty() ? results.outputs[0] : results.carried[0];
    NodeSpec spec = copy_of(*any.node, any.node->operands());
    spec.place = 0;
    for (const std::string_view key : {"scope", "source"})
      if (const std::string_view remark = first(0).annotation(key); !remark.empty())
        spec.annotate(key, std::string(remark));
    scan_ = std::move(spec).make_node();
  }

  LazyTensor stack_of(const Value& value) const {
    const auto place = std::distance(stacks_.begin(), stacks_.find(value));
    return {scan_, static_cast<uint32_t>(carried_.size() + static_cast<size_t>(place))};
  }

  // ---- what stands behind ----------------------------------------------------------------------

  // What the trips write into, with all that they write.
  LazyTensor written(size_t place) const {
    const auto number = std::find(writes_.begin(), writes_.end(), place) - writes_.begin();
    const size_t output = carried_.size() + stacks_.size() + static_cast<size_t>(number);
    return written_at(places_of(place), static_cast<int64_t>(trips_.count),
                      {scan_, static_cast<uint32_t>(output)});
  }

  // A value of a trip, as the loop gives it; absent where nothing reads it alone.
  LazyTensor after_loop(const std::pair<size_t, size_t>& place, uint32_t output) const {
    if (writes(place.second)) {
      const bool is_last = place.first + 1 == trips_.count;
      return is_last && is_dense_write(place.second) ? written(place.second) : LazyTensor();
    }
    if (is_final(place, output))
      return {scan_, static_cast<uint32_t>(*carried_of(place.second, output))};
    const Value value{place.second, output};
    if (!stacks_.contains(value)) return {};
    return slot_at(stack_of(value), static_cast<int64_t>(place.first));
  }

  // `stack` or `cat` of values of all trips and of others, which `operands` has.
  LazyTensor joined(const Node& node, const LazyTensors& operands) const {
    const bool is_stack = node.op() == kStack;
    int64_t axis = node.attribute("dim").as_int();
    if (axis < 0) axis += node.operands()[0].rank() + (is_stack ? 1 : 0);
    LazyTensors parts;
    for (size_t j = 0; j < operands.size(); ++j) {
      const std::optional<Run> run = run_at(node, j);
      if (!run) {
        parts.push_back(is_stack ? unsqueeze(operands[j], axis) : operands[j]);
        continue;
      }
      LazyTensor all = stack_of(run->value);
      if (run->reverse) all = flip(all, {0});
      all = with_axis_moved(all, 0, axis);
      if (!is_stack) all = with_axes_joined(all, axis);
      parts.push_back(all);
      j += trips_.count - 1;
    }
    if (parts.size() > 1) return cat(parts, axis);
    return is_stack && axis != 0 ? dense_copy(parts[0]) : parts[0];
  }

  Graph rest() const {
    return rebuild(
        graph_, [&](const Node& node, const LazyTensors& operands) -> std::optional<Replacement> {
          if (const auto* place = trips_.places.find(&node)) {
            if (slot_of_node_.contains(place->second)) return std::nullopt;
            Replacement replacement;
            for (uint32_t i = 0; i < node.outputs().size(); ++i)
              replacement.outputs.push_back(after_loop(*place, i));
            return replacement;
          }
          if (!behind_.contains(&node)) return std::nullopt;
          if (joins(node)) return Replacement{{joined(node, operands)}, {}};
          NodeSpec spec = copy_of(node, operands);
          spec.place = 0;
          return replace_by(std::move(spec).make_node());
        });
  }

  const Graph& graph_;
  const TripSequence& sequence_;
  const Trips& trips_;
  const ScanShape& shape_;
  std::set<const Node*> behind_;
  std::vector<size_t> writes_;  // nodes of a trip that write what is read behind only
  std::vector<Carried> carried_;
  std::map<std::pair<size_t, size_t>, size_t> carried_of_;  // by node and operand
  LazyTensors slots_;                                       // sequences
  std::vector<Type> slot_types_;                            // of a slot, as the first trip has it
  std::map<size_t, size_t> slot_of_node_;
  std::map<std::pair<size_t, size_t>, size_t> slot_of_operand_;  // by node and operand
  std::set<Value> stacks_;                                       // what is given from each trip
  NodePtr scan_;
};

}  // namespace

std::optional<Graph> with_scan(const Graph& graph, const TripSequence& sequence, const Trips& trips,
                               const ScanShape& shape) {
  return ScanRoller(graph, sequence, trips, shape).run();
}

}  // namespace composit
