// for and while: unrolled where they are short and known, composit::scan where the number of trips
// is known, composit::while_loop where it is computed.
#include <limits>
#include <set>
#include <unordered_map>

#include "composit/ir/print.h"
#include "composit/ops/functions.h"
#include "frontends/torchscript/interpreter.h"

namespace flashlight::torchscript {
namespace {

using composit::Attribute;
using composit::DType;
using composit::LazyTensor;
using composit::LazyTensors;
using composit::Type;

// As map_leaves sees them.
std::vector<IValue> leaves_of(const std::vector<IValue>& values, State& state) {
  std::vector<IValue> leaves;
  for (const IValue& value : values)
    map_leaves(value, state, [&](const IValue& leaf) {
      leaves.push_back(leaf);
      return leaf;
    });
  return leaves;
}

// True if `tensor` depends on a block of `body`: it did not exist before the body, nor outside of
// it.
bool depends_on(const composit::Traced& body, const LazyTensor& tensor) {
  std::set<const composit::Node*> seen;
  composit::LazyTensors open = {tensor};
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
  Values carried;    // at the start
  // Leaves of `carried` that the body gives other values: they become blocks, and stand as tensors
  // of their own; what they were in the program. All others are the same in every trip.
  std::unordered_map<const void*, IValue> changing;
  std::vector<at::Tensor> written;

  bool counted() const { return trips.isTensor() || trips.toInt() != kEndless; }
  bool changes(const IValue& leaf) const {
    return leaf.isTensor() && changing.contains(leaf.unsafeToTensorImpl());
  }
  static constexpr int64_t kEndless = std::numeric_limits<int64_t>::max();
};

// One run of a body on blocks: of carried values, what is written, the counter, whether it goes on.
struct Interpreter::Trip {
  std::optional<composit::Traced> traced;
  Values inputs;                         // carried values
  std::map<const void*, IValue> starts;  // of blocks among them: the value at the start of the loop
  LazyTensors init;                      // of blocks, in their order
  IValue go;
  Ending ending;
  Slots slots;

  size_t counter() const { return init.size(); }
  bool is_block(const IValue& leaf) const {
    return leaf.isTensor() && starts.contains(leaf.unsafeToTensorImpl());
  }
};

void Interpreter::loop(Node* node) {
  Loop loop{get(node->input(0)), get(node->input(1)), {}, {}, {}};
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

// A trip sees variables as values of their own. So none may be another name of what is written.
void Interpreter::check_names(const Loop& loop, const Trip& trip) {
  std::set<const void*> written;
  for (const at::Tensor& tensor : loop.written) written.merge(state_.memory(tensor));
  if (written.empty()) return;
  const auto expect_apart = [&](const IValue& leaf) {
    if (!leaf.isTensor() || state_.is_number(leaf) || trip.is_block(leaf)) return;
    for (const void* one : state_.memory(leaf.toTensor()))
      if (written.contains(one))
        throw Unsupported(
            "a tensor that a loop writes in place while a variable that the loop assigns is "
            "another name of it; raise `unroll`, or assign a clone()");
  };
  for (const auto& [address, program] : loop.changing) expect_apart(program);
  const Values inputs = leaves_of(trip.inputs, state_);
  const Values ends = leaves_of(trip.ending.outputs, state_);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (trip.is_block(inputs[i])) expect_apart(ends[i]);
}

void Interpreter::repeat(Node* node, Loop& loop) {
  constexpr int kRounds = 10;
  for (int round = 0; round < kRounds; ++round) {
    Trip once = trip(node, loop);
    if (widen(loop, once)) continue;
    check_names(loop, once);
    const bool all_trips = loop.trips.isInt() && loop.counted() && loop.go.isBool() &&
                           once.go.isBool() && once.go.toBool();
    all_trips ? scan(node, loop, once) : repeat_while(node, loop, once);
    return;
  }
  throw composit::UserError("the values that a loop carries do not settle on their types");
}

Interpreter::Trip Interpreter::trip(Node* node, Loop& loop) {
  Trip trip;
  for (const IValue& leaf : leaves_of(loop.carried, state_))
    if (loop.changes(leaf)) trip.init.push_back(state_.value(leaf.toTensor()));
  for (const at::Tensor& tensor : loop.written) trip.init.push_back(state_.value(tensor));
  std::vector<Type> types;
  for (const LazyTensor& tensor : trip.init) types.push_back(tensor.type());
  types.push_back(composit::tensor_type(DType::int64, {}));
  types.push_back(composit::tensor_type(DType::bool_, {}));

  const Mark mark = state_.mark();
  const Undecided undecided(branches_);
  trip.traced.emplace(types, [&](const LazyTensors& blocks) {
    run_body(node->blocks()[0], loop, trip, mark, blocks);
    return LazyTensors{};
  });
  state_.undo(mark);
  if (trip.ending.changes.others)
    throw Unsupported("a dict or an attribute that is changed in a loop that is not unrolled");
  return trip;
}

void Interpreter::run_body(Block* body, const Loop& loop, Trip& trip, const Mark& mark,
                           const LazyTensors& blocks) {
  size_t next = 0;
  std::vector<std::pair<at::Tensor, LazyTensor>> own;
  for (const IValue& value : loop.carried)
    trip.inputs.push_back(map_leaves(value, state_, [&](const IValue& leaf) {
      if (!loop.changes(leaf)) return leaf;
      const LazyTensor& block = blocks[next++];
      const IValue at = state_.is_number(leaf) ? state_.number(block) : state_.tensor(block);
      trip.starts[at.unsafeToTensorImpl()] = leaf;
      own.emplace_back(at.toTensor(), block);
      return at;
    }));
  for (const at::Tensor& tensor : loop.written) state_.write(tensor, blocks[next++]);
  trip.slots.counters = {{blocks[trip.counter()]}};
  Values arguments = {state_.number(blocks[trip.counter()])};
  arguments.insert(arguments.end(), trip.inputs.begin(), trip.inputs.end());
  slots_.push_back(&trip.slots);
  Values results = run(body, arguments);
  slots_.pop_back();
  trip.go = results[0];
  end({results.begin() + 1, results.end()}, mark, trip.ending);
  for (const auto& [at, block] : own)
    if (!(state_.value(at) == block))
      throw Unsupported(
          "a tensor that a loop both assigns and writes in place, as by y += x, where it is not "
          "unrolled: assign it, as by y = y + x");
}

// Carries what the trip showed to change: variables, numbers that were known before, memory that is
// written.
bool Interpreter::widen(Loop& loop, const Trip& trip) {
  bool widened = false;
  const Ending before{};
  const auto start_of = [&](const IValue& leaf) {
    return trip.is_block(leaf) ? trip.starts.at(leaf.unsafeToTensorImpl()) : leaf;
  };
  for (size_t i = 0; i < loop.carried.size(); ++i) {
    const auto change = [&](const IValue& a, const IValue& b) {
      const auto [x, y] = alike(before, a, trip.ending, b);
      if (trip.is_block(a) && x.dtype() == state_.value(a.toTensor()).dtype()) return a;
      widened = true;
      const bool number = is_python_number(a) || is_python_number(b);
      const LazyTensor start =
          trip.is_block(a) ? tensor_of(trip.starts.at(a.unsafeToTensorImpl())) : x;
      const IValue at =
          number ? state_.number(composit::to(start, x.dtype())) : IValue(state_.tensor(start));
      const IValue program =
          trip.is_block(a) ? loop.changing.at(start_of(a).unsafeToTensorImpl()) : a;
      loop.changing.emplace(at.unsafeToTensorImpl(), program);
      return at;
    };
    const IValue merged =
        merge(trip.inputs[i], trip.ending.outputs[i], state_, trip.ending.mark, change);
    loop.carried[i] = map_leaves(merged, state_, start_of);
  }
  for (const Changes::Written& one : trip.ending.changes.tensors) {
    const bool known = std::any_of(loop.written.begin(), loop.written.end(),
                                   [&](const at::Tensor& t) { return t.is_same(one.tensor); });
    if (!known) loop.written.push_back(one.tensor);
    widened = widened || !known;
  }
  return widened;
}

// The values of the blocks in the next trip.
Interpreter::LazyTensors Interpreter::next_values(const Loop& loop, const Trip& trip) {
  LazyTensors next;
  const Values inputs = leaves_of(trip.inputs, state_),
               outputs = leaves_of(trip.ending.outputs, state_);
  COMPOSIT_ASSERT(inputs.size() == outputs.size(), "a loop changes the structure it carries");
  for (size_t i = 0; i < inputs.size(); ++i)
    if (trip.is_block(inputs[i])) {
      const LazyTensor block = state_.value(inputs[i].toTensor());
      // A variable that is not assigned on this way is not read either.
      next.push_back(is_uninitialized(outputs[i])
                         ? block
                         : composit::to(value_in(trip.ending, outputs[i]), block.dtype()));
    }
  for (const at::Tensor& tensor : loop.written)
    for (const Changes::Written& one : trip.ending.changes.tensors)
      if (one.tensor.is_same(tensor)) next.push_back(one.value);
  return next;
}

namespace {

// The values that a trip appends to a list from outside of the loop.
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
LazyTensors Interpreter::cut_at_slots(composit::Traced& body, const Slots& slots, int64_t length) {
  LazyTensors cut, sequences;
  std::set<std::pair<uint64_t, uint64_t>> seen;
  for (const Taken& taken : slots.taken) {
    const composit::Hash hash = taken.slot.hash();
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
  const std::vector<Appended> appended = appended_of(trip.ending.changes, state_, trip.ending.mark);
  LazyTensors given = next_values(loop, trip);
  // A tensor from before the loop is appended itself, as in every trip.
  const auto same = [&](const IValue& item) {
    return item.isTensor() && !state_.is_number(item) && state_.is_older(item, trip.ending.mark);
  };
  for (const Appended& one : appended)
    for (const IValue& item : one.items)
      if (!same(item)) given.push_back(value_in(trip.ending, item));
  trip.traced->give(given);
  const LazyTensors cut = cut_at_slots(*trip.traced, trip.slots, length);
  const std::vector<bool> used = trip.traced->used();
  const size_t carried = trip.init.size();
  std::vector<size_t> order;
  LazyTensors sequences;
  for (size_t i = 0; i < used.size(); ++i) {
    if (i >= carried && !used[i]) continue;
    order.push_back(i);
    if (i == trip.counter()) sequences.push_back(composit::arange(length));
    if (i > trip.counter() + 1) sequences.push_back(cut[i - trip.counter() - 2]);
  }
  const composit::Closed closed = composit::close({*trip.traced}, order);
  const Attribute body = closed.regions[0];
  const LazyTensors results =
      trip.init.empty() && !sequences.empty()
          ? composit::apply("composit::map", {sequences, closed.outside, body, length})
          : composit::apply("composit::scan", {trip.init, sequences, closed.outside, LazyTensor(),
                                               body, length, false});
  finish(node, loop, trip, results, LazyTensor());
  size_t next = carried;
  for (const Appended& one : appended) {
    std::vector<std::function<IValue(int64_t trip)>> make;
    for (const IValue& item : one.items) {
      if (same(item))
        make.push_back([&](int64_t) { return item; });
      else
        make.push_back(
            [&, all = results[next++]](int64_t i) { return appended_item(trip, item, all, i); });
    }
    Values items = one.before;
    for (int64_t i = 0; i < length; ++i)
      for (const auto& item : make) items.push_back(item(i));
    state_.set_items(one.list, items);
  }
}

// The value appended in a trip, `item` in the body, as a slot of the stacked values.
IValue Interpreter::appended_item(const Trip& trip, const IValue& item, const LazyTensor& all,
                                  int64_t i) {
  const LazyTensor slot = composit::select_at(all, 0, i);
  if (is_python_number(item)) return state_.number(slot);
  const IValue made = state_.tensor(slot);
  const auto others = alternatives_in(trip.ending, item);
  if (trip.is_block(item) || !others || !others->empty()) state_.freeze(made, {item});
  return made;
}

void Interpreter::repeat_while(Node* node, Loop& loop, Trip& trip) {
  if (!trip.ending.changes.lists.empty())
    throw Unsupported("a list that is changed in a loop whose number of trips is computed");
  const bool decides = !(loop.go.isBool() && trip.go.isBool() && trip.go.toBool());
  if (!decides && !loop.counted())
    throw composit::UserError("a loop that does not end: its condition is always true");
  LazyTensors given = next_values(loop, trip);
  trip.traced->give(given);
  const bool counts = loop.counted() || trip.traced->used()[trip.counter()];
  if (counts) given.push_back(trip.traced->blocks()[trip.counter()] + 1);
  if (decides) given.push_back(tensor_of(trip.go));
  trip.traced->give(given);

  LazyTensors init = trip.init;
  std::vector<Type> types;
  for (const LazyTensor& block : trip.traced->blocks()) types.push_back(block.type());
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
  const composit::Traced condition(types, [&](const LazyTensors& blocks) {
    LazyTensor holds;
    if (loop.counted())
      holds = loop.trips.isInt() ? blocks[trip.counter()] < loop.trips.toInt()
                                 : blocks[trip.counter()] < tensor_of(loop.trips);
    if (!decides) return LazyTensors{holds};
    const LazyTensor& go = blocks[trip.counter() + 1];
    return LazyTensors{holds.defined() ? composit::logical_and(go, holds) : go};
  });
  const composit::Closed closed = composit::close({condition, *trip.traced}, order);
  const bool known = loop.counted() && loop.trips.isInt();
  const int64_t limit = known ? loop.trips.toInt() : limits_.trips;
  const LazyTensors results = composit::apply(
      "composit::while_loop",
      {init, closed.outside, Attribute(closed.regions[0]), Attribute(closed.regions[1]), limit});
  finish(node, loop, trip, results, composit::eq(results.back(), 0));
}

// Sets the values after the loop from the first results of its node. `never`: true if the loop made
// no trip; absent if it makes at least one.
void Interpreter::finish(Node* node, const Loop& loop, const Trip& trip, const LazyTensors& results,
                         const LazyTensor& never) {
  size_t next = 0, leaf = 0;
  const Values ends = leaves_of(trip.ending.outputs, state_);
  const auto left = [&](const LazyTensor& result, const IValue& start,
                        const IValue& end) -> IValue {
    const auto others = alternatives_in(trip.ending, end);
    const IValue& before = loop.changing.at(start.unsafeToTensorImpl());
    std::vector<Alternative> alternatives;
    if (never.defined() && before.isTensor()) alternatives = {{never, before.toTensor()}};
    const IValue made = state_.either(result, alternatives);
    // A tensor that the body did not make may be any tensor that the loop began with, or that
    // stays.
    if (trip.is_block(end) || !others || !others->empty()) {
      Values all = {end};
      for (const auto& [address, program] : loop.changing) all.push_back(program);
      state_.freeze(made, all);
    }
    return made;
  };
  Values outputs;
  for (const IValue& input : trip.inputs)
    outputs.push_back(map_leaves(input, state_, [&](const IValue& at) -> IValue {
      const IValue& end = ends.at(leaf++);
      if (!trip.is_block(at)) return at;
      const LazyTensor& result = results.at(next++);
      if (state_.is_number(at)) return state_.number(result);
      return left(result, trip.starts.at(at.unsafeToTensorImpl()), end);
    }));
  for (const at::Tensor& tensor : loop.written) state_.write(tensor, results.at(next++));
  set(node, outputs);
}

}  // namespace flashlight::torchscript
