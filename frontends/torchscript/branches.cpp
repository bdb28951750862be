// if/else: decided where the condition is known, composit::cond where it is computed.
#include <set>

#include "composit/ir/print.h"
#include "composit/op/promotion.h"
#include "composit/ops/functions.h"
#include "frontends/torchscript/interpreter.h"

namespace flashlight::torchscript {

using composit::DType;

// One way through an `if`: what it gives and what it writes.
struct Interpreter::Arm {
  std::optional<composit::Traced> traced;
  Values outputs;
  Changes changes;
};

void Interpreter::branch(Node* node) {
  const IValue condition = get(node->input());
  if (!condition.isBool()) return take_both(node, state_.value(condition.toTensor()));
  set(node, run(node->blocks()[condition.toBool() ? 0 : 1], {}));
}

std::pair<Interpreter::Tensor, Interpreter::Tensor> Interpreter::alike(const IValue& a,
                                                                       const IValue& b) {
  if (is_uninitialized(a) || is_uninitialized(b)) {
    const Tensor there = tensor_of(is_uninitialized(a) ? b : a);
    const Tensor none = composit::zeros_like(there);
    return is_uninitialized(a) ? std::pair(none, there) : std::pair(there, none);
  }
  const Tensor x = tensor_of(a), y = tensor_of(b);
  if (is_python_number(a) && is_python_number(b)) {
    const DType dtype = composit::promote(x.dtype(), y.dtype());
    return {composit::to(x, dtype), composit::to(y, dtype)};
  }
  if (is_python_number(a) != is_python_number(b) || x.dtype() != y.dtype() ||
      x.sizes() != y.sizes())
    throw composit::UserError("expected values of one type on both ways, received " +
                              describe(a, state_) + " and " + describe(b, state_));
  return {x, y};
}

// A view of what an arm writes is what it shows at the end of the arm.
IValue Interpreter::settled(const IValue& value) {
  bool views = false;
  for_each_leaf(value, "", [&](const IValue& leaf, const std::string&) {
    views = views || (leaf.isTensor() && state_.is_view(leaf.toTensor()));
  });
  if (!views) return value;
  return map_leaves(value, [&](const IValue& leaf) {
    return leaf.isTensor() && state_.is_view(leaf.toTensor())
               ? IValue(state_.tensor(state_.value(leaf.toTensor())))
               : leaf;
  });
}

Interpreter::Arm Interpreter::run_arm(Block* block) {
  Arm arm;
  const Mark mark = state_.mark();
  const Undecided undecided(branches_);
  arm.traced.emplace(std::vector<composit::Type>{}, [&](const Tensors&) {
    for (const IValue& output : run(block, {})) arm.outputs.push_back(settled(output));
    return Tensors{};
  });
  arm.changes = state_.undo(mark);
  if (arm.changes.others)
    throw Unsupported("a dict or an attribute that is changed where what is computed says so");
  return arm;
}

namespace {

// What both arms give, then what either of them writes.
struct Subjects {
  std::vector<std::pair<IValue, IValue>> pairs;
  std::vector<at::Tensor> tensors;
  std::vector<IValue> lists;
};

const composit::Tensor* written(const Changes& changes, const at::Tensor& tensor) {
  for (const Changes::Written& one : changes.tensors)
    if (one.tensor.is_same(tensor)) return &one.value;
  return nullptr;
}

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
      const auto after = [&](const Changes& arm) -> IValue {
        const composit::Tensor* value = written(arm, one.tensor);
        return state.tensor(value != nullptr ? *value : state.value(one.tensor));
      };
      subjects.pairs.emplace_back(after(x), after(y));
      subjects.tensors.push_back(one.tensor);
    }
}

void add_lists(const Changes& x, const Changes& y, Subjects& subjects) {
  std::set<const void*> seen;
  for (const Changes* changes : {&x, &y})
    for (const Changes::ChangedList& one : changes->lists) {
      if (!seen.insert(identity(one.list)).second) continue;
      subjects.pairs.emplace_back(c10::ivalue::Tuple::create(items_after(x, one.list)),
                                  c10::ivalue::Tuple::create(items_after(y, one.list)));
      subjects.lists.push_back(one.list);
    }
}

}  // namespace

void Interpreter::take_both(Node* node, const Tensor& predicate) {
  Arm x = run_arm(node->blocks()[0]), y = run_arm(node->blocks()[1]);
  Subjects subjects;
  for (size_t i = 0; i < x.outputs.size(); ++i)
    subjects.pairs.emplace_back(x.outputs[i], y.outputs[i]);
  add_written(state_, x.changes, y.changes, subjects);
  add_lists(x.changes, y.changes, subjects);

  Tensors given_x, given_y;
  for (const auto& [a, b] : subjects.pairs)
    merge(a, b, state_, [&](const IValue& one, const IValue& other) {
      if (one.isBool() && other.isBool()) return uninitialized();  // the predicate, or its opposite
      const auto [tensor_x, tensor_y] = alike(one, other);
      given_x.push_back(tensor_x);
      given_y.push_back(tensor_y);
      return uninitialized();
    });
  Tensors results;
  if (!given_x.empty()) {
    x.traced->give(given_x);
    y.traced->give(given_y);
    const composit::Closed closed = composit::close({*x.traced, *y.traced});
    results = composit::apply("composit::cond",
                              {predicate, closed.outside, composit::Attribute(closed.regions[0]),
                               composit::Attribute(closed.regions[1])});
  }
  size_t next = 0;
  Values merged;
  for (const auto& [a, b] : subjects.pairs)
    merged.push_back(merge(a, b, state_, [&](const IValue& one, const IValue& other) -> IValue {
      if (one.isBool() && other.isBool())
        return state_.number(one.toBool() ? predicate : composit::logical_not(predicate));
      const Tensor& result = results.at(next++);
      const bool number = is_python_number(one) || is_python_number(other);
      return number ? state_.number(result) : IValue(state_.tensor(result));
    }));
  auto value = merged.begin() + static_cast<int64_t>(x.outputs.size());
  for (const at::Tensor& tensor : subjects.tensors)
    state_.write(tensor, state_.value((value++)->toTensor()));
  for (const IValue& list : subjects.lists)
    state_.set_items(list, (value++)->toTupleRef().elements().vec());
  merged.resize(x.outputs.size());
  set(node, merged);
}

}  // namespace flashlight::torchscript
