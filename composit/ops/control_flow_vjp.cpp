#include "composit/ops/control_flow_vjp.h"

#include <algorithm>

#include "composit/op/promotion.h"
#include "composit/ops/functions.h"
#include "composit/ops/tracing.h"

namespace composit {
namespace {

bool carries_gradient(const Type& type) { return category(type.dtype) >= DTypeCategory::floating; }

std::vector<Type> types_of(const std::vector<LazyTensor>& tensors) {
  std::vector<Type> types;
  for (const LazyTensor& tensor : tensors) types.push_back(tensor.type());
  return types;
}

void append(Tensors& tensors, const Tensors& more) {
  tensors.insert(tensors.end(), more.begin(), more.end());
}

// ---- what depends on what -----------------------------------------------------------------------

using Flags = std::vector<bool>;

void unite(Flags& flags, const Flags& more) {
  for (size_t i = 0; i < flags.size(); ++i) flags[i] = flags[i] || more[i];
}

// Per output, the inputs that it depends on through values that carry gradients.
std::vector<Flags> dependences(const Graph& body) {
  const Flags none(body.inputs().size());
  FlatMap<const Node*, Flags> known;
  const auto of = [&](const LazyTensor& tensor) {
    const Flags* found = carries_gradient(tensor.type()) ? known.find(tensor.node.get()) : nullptr;
    return found == nullptr ? none : *found;
  };
  for (size_t i = 0; i < body.inputs().size(); ++i) {
    Flags own = none;
    own[i] = true;
    known[body.inputs()[i].node.get()] = own;
  }
  for (const NodePtr& node : body.nodes()) {
    if (is_input(*node)) continue;
    Flags flags = none;
    for (const LazyTensor& operand : node->operands())
      if (operand) unite(flags, of(operand));
    known[node.get()] = flags;
  }
  std::vector<Flags> result;
  for (const LazyTensor& output : body.outputs()) result.push_back(of(output));
  return result;
}

// ---- loops --------------------------------------------------------------------------------------

struct Loop {
  Tensors carried, sequences, outside;
  Tensor trips;  // absent: order.length
  const Graph& body;
  ScanOrder order;
  // The results of the loop with a body of more outputs.
  std::function<Tensors(const Region& body)> again;
};

// The scan that runs back over a loop. Its body has a block for all it might need, in the order of
// `Blocks`; those it does not use are left out then.
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
    const Traced trip(block_types(), [&](const Tensors& blocks) { return back_through(blocks); });
    Gradients gradients(carried() + loop_.sequences.size() + loop_.outside.size());
    if (trip.outputs().empty()) return gradients;
    const Tensors results = emit(trip);
    auto next = results.begin();
    for (size_t i : live_) gradients[i] = *next++;
    for (size_t i : reached_) gradients[carried() + loop_.sequences.size() + i] = *next++;
    for (size_t i : stacked_) gradients[carried() + i] = *next++;
    return gradients;
  }

 private:
  size_t carried() const { return loop_.carried.size(); }
  bool wanted_outside(size_t i) const { return v_.wanted[carried() + loop_.sequences.size() + i]; }

  // Carried values that depend on what is differentiated by, and that results depend on.
  void find_live() {
    const std::vector<Flags> depends = dependences(loop_.body);
    Flags active = v_.wanted, needed(carried());
    active.resize(loop_.body.inputs().size());  // `trips` stands behind
    for (size_t i = 0; i < depends.size(); ++i) {
      if (!v_.cotangents[i].defined()) continue;
      if (i < carried()) needed[i] = true;
      for (size_t k = 0; i >= carried() && k < carried(); ++k)
        needed[k] = needed[k] || depends[i][k];
    }
    for (size_t round = 0; round < carried(); ++round)
      for (size_t i = 0; i < carried(); ++i)
        for (size_t k = 0; k < active.size(); ++k) {
          if (active[k] && depends[i][k]) active[i] = true;
          if (k < carried() && needed[i] && depends[i][k]) needed[k] = true;
        }
    for (size_t i = 0; i < carried(); ++i)
      if (active[i] && needed[i] && carries_gradient(loop_.carried[i].type())) live_.push_back(i);
  }

  // Blocks: cotangents of live values, sums, carried values, slots, cotangents of outputs, outside.
  std::vector<Type> block_types() const {
    const auto inputs = types_of(loop_.body.inputs()), outputs = types_of(loop_.body.outputs());
    const size_t outside = carried() + loop_.sequences.size();
    std::vector<Type> types;
    for (size_t i : live_) types.push_back(inputs[i]);
    for (size_t i : summed_) types.push_back(inputs[outside + i]);
    types.insert(types.end(), inputs.begin(), inputs.begin() + static_cast<int64_t>(outside));
    for (size_t i : given_) types.push_back(outputs[i]);
    types.insert(types.end(), inputs.begin() + static_cast<int64_t>(outside), inputs.end());
    return types;
  }

  Tensors back_through(const Tensors& blocks) {
    const auto at = [&](size_t first, size_t i) { return blocks[first + i]; };
    const size_t sums = live_.size(), values = sums + summed_.size();
    const size_t cotangents = values + carried() + loop_.sequences.size();
    const size_t outside = cotangents + given_.size();
    Tensors arguments(blocks.begin() + static_cast<int64_t>(values),
                      blocks.begin() + static_cast<int64_t>(cotangents));
    append(arguments, {blocks.begin() + static_cast<int64_t>(outside), blocks.end()});
    Tensors flows(loop_.body.outputs().size()), inputs;
    for (size_t i = 0; i < live_.size(); ++i) flows[live_[i]] = at(0, i);
    for (size_t i = 0; i < given_.size(); ++i) flows[given_[i]] = at(cotangents, i);
    for (size_t i : live_) inputs.push_back(arguments[i]);
    for (size_t i : summed_) inputs.push_back(at(outside, i));
    for (size_t i = 0; i < loop_.sequences.size(); ++i)
      if (v_.wanted[carried() + i]) inputs.push_back(arguments[carried() + i]);
    return gathered(v_.back(call_region(loop_.body, arguments), inputs, flows), inputs,
                    {blocks.begin() + static_cast<int64_t>(sums),
                     blocks.begin() + static_cast<int64_t>(values)});
  }
  // The outputs of a trip back: cotangents of live values, sums, and gradients of slots.
  Tensors gathered(const Tensors& gradients, const Tensors& inputs, const Tensors& sums) {
    Tensors outputs;
    size_t next = 0;
    for (; next < live_.size(); ++next)
      outputs.push_back(gradients[next].defined() ? gradients[next] : zeros_like(inputs[next]));
    for (size_t i = 0; i < summed_.size(); ++i, ++next) {
      if (!gradients[next].defined()) continue;
      outputs.push_back(sums[i] + gradients[next]);
      reached_.push_back(summed_[i]);
    }
    for (size_t i = 0; i < loop_.sequences.size(); ++i) {
      if (!v_.wanted[carried() + i]) continue;
      if (gradients[next].defined()) {
        outputs.push_back(gradients[next]);
        stacked_.push_back(i);
      }
      ++next;
    }
    return outputs;
  }

  // The node that runs `trip` for each trip of the loop.
  Tensors emit(const Traced& trip) {
    Flags keep = trip.used();
    const size_t sums = live_.size(), values = sums + summed_.size();
    for (size_t i = 0; i < sums; ++i) keep[i] = true;
    Tensors init = initial(keep, sums), sequences = taped(keep, values), outside;
    size_t next = values + carried();
    for (const Tensor& sequence : loop_.sequences)
      if (keep[next++]) sequences.push_back(sequence);
    for (size_t i : given_)
      if (keep[next++]) sequences.push_back(v_.cotangents[i]);
    for (const Tensor& tensor : loop_.outside)
      if (keep[next++]) outside.push_back(tensor);
    const Closed closed = close({trip}, keep);
    append(outside, closed.outside);
    const Attribute body = closed.regions[0];
    const int64_t length = loop_.order.length;
    if (init.empty() && !loop_.trips.defined())
      return apply("composit::map", {sequences, outside, body, length});
    return apply("composit::scan",
                 {init, sequences, outside, loop_.trips, body, length, !loop_.order.reverse});
  }
  Tensors initial(const Flags& keep, size_t sums) const {
    Tensors init;
    for (size_t i : live_)
      init.push_back(v_.cotangents[i].defined() ? v_.cotangents[i] : zeros_like(loop_.carried[i]));
    for (size_t i = 0; i < summed_.size(); ++i)
      if (keep[sums + i]) init.push_back(zeros_like(loop_.outside[summed_[i]]));
    return init;
  }
  // The carried values at the start of each trip, as far as they are kept, stacked by the loop.
  Tensors taped(const Flags& keep, size_t first) {
    Graph::Parts parts = loop_.body.parts();
    std::vector<size_t> places;
    for (size_t i = 0; i < carried(); ++i) {
      if (!keep[first + i]) continue;
      const LazyTensor value = parts.inputs[i];
      size_t place = carried();
      while (place < parts.outputs.size() && !(parts.outputs[place] == value)) ++place;
      if (place == parts.outputs.size()) parts.outputs.push_back(value);
      places.push_back(place);
    }
    Tensors results = v_.results;
    if (parts.outputs.size() > loop_.body.outputs().size())
      results = loop_.again(std::make_shared<const Graph>(std::move(parts)));
    Tensors tapes;
    for (size_t place : places) tapes.push_back(results[place]);
    return tapes;
  }

  const Vjp& v_;
  const Loop& loop_;
  std::vector<size_t> live_, summed_, given_;  // of carried values, outside, results
  std::vector<size_t> reached_, stacked_;      // of outside, sequences: what gradients flow to
};

}  // namespace

Gradients cond_vjp(const Vjp& v, const Tensor& predicate, const Tensors& operands,
                   const Graph& then_body, const Graph& else_body) {
  Flags reached(operands.size());
  for (const Graph* body : {&then_body, &else_body}) {
    const std::vector<Flags> depends = dependences(*body);
    for (size_t i = 0; i < depends.size(); ++i)
      if (v.cotangents[i].defined()) unite(reached, depends[i]);
  }
  std::vector<Type> types = types_of(then_body.inputs());
  Tensors all = operands;
  for (const Tensor& cotangent : v.cotangents) {
    if (!cotangent.defined()) continue;
    types.push_back(cotangent.type());
    all.push_back(cotangent);
  }
  const auto branch = [&](const Graph& body) {
    return Traced(types, [&](const Tensors& blocks) {
      const auto middle = blocks.begin() + static_cast<int64_t>(operands.size());
      Tensors flows, inputs;
      auto flow = middle;
      for (const Tensor& cotangent : v.cotangents)
        flows.push_back(cotangent.defined() ? *flow++ : Tensor());
      for (size_t i = 0; i < operands.size(); ++i)
        if (v.wanted[1 + i] && reached[i]) inputs.push_back(blocks[i]);
      Tensors gradients = v.back(call_region(body, {blocks.begin(), middle}), inputs, flows);
      for (size_t i = 0; i < inputs.size(); ++i)
        if (!gradients[i].defined()) gradients[i] = zeros_like(inputs[i]);
      return gradients;
    });
  };
  const std::vector<Traced> branches = {branch(then_body), branch(else_body)};
  Flags keep = branches[0].used();
  unite(keep, branches[1].used());
  Tensors used;
  for (size_t i = 0; i < all.size(); ++i)
    if (keep[i]) used.push_back(all[i]);
  const Closed closed = close(branches, keep);
  append(used, closed.outside);
  const Tensors results = apply("composit::cond", {predicate, used, Attribute(closed.regions[0]),
                                                   Attribute(closed.regions[1])});
  Gradients gradients(1 + operands.size());
  for (size_t i = 0, next = 0; i < operands.size(); ++i)
    if (v.wanted[1 + i] && reached[i]) gradients[1 + i] = results[next++];
  return gradients;
}

Gradients map_vjp(const Vjp& v, const Tensors& sequences, const Tensors& outside, const Graph& body,
                  int64_t length) {
  return Reversal(v, {.carried = {},
                      .sequences = sequences,
                      .outside = outside,
                      .trips = {},
                      .body = body,
                      .order = {length, false},
                      .again = {}})
      .run();
}

Gradients scan_vjp(const Vjp& v, const Tensors& carried, const Tensors& sequences,
                   const Tensors& outside, const Tensor& trips, const Graph& body,
                   const ScanOrder& order) {
  const auto again = [&](const Region& more) {
    return apply("composit::scan", {carried, sequences, outside, trips, Attribute(more),
                                    order.length, order.reverse});
  };
  return Reversal(v, {carried, sequences, outside, trips, body, order, again}).run();
}

Gradients while_vjp(const Vjp& v, const Tensors& carried, const Tensors& outside,
                    const Region& condition, const Graph& body, std::optional<int64_t> limit) {
  if (!limit)
    throw UserError(
        "expected a `limit`, the most trips of the loop, to keep what its derivative "
        "needs of each of them, received none");
  Loop loop{carried, {}, outside, v.results.back(), body, {*limit, false}, {}};
  loop.again = [&](const Region& more) {
    const Tensors results = apply(
        "composit::while_loop", {carried, outside, Attribute(condition), Attribute(more), *limit});
    loop.trips = results.back();
    return results;
  };
  return Reversal(v, loop).run();
}

}  // namespace composit
