#include "composit/family/scan_shape.h"

#include <algorithm>
#include <set>

#include "composit/family/local_hash.h"
#include "composit/family/structure.h"
#include "composit/ir/flat_map.h"

namespace composit {
namespace {

using Kind = TripOperand::Kind;

const Symbol kSelect("aten::select.int"), kSlice("aten::slice.Tensor"), kUnbind("aten::unbind.int"),
    kSelectScatter("aten::select_scatter"), kSliceScatter("aten::slice_scatter");

const int64_t* integer_of(const Node& node, std::string_view name) {
  const Attribute* attribute = node.find_attribute(name);
  return attribute == nullptr ? nullptr : attribute->get_if<int64_t>();
}

// The trips before one that it may read values of.
constexpr size_t kMostBack = 4;

// As local_hash, but for where an access reads. No effect is like another one.
Hash token_of(const Node& node) {
  Hasher hasher;
  if (node.effect() >= 0) {
    hasher.add(node.serial());
    return hasher.finish();
  }
  if (!access_of(node)) return local_hash(node);
  hasher.add(std::string_view(node.op().str()));
  hasher.add(static_cast<uint64_t>(*integer_of(node, "dim")));
  if (const int64_t* step = integer_of(node, "step")) hasher.add(static_cast<uint64_t>(*step));
  for (const Type& type : node.outputs()) type.add_to(hasher);
  return hasher.finish();
}

// Looks at trips of `length` nodes from `begin` on.
class Reader {
 public:
  Reader(const TripSequence& sequence, size_t begin, size_t length)
      : sequence_(sequence), begin_(begin), length_(length) {}

  // What trip number `last` has of those before it; nothing where it is no trip of a loop.
  std::optional<ScanShape> shape(size_t last) {
    for (size_t trip = 0; trip <= last; ++trip) add_trip(trip);
    ScanShape shape;
    shape.place = node(0, 0).annotation("source");
    for (size_t i = 0; i < length_; ++i) {
      const Node &before = node(last - 1, i), &now = node(last, i);
      if (before.operands().size() != now.operands().size()) return std::nullopt;
      shape.forms.push_back(sequence_.forms[begin_ + i]);
      shape.operands.emplace_back();
      for (size_t j = 0; j < now.operands().size(); ++j) {
        const auto found = operand_of(last, before.operands()[j], now.operands()[j]);
        if (!found) return std::nullopt;
        shape.operands.back().push_back(*found);
      }
      const auto from = access_of(before), to = access_of(now);
      shape.steps.push_back(to ? to->index - from->index : 0);
    }
    for (size_t i = 0; i < length_; ++i)
      if (shape.steps[i] != 0 && !goes_on_well(shape, i)) return std::nullopt;
    return shape;
  }

  // The trips that have this form; nothing where the first has not.
  std::optional<Trips> trips(const ScanShape& shape) {
    Trips trips{begin_, 0, {}};
    for (size_t trip = 0; begin_ + (trip + 1) * length_ <= sequence_.nodes.size(); ++trip) {
      if (!is_like(shape, trip)) break;
      add_trip(trip);
      bool fits = true;
      for (size_t i = 0; i < length_ && fits; ++i) fits = fits_at(shape, trip, i);
      if (!fits) break;
      ++trips.count;
    }
    if (trips.count == 0) return std::nullopt;
    for (size_t trip = 0; trip < trips.count; ++trip)
      for (size_t i = 0; i < length_; ++i) trips.places.insert(&node(trip, i), {trip, i});
    return trips;
  }

 private:
  size_t at(size_t trip, size_t place) const { return begin_ + trip * length_ + place; }
  const Node& node(size_t trip, size_t place) const { return *sequence_.nodes[at(trip, place)]; }
  void add_trip(size_t trip) {
    for (size_t i = 0; i < length_; ++i) places_.insert(&node(trip, i), {trip, i});
  }

  bool is_like(const ScanShape& shape, size_t trip) const {
    for (size_t i = 0; i < length_; ++i)
      if (sequence_.forms[at(trip, i)] != shape.forms[i] ||
          sequence_.tokens[at(trip, i)] != sequence_.tokens[at(0, i)])
        return false;
    return true;
  }

  std::optional<TripOperand> operand_of(size_t trip, const LazyTensor& before,
                                        const LazyTensor& now) {
    const std::optional<TripOperand> found = operand_in(places_, trip, now, kMostBack);
    if (!found || found->kind != Kind::outside) return found;
    if (before.defined() != now.defined()) return std::nullopt;
    if (!now || before == now) return found;
    const std::optional<int64_t> step = before ? distance_between(before, now) : std::nullopt;
    if (!step) return std::nullopt;
    return TripOperand{Kind::slot, 0, 0, *step};
  }

  // Reads of one value at another index in each trip; or writes into what the trip before wrote
  // into, that nothing else reads.
  bool goes_on_well(const ScanShape& shape, size_t place) const {
    if (!access_of(node(0, place))->is_written)
      return shape.operands[place][0].kind == Kind::outside;
    if (shape.operands[place][0] != TripOperand{Kind::carried, place, 0}) return false;
    size_t readers = 0;
    for (const auto& operands : shape.operands)
      for (const TripOperand& operand : operands)
        readers +=
            (operand.kind == Kind::inner || operand.kind == Kind::carried) && operand.node == place;
    return readers == 1;
  }

  // As views_others: slots are dense, too.
  static bool views_slots(const Node& node) {
    return views_memory(node) &&
           std::any_of(node.operands().begin(), node.operands().end(), [](const LazyTensor& x) {
             return x && access_of(*x.node) && !is_contiguous(x.type());
           });
  }

  bool fits_at(const ScanShape& shape, size_t trip, size_t place) {
    const Node& now = node(trip, place);
    const auto gone = static_cast<int64_t>(trip);
    if (now.operands().size() != shape.operands[place].size() || views_others(places_, now) ||
        views_slots(now))
      return false;
    if (const auto access = access_of(now);
        access && access->index != access_of(node(0, place))->index + gone * shape.steps[place])
      return false;
    for (size_t j = 0; j < now.operands().size(); ++j) {
      const LazyTensor& operand = now.operands()[j];
      const auto found = operand_in(places_, trip, operand, kMostBack);
      const TripOperand& expected = shape.operands[place][j];
      if (!found) return false;
      const bool is_carried = expected.kind == Kind::carried;
      if (expected.kind == Kind::inner || (is_carried && trip >= expected.back)) {
        if (*found != expected) return false;
        continue;
      }
      if (found->kind != Kind::outside) return false;
      if (is_carried) {
        const Node& maker = node(0, expected.node);
        if (!operand || !same_values(operand.type(), maker.outputs().at(expected.output)))
          return false;
        continue;
      }
      const LazyTensor& first = node(0, place).operands()[j];
      if (first.defined() != operand.defined()) return false;
      if (!operand || operand == first) {
        if (expected.kind == Kind::slot && (trip > 0 || !operand || !piece_of(operand)))
          return false;
      } else if (expected.kind != Kind::slot ||
                 distance_between(first, operand) != gone * expected.step) {
        return false;
      }
    }
    return true;
  }

  const TripSequence& sequence_;
  const size_t begin_, length_;
  TripPlaces places_;
};

// How far equal nodes are apart from the next one.
std::set<size_t> distances_of(const TripSequence& sequence) {
  std::set<size_t> distances;
  FlatMap<Hash, size_t> last;
  for (size_t i = 0; i < sequence.tokens.size(); ++i) {
    size_t& before = last[sequence.tokens[i]];  // its number from 1 on
    if (before != 0) distances.insert(i + 1 - before);
    before = i + 1;
  }
  return distances;
}

// Trips that only read here and there are no loop.
bool computes(const TripSequence& sequence, size_t begin, size_t length) {
  for (size_t i = begin; i < begin + length; ++i)
    if (!access_of(*sequence.nodes[i])) return true;
  return false;
}

size_t carried_by(const ScanShape& shape) {
  std::set<std::pair<size_t, uint32_t>> carried;
  for (const auto& operands : shape.operands)
    for (const TripOperand& operand : operands)
      if (operand.kind == Kind::carried) carried.insert({operand.node, operand.output});
  return carried.size();
}

// Adds trips of `length` nodes among those from `begin` to `end`, which all come back after it. Any
// cut of the period may be the program's; one that hands on few values likely is.
void add_cuts(const TripSequence& sequence, size_t begin, size_t end, size_t length,
              std::vector<ScanShape>& shapes) {
  std::vector<std::pair<size_t, ScanShape>> cuts;
  for (size_t at = begin; at + length <= end && at < begin + 2 * length; ++at) {
    // Of a late trip: it may read values of several before.
    const size_t last = std::min(kMostBack, (end - at) / length);
    std::optional<ScanShape> shape = Reader(sequence, at, length).shape(last);
    if (!shape || !computes(sequence, at, length)) continue;
    const std::optional<Trips> trips = Reader(sequence, at, length).trips(*shape);
    if (trips && trips->count > 1) cuts.emplace_back(carried_by(*shape), *std::move(shape));
  }
  std::stable_sort(cuts.begin(), cuts.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [carried, shape] : cuts) shapes.push_back(std::move(shape));
}

}  // namespace

TripSequence::TripSequence(const Graph& graph) {
  for (const NodePtr& node : graph.nodes()) {
    if (is_input(*node) || node->op() == ops::kConstant) continue;
    nodes.push_back(node);
    tokens.push_back(token_of(*node));
    forms.push_back(form_of(*node));
  }
}

std::optional<Piece> access_of(const Node& node) {
  const bool writes = node.op() == kSelectScatter || node.op() == kSliceScatter;
  const bool one = node.op() == kSelect || node.op() == kSelectScatter;
  if (!writes && !one && node.op() != kSlice) return std::nullopt;
  const int64_t* axis = integer_of(node, "dim");
  const int64_t* index = integer_of(node, one ? "index" : "start");
  const LazyTensor& operand = node.operands().at(0);
  if (axis == nullptr || index == nullptr) return std::nullopt;
  const int64_t plain_axis = *axis < 0 ? *axis + operand.rank() : *axis;
  const int64_t extent = operand.size(plain_axis);
  Piece access{operand, plain_axis, *index < 0 ? *index + extent : *index, {}, writes};
  if (one) return access;
  const int64_t *end = integer_of(node, "end"), *step = integer_of(node, "step");
  if (end == nullptr || step == nullptr || *step != 1) return std::nullopt;
  access.width = writes ? node.operands().at(1).size(plain_axis)
                        : node.outputs()[0].sizes[static_cast<size_t>(plain_axis)];
  return access;
}

std::optional<Piece> piece_of(const LazyTensor& value) {
  const Node& node = *value.node;
  if (const auto access = access_of(node)) return access->is_written ? std::nullopt : access;
  const int64_t* dim = integer_of(node, "dim");
  const std::string& op = node.op().str();
  const bool is_unbind = node.op() == kUnbind;
  const bool splits =
      op.find("split") != std::string::npos || op.find("chunk") != std::string::npos;
  if (dim == nullptr || node.operands().size() != 1 || (!is_unbind && !splits)) return std::nullopt;
  const LazyTensor& whole = node.operands()[0];
  const int64_t axis = *dim < 0 ? *dim + whole.rank() : *dim;
  if (is_unbind) return Piece{whole, axis, int64_t{value.index}, {}};
  int64_t begin = 0;
  for (uint32_t i = 0; i < value.index; ++i) begin += LazyTensor{value.node, i}.size(axis);
  return Piece{whole, axis, begin, value.size(axis)};
}

std::optional<int64_t> distance_between(const LazyTensor& first, const LazyTensor& now) {
  const std::optional<Piece> a = piece_of(first), b = piece_of(now);
  if (!a || !b || a->axis != b->axis || a->width != b->width || a->of != b->of) return std::nullopt;
  return b->index - a->index;
}

std::vector<ScanShape> repeated(const TripSequence& sequence) {
  std::vector<ScanShape> shapes;
  const auto& tokens = sequence.tokens;
  for (const size_t length : distances_of(sequence)) {
    size_t same = 0;  // how many nodes up to here come back after `length`
    for (size_t i = 0; i + length <= tokens.size(); ++i) {
      if (i + length < tokens.size() && tokens[i] == tokens[i + length]) {
        ++same;
      } else {
        add_cuts(sequence, i - same, i, length, shapes);
        same = 0;
      }
    }
  }
  return shapes;
}

std::vector<Trips> trips_of(const TripSequence& sequence, const ScanShape& shape) {
  std::vector<Trips> all;
  const size_t length = shape.forms.size();
  for (size_t begin = 0; begin + length <= sequence.nodes.size();) {
    std::optional<Trips> trips;
    if (sequence.forms[begin] == shape.forms[0])
      trips = Reader(sequence, begin, length).trips(shape);
    begin += trips ? trips->count * length : 1;
    if (trips) all.push_back(*std::move(trips));
  }
  // A single trip may be none: it counts where there are too few others.
  std::vector<Trips> loops;
  for (const Trips& trips : all)
    if (trips.count > 1) loops.push_back(trips);
  return shape.loops == 0 || loops.size() == shape.loops ? loops : all;
}

}  // namespace composit
