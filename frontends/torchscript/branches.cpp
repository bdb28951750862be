// if/else: decided where the condition is known, composit::cond where it is computed.
#include <set>

#include "composit/ir/print.h"
#include "composit/op/promotion.h"
#include "composit/ops/functions.h"
#include "frontends/torchscript/interpreter.h"

namespace flashlight::torchscript {

using composit::DType;

// One way through an `if`.
struct Interpreter::Arm {
  std::optional<composit::Traced> traced;
  Ending ending;
};

void Interpreter::branch(Node* node) {
  const IValue condition = get(node->input());
  if (!condition.isBool()) return take_both(node, state_.value(condition.toTensor()));
  set(node, run(node->blocks()[condition.toBool() ? 0 : 1], {}));
}

// To be called before the writes are undone: a tensor has another value then.
void Interpreter::end(Values outputs, const Mark& mark, Ending& ending) {
  ending.outputs = std::move(outputs);
  ending.mark = mark;
  ending.changes = state_.changes(mark);
  const auto add = [&](const IValue& value) {
    for_each_leaf(value, "", [&](const IValue& leaf, const std::string&) {
      if (!leaf.isTensor()) return;
      ending.values.insert_or_assign(leaf.unsafeToTensorImpl(), state_.value(leaf.toTensor()));
      for (const void* one : state_.memory(leaf.toTensor(), mark)) ++ending.leaves[one];
    });
  };
  for (const IValue& output : ending.outputs) add(output);
  for (const Changes::ChangedList& list : ending.changes.lists)
    for (const IValue& item : list.items) add(item);
}

Interpreter::LazyTensor Interpreter::value_in(const Ending& ending, const IValue& leaf) {
  if (!leaf.isTensor()) return tensor_of(leaf);
  const auto found = ending.values.find(leaf.unsafeToTensorImpl());
  return found != ending.values.end() ? found->second : state_.value(leaf.toTensor());
}

std::optional<std::vector<Alternative>> Interpreter::alternatives_in(const Ending& ending,
                                                                     const IValue& leaf) {
  std::vector<Alternative> alternatives;
  if (!leaf.isTensor() || state_.is_number(leaf)) return alternatives;
  const at::Tensor& tensor = leaf.toTensor();
  if (state_.is_older(leaf, ending.mark)) return std::vector<Alternative>{{LazyTensor(), tensor}};
  // Another result may be the same tensor: then who writes one, writes the other.
  bool shared = false;
  for (const void* one : state_.memory(tensor, ending.mark)) {
    const auto named = ending.leaves.find(one);
    shared = shared || (named != ending.leaves.end() && named->second > 1);
  }
  if (shared || state_.is_frozen(tensor) || state_.is_view(tensor)) return std::nullopt;
  alternatives = state_.alternatives(tensor);
  for (const Alternative& one : alternatives)
    if (!state_.is_older(one.tensor, ending.mark)) return std::nullopt;
  return alternatives;
}

std::pair<Interpreter::LazyTensor, Interpreter::LazyTensor> Interpreter::alike(
    const Ending& ending_a, const IValue& a, const Ending& ending_b, const IValue& b) {
  if (is_uninitialized(a) || is_uninitialized(b)) {
    const LazyTensor there = is_uninitialized(a) ? value_in(ending_b, b) : value_in(ending_a, a);
    const LazyTensor none = composit::zeros_like(there);
    return is_uninitialized(a) ? std::pair(none, there) : std::pair(there, none);
  }
  const LazyTensor x = value_in(ending_a, a), y = value_in(ending_b, b);
  if (is_python_number(a) && is_python_number(b)) {
    const DType dtype = composit::promote(x.dtype(), y.dtype());
    return {composit::to(x, dtype), composit::to(y, dtype)};
  }
  if (is_python_number(a) != is_python_number(b) || x.dtype() != y.dtype() ||
      x.sizes() != y.sizes())
    throw composit::UserError("expected values of one type on both ways, received " +
                              composit::print(x.type()) + " and " + composit::print(y.type()));
  return {x, y};
}

Interpreter::Arm Interpreter::run_arm(Block* block) {
  Arm arm;
  const Mark mark = state_.mark();
  const Undecided undecided(branches_);
  arm.traced.emplace(std::vector<composit::Type>{}, [&](const LazyTensors&) {
    end(run(block, {}), mark, arm.ending);
    return LazyTensors{};
  });
  state_.undo(mark);
  if (arm.ending.changes.others)
    throw Unsupported("a dict or an attribute that is changed where what is computed says so");
  return arm;
}

namespace {

// The results of both arms, followed by the values that either of them writes.
struct Subjects {
  std::vector<std::pair<IValue, IValue>> pairs;
  std::vector<at::Tensor> tensors;
  std::vector<IValue> lists;
};

std::vector<IValue> items_after(const Changes& changes, const IValue& list) {
  for (const Changes::ChangedList& one : changes.lists)
    if (identity(one.list) == identity(list)) return one.items;
  return list.toList().vec();
}

void add_written(State& state, const Changes& x, const Changes& y, Subjects& subjects) {
  std::set<const void*> seen;
  for (const Changes* changes : {&x, &y})
    for (const Changes::Written& one : changes->tensors) {
      if (!seen.insert(one.tensor.unsafeGetTensorImpl()).second) continue;
      subjects.pairs.emplace_back(state.tensor(state.value_after(x, one.tensor)),
                                  state.tensor(state.value_after(y, one.tensor)));
      subjects.tensors.push_back(one.tensor);
    }
}

void add_lists(const Changes& x, const Changes& y, Subjects& subjects) {
  std::set<const void*> seen;
  for (const Changes* changes : {&x, &y})
    for (const Changes::ChangedList& one : changes->lists) {
      if (!seen.insert(identity(one.list)).second) continue;
      const auto items_x = items_after(x, one.list), items_y = items_after(y, one.list);
      if (items_x.size() != items_y.size())
        throw Unsupported("a list that has " + std::to_string(items_x.size()) +
                          " items on one way and " + std::to_string(items_y.size()) +
                          " on the other, where what is computed decides");
      subjects.pairs.emplace_back(c10::ivalue::Tuple::create(items_x),
                                  c10::ivalue::Tuple::create(items_y));
      subjects.lists.push_back(one.list);
    }
}

}  // namespace

// The results of composit::cond, while they are gathered, and when they are there.
struct Interpreter::Joint {
  const Ending &x, &y;
  LazyTensor predicate;
  LazyTensors given_x, given_y;  // what the arms give
  LazyTensors results = {};
  size_t next = 0;  // of the results

  // A bool that is always so in an arm, where there is no tensor.
  struct Selected {
    LazyTensor when;
    bool always = false;
  };
  struct Choice {
    at::Tensor tensor;
    Selected x, y;
    bool simple() const { return !x.when.defined() && !y.when.defined(); }
  };
  // The alternatives of both arms.
  static std::vector<Choice> choices(const std::vector<Alternative>& x,
                                     const std::vector<Alternative>& y) {
    std::vector<Choice> all;
    const auto of = [&](const at::Tensor& tensor) -> Choice& {
      for (Choice& one : all)
        if (one.tensor.is_same(tensor)) return one;
      return all.emplace_back(Choice{tensor, {}, {}});
    };
    for (const Alternative& one : x) of(one.tensor).x = {one.selected, !one.selected.defined()};
    for (const Alternative& one : y) of(one.tensor).y = {one.selected, !one.selected.defined()};
    return all;
  }
  // Per pair of leaves, what was found when it was gathered; nothing where it is not known what the
  // result may be.
  std::vector<std::optional<std::vector<Choice>>> plans = {};
  size_t next_plan = 0;

  void give(const LazyTensor& a, const LazyTensor& b) {
    given_x.push_back(a);
    given_y.push_back(b);
  }
};

namespace {

// Bools that differ: the predicate, or its opposite.
bool is_predicate(const IValue& a, const IValue& b) { return a.isBool() && b.isBool(); }

composit::LazyTensor truth(bool value) { return composit::full({}, value ? 1 : 0, DType::bool_); }

}  // namespace

void Interpreter::join(Joint& joint, const IValue& a, const IValue& b) {
  if (is_predicate(a, b)) return;
  const auto [tensor_x, tensor_y] = alike(joint.x, a, joint.y, b);
  joint.give(tensor_x, tensor_y);
  const auto x = alternatives_in(joint.x, a), y = alternatives_in(joint.y, b);
  auto& plan = joint.plans.emplace_back();
  if (!x || !y) return;
  plan = Joint::choices(*x, *y);
  for (const Joint::Choice& one : *plan)
    if (!one.simple())
      joint.give(one.x.when.defined() ? one.x.when : truth(one.x.always),
                 one.y.when.defined() ? one.y.when : truth(one.y.always));
}

// The same walk, with the results.
IValue Interpreter::joined(Joint& joint, const IValue& a, const IValue& b) {
  const LazyTensor& predicate = joint.predicate;
  if (is_predicate(a, b))
    return state_.number(a.toBool() ? predicate : composit::logical_not(predicate));
  const LazyTensor& result = joint.results.at(joint.next++);
  const auto& plan = joint.plans.at(joint.next_plan++);
  if (is_python_number(a) || is_python_number(b)) return state_.number(result);
  if (!plan) {
    const IValue tensor = state_.tensor(result);
    state_.freeze(tensor, {a, b});
    return tensor;
  }
  std::vector<Alternative> alternatives;
  for (const Joint::Choice& one : *plan) {
    LazyTensor selected = one.x.always ? predicate : composit::logical_not(predicate);
    if (!one.simple()) selected = joint.results.at(joint.next++);
    if (one.x.always && one.y.always) selected = truth(true);
    alternatives.push_back({selected, one.tensor});
  }
  return state_.either(result, alternatives);
}

void Interpreter::take_both(Node* node, const LazyTensor& predicate) {
  Arm arm_x = run_arm(node->blocks()[0]), arm_y = run_arm(node->blocks()[1]);
  const Ending &x = arm_x.ending, &y = arm_y.ending;
  Subjects subjects;
  for (size_t i = 0; i < x.outputs.size(); ++i)
    subjects.pairs.emplace_back(x.outputs[i], y.outputs[i]);
  add_written(state_, x.changes, y.changes, subjects);
  add_lists(x.changes, y.changes, subjects);

  Joint joint{x, y, predicate, {}, {}};
  for (const auto& [one, other] : subjects.pairs)
    merge(one, other, state_, x.mark, [&](const IValue& a, const IValue& b) {
      join(joint, a, b);
      return uninitialized();
    });
  if (!joint.given_x.empty()) {
    arm_x.traced->give(joint.given_x);
    arm_y.traced->give(joint.given_y);
    const composit::Closed closed = composit::close({*arm_x.traced, *arm_y.traced});
    joint.results = composit::apply(
        "composit::cond", {predicate, closed.outside, composit::Attribute(closed.regions[0]),
                           composit::Attribute(closed.regions[1])});
  }
  Values outputs;
  for (const auto& [one, other] : subjects.pairs)
    outputs.push_back(merge(one, other, state_, x.mark,
                            [&](const IValue& a, const IValue& b) { return joined(joint, a, b); }));
  auto value = outputs.begin() + static_cast<int64_t>(x.outputs.size());
  for (const at::Tensor& tensor : subjects.tensors)
    state_.write(tensor, state_.value((value++)->toTensor()));
  for (const IValue& list : subjects.lists)
    state_.set_items(list, (value++)->toTupleRef().elements().vec());
  outputs.resize(x.outputs.size());
  set(node, outputs);
}

}  // namespace flashlight::torchscript
