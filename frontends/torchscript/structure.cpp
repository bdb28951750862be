#include "frontends/torchscript/structure.h"

#include <cstring>

#include "composit/ir/error.h"
#include "composit/ir/print.h"

namespace flashlight::torchscript {
namespace {

bool is_leaf(const IValue& value) { return value.isTensor() || value.isScalar(); }

// The same tensor, not only the same value: who writes one of two writes it alone. Of numbers, the
// same value.
bool is_same(const IValue& a, const IValue& b, State& state) {
  if (a.isTensor() && b.isTensor())
    return a.toTensor().is_same(b.toTensor()) ||
           (state.is_number(a) && state.is_number(b) &&
            state.value(a.toTensor()) == state.value(b.toTensor()));
  if (a.isTensor() || b.isTensor() || a.tagKind() != b.tagKind()) return false;
  if (a.isDouble()) {  // by bits: -0.0 is not 0.0
    const double x = a.toDouble(), y = b.toDouble();
    return std::memcmp(&x, &y, sizeof x) == 0;
  }
  return a.isScalar() ? a.equals(b).toBool() : false;
}

[[noreturn]] void refuse(const IValue& a, const IValue& b, State& state) {
  throw composit::UserError("expected values of one structure on both ways, received " +
                            describe(a, state) + " and " + describe(b, state));
}

class Merge {
 public:
  Merge(State& state, const Mark& mark, const MergeLeaves& leaf)
      : state_(state), mark_(mark), leaf_(leaf) {}

  IValue operator()(const IValue& a, const IValue& b) {
    if (is_uninitialized(a) && is_uninitialized(b)) return a;
    if (identity(a) != nullptr && identity(a) == identity(b)) return a;
    if (is_same(a, b, state_)) return a;
    if (is_leaf(a) || is_leaf(b)) return leaves(a, b);
    if (a.isTuple() || b.isTuple()) return tuple(a, b);
    if (a.isList() || b.isList()) return list(a, b);
    if (is_uninitialized(a)) return b;
    if (is_uninitialized(b) || a.is(b) || (a.isString() && b.isString() && a.equals(b).toBool()))
      return a;
    if ((a.isDevice() && b.isDevice()) && a.toDevice() == b.toDevice()) return a;
    refuse(a, b, state_);
  }

 private:
  IValue leaves(const IValue& a, const IValue& b) {
    const bool fit = (is_leaf(a) || is_uninitialized(a)) && (is_leaf(b) || is_uninitialized(b));
    if (!fit) refuse(a, b, state_);
    return leaf_(a, b);
  }
  // The items of two sequences, one of which may be uninitialized.
  std::vector<IValue> items(c10::ArrayRef<IValue> a, c10::ArrayRef<IValue> b, bool no_a,
                            bool no_b) {
    std::vector<IValue> merged;
    for (size_t i = 0; i < (no_a ? b : a).size(); ++i)
      merged.push_back((*this)(no_a ? uninitialized() : a[i], no_b ? uninitialized() : b[i]));
    return merged;
  }
  IValue tuple(const IValue& a, const IValue& b) {
    const bool no_a = is_uninitialized(a), no_b = is_uninitialized(b);
    if ((!no_a && !a.isTuple()) || (!no_b && !b.isTuple())) refuse(a, b, state_);
    const auto of = [](const IValue& value, bool none) {
      return none ? std::vector<IValue>() : value.toTupleRef().elements().vec();
    };
    const std::vector<IValue> x = of(a, no_a), y = of(b, no_b);
    if (!no_a && !no_b && x.size() != y.size()) refuse(a, b, state_);
    return c10::ivalue::Tuple::create(items(x, y, no_a, no_b));
  }
  IValue list(const IValue& a, const IValue& b) {
    const bool no_a = is_uninitialized(a), no_b = is_uninitialized(b);
    if ((!no_a && !a.isList()) || (!no_b && !b.isList())) refuse(a, b, state_);
    const auto of = [](const IValue& value, bool none) {
      return none ? std::vector<IValue>() : value.toList().vec();
    };
    const std::vector<IValue> x = of(a, no_a), y = of(b, no_b);
    if (!no_a && !no_b && x.size() != y.size()) refuse(a, b, state_);
    c10::impl::GenericList merged((no_a ? b : a).toList().elementType());
    for (const IValue& item : items(x, y, no_a, no_b)) merged.push_back(item);
    state_.made(merged);
    if ((!no_a && !state_.is_own(a, mark_)) || (!no_b && !state_.is_own(b, mark_)))
      state_.freeze(merged, {a, b});
    return merged;
  }

  State& state_;
  const Mark& mark_;
  const MergeLeaves& leaf_;
};

}  // namespace

IValue merge(const IValue& a, const IValue& b, State& state, const Mark& mark,
             const MergeLeaves& leaf) {
  return Merge(state, mark, leaf)(a, b);
}

namespace {

// `items`, each mapped; whether one of them changed.
bool map_items(std::vector<IValue>& items, State& state, const MapLeaf& leaf) {
  bool changed = false;
  for (IValue& item : items) {
    IValue mapped = map_leaves(item, state, leaf);
    changed = changed || !mapped.is(item);
    item = std::move(mapped);
  }
  return changed;
}

}  // namespace

IValue map_leaves(const IValue& value, State& state, const MapLeaf& leaf) {
  if (value.isTuple()) {
    std::vector<IValue> items = value.toTupleRef().elements().vec();
    return map_items(items, state, leaf) ? c10::ivalue::Tuple::create(std::move(items)) : value;
  }
  if (value.isList()) {
    std::vector<IValue> items = value.toList().vec();
    if (!map_items(items, state, leaf)) return value;
    c10::impl::GenericList mapped(value.toList().elementType());
    for (const IValue& item : items) mapped.push_back(item);
    state.made(mapped);
    state.freeze(mapped, {value});
    return mapped;
  }
  return leaf(value);
}

void for_each_leaf(const IValue& value, const std::string& name, const VisitLeaf& visit) {
  size_t count = 0;
  const auto next = [&] { return name + "." + std::to_string(count++); };
  if (value.isTuple()) {
    for (const IValue& item : value.toTupleRef().elements()) for_each_leaf(item, next(), visit);
  } else if (value.isList()) {
    for (const IValue& item : value.toList().vec()) for_each_leaf(item, next(), visit);
  } else if (value.isGenericDict()) {
    for (const auto& item : value.toGenericDict()) {
      const IValue& key = item.key();
      const std::string text = key.isString() ? key.toStringRef() : std::to_string(key.toInt());
      for_each_leaf(item.value(), name + "." + text, visit);
    }
  } else {
    visit(value, name);
  }
}

bool is_computed(const IValue& value, const State& state) {
  bool computed = false;
  for_each_leaf(value, "", [&](const IValue& leaf, const std::string&) {
    computed = computed || (leaf.isTensor() && state.knows(leaf.toTensor()));
  });
  return computed;
}

std::string describe(const IValue& value, State& state) {
  if (is_uninitialized(value)) return "no value yet";
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    if (!state.knows(tensor)) return "a constant tensor";
    const auto type = composit::print(state.value(tensor).type());
    return state.is_number(value) ? "a number (" + type + ")" : "a tensor " + type;
  }
  if (value.isList()) return "a list of " + std::to_string(value.toList().size());
  if (value.isTuple()) return "a tuple of " + std::to_string(value.toTupleRef().elements().size());
  if (value.isNone()) return "None";
  if (value.isString()) return "'" + value.toStringRef() + "'";
  if (value.isInt()) return std::to_string(value.toInt());
  if (value.isDouble()) return std::to_string(value.toDouble());
  if (value.isBool()) return value.toBool() ? "True" : "False";
  return value.tagKind();
}

}  // namespace flashlight::torchscript
