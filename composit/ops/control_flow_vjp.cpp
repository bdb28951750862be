#include "composit/ops/control_flow_vjp.h"

#include <algorithm>
#include <utility>

#include "composit/ir/transform.h"
#include "composit/ops/dependences.h"
#include "composit/ops/functions.h"
#include "composit/ops/recompute.h"
#include "composit/ops/scatters.h"
#include "composit/ops/tracing.h"

namespace composit {
namespace {

void append(LazyTensors& tensors, const LazyTensors& more) {
  tensors.insert(tensors.end(), more.begin(), more.end());
}

bool meet(const Flags& a, const Flags& b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i] && b[i]) return true;
  return false;
}

struct Loop {
  LazyTensors carried, sequences, outside;
  LazyTensor trips;  // absent: order.length
  const Graph& body;
  ScanOrder order;
  // The results of the loop with a body of more outputs.
  std::function<LazyTensors(const Region& body)> again;
};

// The values that a backward trip may use, in the order of its blocks. Blocks that it does not use
// are dropped afterwards.
struct TripBlocks {
  LazyTensors cotangents;  // of live carried values: carried
  LazyTensors values;      // the carried values at the start of the trip: slots
  LazyTensors slots;       // of the loop's sequences
  LazyTensors given;       // cotangents of the trip's outputs: slots
  LazyTensors outside;
};

// Values of a body that are expensive to compute, and differ from trip to trip: `varying` are
// inputs.
LazyTensors dear_values(const Graph& body, size_t varying) {
  FlatMap<const Node*, std::monostate> varies;
  for (size_t i = 0; i < varying; ++i) varies.insert(body.inputs()[i].node.get(), {});
  LazyTensors values;
  for (const NodePtr& node : body.nodes()) {
    const auto& operands = node->operands();
    if (std::none_of(operands.begin(), operands.end(), [&](const LazyTensor& operand) {
          return operand && varies.contains(operand.node.get());
        }))
      continue;
    varies.insert(node.get(), {});
    if (is_cheap(*node)) continue;
    for (const LazyTensor& value : replace_by(node).outputs)
      if (is_defined(value.type())) values.emplace_back(value);
  }
  return values;
}

// How the gradient of a tensor from outside leaves the loop: as one sum, or as updates, of which
// each has its places if they are the same in all trips.
struct OutsideFlow {
  size_t outside;
  std::vector<Places> places;
};

// The scan that runs back over a loop.
class Reversal {
 public:
  Reversal(const Vjp& v, const Loop& loop) : v_(v), loop_(loop) {
    find_live();
    for (size_t i = 0; i < loop.outside.size(); ++i)
      if (wanted_outside(i)) summed_.push_back(i);
    for (size_t i = carried(); i < loop.body.outputs().size(); ++i)
      if (v.cotangents[i].defined()) given_.push_back(i);
  }

  // Per carried value, sequence, and tensor from outside.
  Gradients run() {
    Traced trip(block_types(),
                [&](const LazyTensors& blocks) { return back_through(grouped(blocks)); });
    LazyTensors cut = dear_blocks_;
    append(cut, sum_blocks_);
    trip.cut(cut);
    Gradients gradients(carried() + loop_.sequences.size() + loop_.outside.size());
    if (trip.outputs().empty()) return gradients;
    const LazyTensors results = emit(trip);
    auto next = results.begin();
    for (size_t i : live_) gradients[i] = *next++;
    auto sum = next;
    next += static_cast<int64_t>(sums_.size());
    for (size_t i : stacked_) gradients[carried() + i] = *next++;
    for (const OutsideFlow& flow : flows_)
      gradients[carried() + loop_.sequences.size() + flow.outside] = gathered(flow, sum, next);
    return gradients;
  }

 private:
  size_t carried() const { return loop_.carried.size(); }
  bool wanted_sequence(size_t i) const { return v_.wanted[carried() + i]; }
  bool wanted_outside(size_t i) const { return v_.wanted[carried() + loop_.sequences.size() + i]; }

  // Carried values that depend on what is differentiated by, and that results depend on.
  void find_live() {
    const std::vector<Flags> depends = dependences(loop_.body);
    Flags active = v_.wanted, needed(loop_.body.inputs().size());
    active.resize(needed.size());  // `trips` comes after them
    for (size_t i = 0; i < depends.size(); ++i)
      if (v_.cotangents[i].defined()) {
        if (i < carried()) needed[i] = true;
        unite(needed, depends[i]);
      }
    for (bool changed = true; changed;) {
      const Flags before_active = active, before_needed = needed;
      for (size_t i = 0; i < carried(); ++i) {
        if (needed[i]) unite(needed, depends[i]);
        if (meet(active, depends[i])) active[i] = true;
      }
      changed = active != before_active || needed != before_needed;
    }
    for (size_t i = 0; i < carried(); ++i)
      if (active[i] && needed[i] && carries_gradient(loop_.carried[i].type())) live_.push_back(i);
  }

  std::vector<Type> block_types() const {
    const auto inputs = tensor_types(loop_.body.inputs()),
               outputs = tensor_types(loop_.body.outputs());
    const auto outside = inputs.begin() + static_cast<int64_t>(carried() + loop_.sequences.size());
    std::vector<Type> types;
    for (size_t i : live_) types.push_back(inputs[i]);
    types.insert(types.end(), inputs.begin(), outside);
    for (size_t i : given_) types.push_back(outputs[i]);
    types.insert(types.end(), outside, inputs.end());
    return types;
  }
  TripBlocks grouped(const LazyTensors& blocks) const {
    auto next = blocks.begin();
    const auto take = [&](size_t count) {
      const auto begin = std::exchange(next, next + static_cast<int64_t>(count));
      return LazyTensors(begin, next);
    };
    return {.cotangents = take(live_.size()),
            .values = take(carried()),
            .slots = take(loop_.sequences.size()),
            .given = take(given_.size()),
            .outside = take(loop_.outside.size())};
  }

  // The cotangents of live values at the start of the trip, sums, and gradients of slots.
  LazyTensors back_through(const TripBlocks& blocks) {
    LazyTensors arguments = blocks.values, flows(loop_.body.outputs().size()), inputs;
    append(arguments, blocks.slots);
    append(arguments, blocks.outside);
    for (size_t i = 0; i < live_.size(); ++i) flows[live_[i]] = blocks.cotangents[i];
    for (size_t i = 0; i < given_.size(); ++i) flows[given_[i]] = blocks.given[i];
    for (size_t i : live_) inputs.push_back(blocks.values[i]);
    for (size_t i : summed_) inputs.push_back(blocks.outside[i]);
    for (size_t i = 0; i < blocks.slots.size(); ++i)
      if (wanted_sequence(i)) inputs.push_back(blocks.slots[i]);
    const LazyTensors gradients = v_.back(forward(arguments), inputs, flows);
    LazyTensors outputs;
    auto gradient = gradients.begin();
    for (size_t i : live_) {
      outputs.push_back(gradient->defined() ? *gradient : zeros_like(blocks.values[i]));
      ++gradient;
    }
    for (size_t i : summed_) {
      if (gradient->defined()) flow_out(i, *gradient);
      ++gradient;
    }
    append(outputs, sums_);
    for (size_t i = 0; i < blocks.slots.size(); ++i) {
      if (!wanted_sequence(i)) continue;
      if (gradient->defined()) {
        outputs.push_back(*gradient);
        stacked_.push_back(i);
      }
      ++gradient;
    }
    append(outputs, updates_);
    return outputs;
  }

  // What flows to a tensor from outside in a trip is added to a sum that is carried, as large as
  // the tensor. If only few of its elements are reached, the trip gives these instead, or adds them
  // to a sum as small if they are the same in all trips: so the loop does not compute more than a
  // constant times what it reads.
  void flow_out(size_t outside, const LazyTensor& gradient) {
    OutsideFlow flow{outside, {}};
    const auto scatters = scatters_of(gradient);
    for (const Scatter& scatter : scatters.value_or(std::vector<Scatter>())) {
      flow.places.push_back(fixed_places(scatter));
      const LazyTensors updates = updates_of(scatter);
      if (flow.places.back())
        add_sum(updates[0]);
      else
        append(updates_, updates);
    }
    if (flow.places.empty()) add_sum(gradient);
    flows_.push_back(std::move(flow));
  }
  void add_sum(const LazyTensor& value) {
    sum_blocks_.push_back(fresh_block(value.type()));
    sums_.push_back(sum_blocks_.back() + value);
  }
  // The gradient of a tensor from outside, of sums and updates that the loop gives.
  LazyTensor gathered(const OutsideFlow& flow, LazyTensors::const_iterator& sum,
                      LazyTensors::const_iterator& stacked) const {
    if (flow.places.empty()) return *sum++;
    const Type& type = loop_.outside[flow.outside].type();
    std::vector<Updates> all;
    for (const Places& fixed : flow.places)
      all.push_back(take_updates(type, fixed, fixed ? sum : stacked));
    return put_together(type, all);
  }

  // The results of the body, and its expensive values, in the order in which they are computed.
  LazyTensors forward(const LazyTensors& arguments) {
    const size_t results = loop_.body.outputs().size();
    Graph::Parts parts = loop_.body.parts();
    dear_ = dear_values(loop_.body, carried() + loop_.sequences.size());
    parts.outputs.insert(parts.outputs.end(), dear_.begin(), dear_.end());
    LazyTensors values = call_region(Graph(std::move(parts)), arguments);
    dear_blocks_.assign(values.begin() + static_cast<int64_t>(results), values.end());
    values.resize(results);
    return values;
  }

  // The node that runs `trip` for each trip of the loop.
  LazyTensors emit(const Traced& trip) {
    Flags used = trip.used();
    std::fill_n(used.begin(), live_.size(), true);  // a carried value has its place, used or not
    const size_t values = live_.size(), slots = values + carried();
    const size_t given = slots + loop_.sequences.size(), outside = given + given_.size();
    const size_t dear = outside + loop_.outside.size(), sums = dear + dear_.size();
    std::vector<size_t> order;
    const auto kept = [&](size_t first, const LazyTensors& tensors) {
      LazyTensors some;
      for (size_t i = 0; i < tensors.size(); ++i)
        if (used[first + i]) {
          some.push_back(tensors[i]);
          order.push_back(first + i);
        }
      return some;
    };
    const auto& inputs = loop_.body.inputs();
    LazyTensors init = kept(0, initial());
    append(init, kept(sums, zero_sums()));
    LazyTensors sequences = kept(slots, loop_.sequences);
    append(sequences, kept(given, given_cotangents()));
    LazyTensors tape =
        kept(values, {inputs.begin(), inputs.begin() + static_cast<int64_t>(carried())});
    append(tape, kept(dear, dear_));
    append(sequences, taped(tape));
    LazyTensors others = kept(outside, loop_.outside);
    const Closed closed = close({trip}, order);
    append(others, closed.outside);
    const Attribute body = closed.regions[0];
    const int64_t length = loop_.order.length;
    if (init.empty() && !loop_.trips.defined())
      return apply("composit::map", {sequences, others, body, length});
    return apply("composit::scan",
                 {init, sequences, others, loop_.trips, body, length, !loop_.order.reverse});
  }
  LazyTensors initial() const {
    LazyTensors init;
    for (size_t i : live_)
      init.push_back(v_.cotangents[i].defined() ? v_.cotangents[i] : zeros_like(loop_.carried[i]));
    return init;
  }
  LazyTensors zero_sums() const {
    LazyTensors sums;
    for (const LazyTensor& sum : sums_) sums.push_back(zeros_like(sum));
    return sums;
  }
  LazyTensors given_cotangents() const {
    LazyTensors given;
    for (size_t i : given_) given.push_back(v_.cotangents[i]);
    return given;
  }
  // Values of the body, from each trip, stacked by the loop.
  LazyTensors taped(const LazyTensors& values) {
    Graph::Parts parts = loop_.body.parts();
    std::vector<size_t> places;
    for (const LazyTensor& value : values) {
      const auto outputs = parts.outputs.begin() + static_cast<int64_t>(carried());
      const auto found = std::find(outputs, parts.outputs.end(), value);
      places.push_back(static_cast<size_t>(found - parts.outputs.begin()));
      if (found == parts.outputs.end()) parts.outputs.push_back(value);
    }
    LazyTensors results = v_.results;
    if (parts.outputs.size() > loop_.body.outputs().size())
      results = loop_.again(std::make_shared<const Graph>(std::move(parts)));
    LazyTensors tapes;
    for (size_t place : places) tapes.push_back(results[place]);
    return tapes;
  }

  const Vjp& v_;
  const Loop& loop_;
  std::vector<size_t> live_, summed_, given_;  // of carried values, outside, results
  std::vector<size_t> stacked_;                // of sequences: what gradients flow to
  LazyTensors dear_, dear_blocks_;             // in the body, in a trip
  std::vector<OutsideFlow> flows_;
  LazyTensors sums_, sum_blocks_;  // in a trip: what it carries for them, and from the trip before
  LazyTensors updates_;            // in a trip: what it gives for them
};

}  // namespace

Gradients map_vjp(const Vjp& v, const LazyTensors& sequences, const LazyTensors& outside,
                  const Graph& body, int64_t length) {
  const auto again = [&](const Region& more) {
    return apply("composit::map", {sequences, outside, Attribute(more), length});
  };
  return Reversal(v, {{}, sequences, outside, {}, body, {length, false}, again}).run();
}

Gradients scan_vjp(const Vjp& v, const LazyTensors& carried, const LazyTensors& sequences,
                   const LazyTensors& outside, const LazyTensor& trips, const Graph& body,
                   const ScanOrder& order) {
  const auto again = [&](const Region& more) {
    return apply("composit::scan", {carried, sequences, outside, trips, Attribute(more),
                                    order.length, order.reverse});
  };
  return Reversal(v, {carried, sequences, outside, trips, body, order, again}).run();
}

Gradients while_vjp(const Vjp& v, const LazyTensors& carried, const LazyTensors& outside,
                    const Region& condition, const Graph& body, std::optional<int64_t> limit) {
  if (!limit)
    throw UserError(
        "expected a `limit`, the most trips of the loop, to keep what its derivative "
        "needs of each of them, received none");
  Loop loop{carried, {}, outside, v.results.back(), body, {*limit, false}, {}};
  loop.again = [&](const Region& more) {
    const LazyTensors results = apply(
        "composit::while_loop", {carried, outside, Attribute(condition), Attribute(more), *limit});
    loop.trips = results.back();
    return results;
  };
  return Reversal(v, loop).run();
}

}  // namespace composit
