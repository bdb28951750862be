// for and while: unrolled where they are short and known, composit::scan where the number of trips
// is known, composit::while_loop where it is computed.
#include <limits>
#include <set>

#include "composit/ir/print.h"
#include "composit/ops/functions.h"
#include "frontends/torchscript/interpreter.h"

namespace flashlight::torchscript {
namespace {

using composit::Attribute;
using composit::DType;
using composit::Tensor;
using composit::Tensors;
using composit::Type;

std::vector<IValue> leaves_of(const std::vector<IValue>& values) {
  std::vector<IValue> leaves;
  for (const IValue& value : values)
    for_each_leaf(value, "",
                  [&](const IValue& leaf, const std::string&) { leaves.push_back(leaf); });
  return leaves;
}

// Whether `tensor` is made of a block of `body`: not there before the body, nor outside of it.
bool depends_on(const composit::Traced& body, const Tensor& tensor) {
  std::set<const composit::Node*> seen;
  std::vector<composit::LazyTensor> open = {tensor};
  while (!open.empty()) {
    const composit::LazyTensor one = open.back();
    open.pop_back();
    if (!one || body.is_outside(one) || !seen.insert(one.node.get()).second) continue;
    if (composit::is_input(*one.node)) return true;
    for (const composit::LazyTensor& operand : one.node->operands()) open.push_back(operand);
  }
  return false;
}

}  // namespace

struct Interpreter::Loop {
  IValue trips, go;  // at the start
  Values carried;    // at the start; tensors and numbers that are computed become blocks
  std::vector<at::Tensor> written;

  bool counted() const { return trips.isTensor() || trips.toInt() != kEndless; }
  static constexpr int64_t kEndless = std::numeric_limits<int64_t>::max();
};

// One run of a body on blocks: of carried values, what is written, the counter, whether it goes on.
struct Interpreter::Trip {
  Mark mark;
  std::optional<composit::Traced> traced;
  Values inputs, outputs;                // carried values
  std::map<const void*, IValue> starts;  // of blocks: the value at the start of the loop
  Tensors init;                          // of blocks, in their order
  IValue go;
  Changes changes;
  Slots slots;

  size_t counter() const { return init.size(); }
};

void Interpreter::loop(Node* node) {
  Loop loop{get(node->input(0)), get(node->input(1)), {}, {}};
  for (size_t i = 2; i < node->inputs().size(); ++i) loop.carried.push_back(get(node->input(i)));
  if (!unroll(node, loop)) repeat(node, loop);
}

// Trips that compute nothing are not counted.
bool Interpreter::unroll(Node* node, Loop& loop) {
  constexpr int64_t kMost = 1'000'000;
  if (!loop.trips.isInt()) return false;
  const int64_t trips = loop.trips.toInt();
  const Mark mark = state_.mark();
  Values carried = loop.carried;
  IValue go = loop.go;
  int64_t computing = 0;
  for (int64_t i = 0;; ++i) {
    if (i == trips || (go.isBool() && !go.toBool())) break;
    const bool longer = computing > 0 && loop.counted() && trips > limits_.unroll;
    if (!go.isBool() || computing > limits_.unroll || longer || i == kMost) {
      state_.undo(mark);
      return false;
    }
    Values arguments = {i};
    arguments.insert(arguments.end(), carried.begin(), carried.end());
    const uint64_t made = state_.values_made();
    Values results = run(node->blocks()[0], arguments);
    computing += state_.values_made() > made ? 1 : 0;
    go = results[0];
    carried.assign(results.begin() + 1, results.end());
  }
  set(node, carried);
  return true;
}

void Interpreter::repeat(Node* node, Loop& loop) {
  constexpr int kRounds = 10;
  for (int round = 0; round < kRounds; ++round) {
    Trip once = trip(node, loop);
    if (widen(loop, once)) continue;
    const bool all_trips = loop.trips.isInt() && loop.counted() && loop.go.isBool() &&
                           once.go.isBool() && once.go.toBool();
    all_trips ? scan(node, loop, once) : repeat_while(node, loop, once);
    return;
  }
  throw composit::UserError("the values that a loop carries do not settle on their types");
}

Interpreter::Trip Interpreter::trip(Node* node, Loop& loop) {
  Trip trip;
  std::vector<IValue> computed;
  for (const IValue& leaf : leaves_of(loop.carried))
    if (leaf.isTensor()) computed.push_back(leaf);
  for (const IValue& leaf : computed) trip.init.push_back(state_.value(leaf.toTensor()));
  for (const at::Tensor& tensor : loop.written) trip.init.push_back(state_.value(tensor));
  std::vector<Type> types;
  for (const Tensor& tensor : trip.init) types.push_back(tensor.type());
  types.push_back(composit::tensor_type(DType::int64, {}));
  types.push_back(composit::tensor_type(DType::bool_, {}));

  trip.mark = state_.mark();
  const Undecided undecided(branches_);
  trip.traced.emplace(types, [&](const Tensors& blocks) {
    size_t next = 0;
    for (const IValue& value : loop.carried)
      trip.inputs.push_back(map_leaves(value, [&](const IValue& leaf) -> IValue {
        if (!leaf.isTensor()) return leaf;
        const Tensor& block = blocks[next++];
        const IValue at = state_.is_number(leaf) ? state_.number(block) : state_.tensor(block);
        trip.starts[at.unsafeToTensorImpl()] = leaf;
        return at;
      }));
    for (const at::Tensor& tensor : loop.written) state_.write(tensor, blocks[next++]);
    trip.slots.counters = {{blocks[trip.counter()]}};
    Values arguments = {state_.number(blocks[trip.counter()])};
    arguments.insert(arguments.end(), trip.inputs.begin(), trip.inputs.end());
    slots_.push_back(&trip.slots);
    const Values results = run(node->blocks()[0], arguments);
    slots_.pop_back();
    trip.go = results[0];
    for (size_t i = 1; i < results.size(); ++i) trip.outputs.push_back(settled(results[i]));
    return Tensors{};
  });
  trip.changes = state_.undo(trip.mark);
  if (trip.changes.others)
    throw Unsupported("a dict or an attribute that is changed in a loop that is not unrolled");
  return trip;
}

// Carries what the trip showed to change: numbers that were known before, memory that is written.
bool Interpreter::widen(Loop& loop, const Trip& trip) {
  bool widened = false;
  const auto start_of = [&](const IValue& leaf) {
    const auto start =
        leaf.isTensor() ? trip.starts.find(leaf.unsafeToTensorImpl()) : trip.starts.end();
    return start == trip.starts.end() ? leaf : start->second;
  };
  for (size_t i = 0; i < loop.carried.size(); ++i) {
    const IValue merged = merge(
        trip.inputs[i], trip.outputs[i], state_, [&](const IValue& a, const IValue& b) -> IValue {
          const auto [before, after] = alike(a, b);
          if (a.isTensor() && before.dtype() == state_.value(a.toTensor()).dtype()) return a;
          widened = true;
          const bool number = is_python_number(a) || is_python_number(b);
          const Tensor start = a.isTensor() ? tensor_of(start_of(a)) : before;
          return number ? state_.number(composit::to(start, before.dtype()))
                        : IValue(state_.tensor(start));
        });
    loop.carried[i] = map_leaves(merged, start_of);
  }
  for (const Changes::Written& one : trip.changes.tensors) {
    const bool known = std::any_of(loop.written.begin(), loop.written.end(),
                                   [&](const at::Tensor& t) { return t.is_same(one.tensor); });
    if (!known) loop.written.push_back(one.tensor);
    widened = widened || !known;
  }
  return widened;
}

// The values of the blocks in the next trip.
Interpreter::Tensors Interpreter::next_values(Loop& loop, const Trip& trip) {
  Tensors next;
  const Values inputs = leaves_of(trip.inputs), outputs = leaves_of(trip.outputs);
  COMPOSIT_ASSERT(inputs.size() == outputs.size(), "a loop changes the structure it carries");
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].isTensor() && trip.starts.contains(inputs[i].unsafeToTensorImpl()))
      next.push_back(
          composit::to(tensor_of(outputs[i]), state_.value(inputs[i].toTensor()).dtype()));
  for (const at::Tensor& tensor : loop.written)
    for (const Changes::Written& one : trip.changes.tensors)
      if (one.tensor.is_same(tensor)) next.push_back(one.value);
  return next;
}

namespace {

// What a trip appends to a list from outside of the loop.
struct Appended {
  IValue list;
  std::vector<IValue> before, items;
};

std::vector<Appended> appended_of(const Changes& changes, const State& state, const Mark& mark) {
  std::vector<Appended> all;
  for (const Changes::ChangedList& one : changes.lists) {
    Appended appended{one.list, one.list.toList().vec(), {}};
    const size_t size = appended.before.size();
    bool grows = one.items.size() >= size && !state.was_read(one.list, mark);
    for (size_t i = 0; grows && i < size; ++i) grows = appended.before[i].is(one.items[i]);
    if (!grows)
      throw Unsupported(
          "a list from outside of a loop that is not unrolled may be appended to there, and not be "
          "read or changed otherwise; raise `unroll`, or use a tensor");
    appended.items.assign(one.items.begin() + static_cast<int64_t>(size), one.items.end());
    all.push_back(std::move(appended));
  }
  return all;
}

}  // namespace

// Cuts the body of a scan at the slots that its counter takes; gives their sequences.
Tensors Interpreter::cut_at_slots(composit::Traced& body, const Slots& slots, int64_t length) {
  Tensors cut, sequences;
  std::set<std::pair<uint64_t, uint64_t>> seen;
  for (const Taken& taken : slots.taken) {
    const composit::Hash hash = taken.slot.lazy().hash();
    const int64_t end = taken.start + (length - 1) * taken.step + 1, size = taken.from.size(0);
    if (size < end || !seen.insert({hash.high, hash.low}).second || depends_on(body, taken.from))
      continue;
    cut.push_back(taken.slot);
    const bool whole = taken.start == 0 && taken.step == 1 && size == end;
    sequences.push_back(whole ? taken.from
                              : composit::slice(taken.from, 0, taken.start, end, taken.step));
  }
  body.cut(cut);
  return sequences;
}

void Interpreter::scan(Node* node, Loop& loop, Trip& trip) {
  const int64_t length = loop.trips.toInt();
  const std::vector<Appended> appended = appended_of(trip.changes, state_, trip.mark);
  Tensors given = next_values(loop, trip);
  for (const Appended& one : appended)
    for (const IValue& item : one.items) given.push_back(tensor_of(item));
  trip.traced->give(given);
  const Tensors cut = cut_at_slots(*trip.traced, trip.slots, length);
  const std::vector<bool> used = trip.traced->used();
  const size_t carried = trip.init.size();
  std::vector<size_t> order;
  Tensors sequences;
  for (size_t i = 0; i < used.size(); ++i) {
    if (i >= carried && !used[i]) continue;
    order.push_back(i);
    if (i == trip.counter()) sequences.push_back(composit::arange(length));
    if (i > trip.counter() + 1) sequences.push_back(cut[i - trip.counter() - 2]);
  }
  const composit::Closed closed = composit::close({*trip.traced}, order);
  const Attribute body = closed.regions[0];
  const Tensors results =
      trip.init.empty() && !sequences.empty()
          ? composit::apply("composit::map", {sequences, closed.outside, body, length})
          : composit::apply("composit::scan",
                            {trip.init, sequences, closed.outside, Tensor(), body, length, false});
  finish(node, loop, trip, results);
  size_t next = carried;
  for (const Appended& one : appended) {
    Values items = one.before;
    for (int64_t i = 0; i < length; ++i)
      for (size_t k = 0; k < one.items.size(); ++k) {
        const Tensor item = composit::select_at(results[next + k], 0, i);
        items.push_back(is_python_number(one.items[k]) ? state_.number(item)
                                                       : IValue(state_.tensor(item)));
      }
    next += one.items.size();
    state_.set_items(one.list, items);
  }
}

void Interpreter::repeat_while(Node* node, Loop& loop, Trip& trip) {
  if (!trip.changes.lists.empty())
    throw Unsupported("a list that is changed in a loop whose number of trips is computed");
  const bool decides = !(loop.go.isBool() && trip.go.isBool() && trip.go.toBool());
  Tensors given = next_values(loop, trip);
  trip.traced->give(given);
  const bool counts = loop.counted() || trip.traced->used()[trip.counter()];
  if (counts) given.push_back(trip.traced->blocks()[trip.counter()] + 1);
  if (decides) given.push_back(tensor_of(trip.go));
  trip.traced->give(given);

  Tensors init = trip.init;
  std::vector<Type> types;
  for (const Tensor& block : trip.traced->blocks()) types.push_back(block.type());
  std::vector<size_t> order;
  for (size_t i = 0; i < trip.init.size(); ++i) order.push_back(i);
  if (counts) {
    order.push_back(trip.counter());
    init.push_back(composit::zeros({}, DType::int64));
  }
  if (decides) {
    order.push_back(trip.counter() + 1);
    init.push_back(tensor_of(loop.go));
  }
  const composit::Traced condition(types, [&](const Tensors& blocks) {
    Tensor holds;
    if (loop.counted())
      holds = loop.trips.isInt() ? blocks[trip.counter()] < loop.trips.toInt()
                                 : blocks[trip.counter()] < tensor_of(loop.trips);
    if (!decides) return Tensors{holds};
    const Tensor& go = blocks[trip.counter() + 1];
    return Tensors{holds.defined() ? composit::logical_and(go, holds) : go};
  });
  const composit::Closed closed = composit::close({condition, *trip.traced}, order);
  const bool known = loop.counted() && loop.trips.isInt();
  const int64_t limit = known ? loop.trips.toInt() : limits_.trips;
  finish(
      node, loop, trip,
      composit::apply("composit::while_loop", {init, closed.outside, Attribute(closed.regions[0]),
                                               Attribute(closed.regions[1]), limit}));
}

// What the loop leaves behind, from the first results of its node.
void Interpreter::finish(Node* node, Loop& loop, const Trip& trip, const Tensors& results) {
  size_t next = 0;
  Values outputs;
  for (size_t i = 0; i < trip.inputs.size(); ++i)
    outputs.push_back(map_leaves(trip.inputs[i], [&](const IValue& leaf) -> IValue {
      if (!leaf.isTensor() || !trip.starts.contains(leaf.unsafeToTensorImpl())) return leaf;
      const Tensor& result = results.at(next++);
      return state_.is_number(leaf) ? state_.number(result) : IValue(state_.tensor(result));
    }));
  for (const at::Tensor& tensor : loop.written) state_.write(tensor, results.at(next++));
  set(node, outputs);
}

}  // namespace flashlight::torchscript
