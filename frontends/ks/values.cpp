#include "frontends/ks/values.h"

#include <algorithm>
#include <set>

#include "composit/ir/error.h"
#include "composit/ops/functions.h"

namespace flashlight::ks {

using composit::ExprKind;

bool is_known(const Expr& number) {
  return number.kind() == ExprKind::literal && !composit::is_floating_point(number.dtype());
}

Expr TensorValue::inside(const Index& index) const {
  Expr all;
  for (size_t axis = 0; axis < lengths.size(); ++axis) {
    if (!lengths[axis].defined()) continue;
    const Expr one = index[axis] < lengths[axis];
    all = all.defined() ? all && one : one;
  }
  return all;
}

bool same_sizes(const TensorValue& x, const TensorValue& y) {
  if (x.sizes != y.sizes) return false;
  for (size_t axis = 0; axis < x.sizes.size(); ++axis)
    if (!x.length(axis).same(y.length(axis))) return false;
  return true;
}

Tape Tape::of_numbers(const std::vector<Expr>& numbers) {
  Tape tape(composit::DType::float64);
  tape.has_graph_ = false;
  for (const Expr& part : composit::parts_of(numbers))  // variables get other numbers
    if (part.kind() == ExprKind::parameter)
      tape.extents_.resize(std::max(tape.extents_.size(), part.number() + 1), 1);
  return tape;
}

std::vector<Expr> Tape::unrolled(const Expr& value, const Expr& variable) const {
  constexpr int64_t kMost = 4096;
  const int64_t extent = extents_.at(variable.number());
  if (extent > kMost)
    throw composit::UserError("[ks] a function of numbers has a sum of " + std::to_string(extent) +
                              " terms; expected at most " + std::to_string(kMost));
  std::vector<Expr> values;
  for (int64_t i = 0; i < extent; ++i)
    values.push_back(composit::replace(
        value, [&](const Expr& part) { return part.same(variable) ? Expr(i) : Expr(); }));
  return values;
}

Expr Tape::variable(int64_t extent) {
  extents_.push_back(extent);
  return Expr::parameter(extents_.size() - 1, composit::DType::int64);
}

Index Tape::variables(const composit::Ints& sizes) {
  Index index;
  for (const int64_t size : sizes) index.push_back(variable(size));
  return index;
}

Expr Tape::load(const LazyTensor& tensor, Index index, std::optional<Range> range) {
  size_t number = 0;
  while (number < tensors_.size() && !(tensors_[number] == tensor)) ++number;
  if (number == tensors_.size()) {
    tensors_.push_back(tensor);
    ranges_.emplace_back();
  }
  if (range) ranges_[number] = range;
  return Expr::load(number, tensor.dtype(), std::move(index));
}

std::vector<size_t> Tape::variables_of(const std::vector<Expr>& exprs) const {
  std::set<size_t> numbers;
  for (const Expr& part : composit::parts_of(exprs))
    if (part.kind() == ExprKind::parameter) numbers.insert(part.number());
  return {numbers.begin(), numbers.end()};
}

// `value` in terms of the axes of a nest and of operands, which are added.
Expr Tape::bound(const Expr& value, const std::vector<size_t>& variables, const Index& axes,
                 LazyTensors& operands) const {
  const auto operand_of = [&](const LazyTensor& tensor) {
    const auto found = std::find(operands.begin(), operands.end(), tensor);
    if (found != operands.end()) return static_cast<size_t>(found - operands.begin());
    operands.push_back(tensor);
    return operands.size() - 1;
  };
  return composit::replace(value, [&](const Expr& part) -> Expr {
    if (part.kind() == ExprKind::parameter) {
      const auto found = std::find(variables.begin(), variables.end(), part.number());
      COMPOSIT_ASSERT(found != variables.end(), "an index of a build is used outside of it");
      return axes[static_cast<size_t>(found - variables.begin())];
    }
    if (part.kind() == ExprKind::load)
      return Expr::load(operand_of(tensors_[part.number()]), part.dtype(), part.arguments());
    return {};
  });
}

LazyTensor Tape::node(const Expr& value, const std::vector<size_t>& parallel,
                      std::optional<size_t> reduced) {
  composit::Nest nest;
  Index axes;
  std::vector<size_t> variables = parallel;
  for (const size_t one : parallel) axes.push_back(nest.parallel(extents_[one]));
  if (reduced) {
    variables.push_back(*reduced);
    axes.push_back(nest.reduction(extents_[*reduced]));
  }
  LazyTensors operands;
  Expr inner = bound(value, variables, axes, operands);
  if (reduced) inner = nest.sum(inner);
  composit::Loops loops = nest.store(inner).loops();
  for (const LazyTensor& operand : operands) loops.operands.push_back(operand.type());
  return composit::apply("composit::loops", {operands, composit::print(loops)})[0];
}

LazyTensor Tape::tensor(const Expr& value, const std::vector<size_t>& variables) {
  if (!has_graph_)
    throw composit::UserError(
        "[ks] a function of numbers has no derivative, fold or tensor within: call it on tensors");
  if (value.kind() == ExprKind::load) {  // is it there already?
    const LazyTensor& whole = tensors_[value.number()];
    bool same = value.arguments().size() == variables.size();
    for (size_t axis = 0; same && axis < variables.size(); ++axis) {
      const Expr& index = value.arguments()[axis];
      same = index.kind() == ExprKind::parameter && index.number() == variables[axis] &&
             whole.sizes()[axis] == extents_[variables[axis]];
    }
    if (same) return whole;
  }
  return node(value, variables);
}

Expr Tape::sum(const Expr& value, const Expr& variable) {
  if (!has_graph_) {
    Expr total = composit::cast(Expr(int64_t{0}), value.dtype());
    for (const Expr& one : unrolled(value, variable)) total = total + one;
    return total;
  }
  std::vector<size_t> outer = variables_of({value});
  std::erase(outer, variable.number());
  const LazyTensor sums = node(value, outer, variable.number());
  Index index;
  for (const size_t one : outer) index.push_back(Expr::parameter(one, composit::DType::int64));
  return load(sums, index);
}
Expr Tape::reduced(const Expr& value, const Expr& variable, LazyTensor (*f)(const LazyTensor&)) {
  std::vector<size_t> axes = variables_of({value});
  std::erase(axes, variable.number());
  Index index;
  for (const size_t one : axes) index.push_back(Expr::parameter(one, composit::DType::int64));
  axes.push_back(variable.number());
  return load(f(tensor(value, axes)), index);
}
Expr Tape::maximum(const Expr& value, const Expr& variable) {
  if (!has_graph_) {
    const std::vector<Expr> values = unrolled(value, variable);
    Expr largest = values[0];
    for (const Expr& one : values) largest = composit::max(largest, one);
    return largest;
  }
  return reduced(value, variable, [](const LazyTensor& x) { return composit::amax(x, {-1}); });
}
Expr Tape::largest(const Expr& value, const Expr& variable) {
  return reduced(value, variable, [](const LazyTensor& x) {
    return composit::apply_one("aten::argmax", {x, int64_t{-1}, false});
  });
}

std::vector<size_t> Tape::variables_within(const Value& value) {
  std::set<size_t> all;
  const auto add = [&](const std::vector<size_t>& variables) {
    all.insert(variables.begin(), variables.end());
  };
  if (value.is_number()) add(variables_of({value.number()}));
  if (value.is_tuple())
    for (const Value& item : value.items()) add(variables_within(item));
  if (value.is_tensor()) {
    const TensorValue& tensor = value.tensor();
    for (const Expr& length : tensor.lengths)
      if (length.defined()) add(variables_of({length}));
    const Index own = variables(tensor.sizes);
    add(variables_within(tensor.at(own)));
    for (const Expr& one : own) all.erase(one.number());
  }
  return {all.begin(), all.end()};
}

bool Tape::is_ragged(const Value& value) {
  if (value.is_tuple())
    return std::any_of(value.items().begin(), value.items().end(),
                       [this](const Value& item) { return is_ragged(item); });
  if (!value.is_tensor()) return false;
  const TensorValue& tensor = value.tensor();
  return tensor.ragged() || is_ragged(tensor.at(variables(tensor.sizes)));
}

Value Tape::computed(const Value& value) {
  if (value.is_number() && is_known(value.number())) return {load(tensor(value.number(), {}), {})};
  if (value.is_tuple()) {
    Values items;
    for (const Value& item : value.items()) items.push_back(computed(item));
    return tuple_of(std::move(items));
  }
  if (!value.is_tensor()) return value;
  return tensor_like(value.tensor(), [this, value](const Index& index) {
    return computed(value.tensor().at(index));
  });
}

Value Tape::in_memory(const Value& value) {
  if (!has_graph_) return value;
  // A literal, an element and arithmetic of indices need no memory.
  const auto computes = [](const Expr& number) {
    if (number.kind() != ExprKind::call) return false;
    const std::vector<Expr> parts = composit::parts_of({number});
    return composit::is_floating_point(number.dtype()) ||
           std::any_of(parts.begin(), parts.end(),
                       [](const Expr& part) { return part.kind() == ExprKind::load; });
  };
  if (value.is_number() && !computes(value.number())) return value;
  if (value.is_tensor() && value.tensor().in_memory) return value;
  if (value.is_tuple()) {
    Values items;
    for (const Value& item : value.items()) items.push_back(in_memory(item));
    return tuple_of(std::move(items));
  }
  std::vector<Leaf> all;
  leaves(value, {}, all);
  size_t next = 0;
  return from_leaves(value, std::make_shared<const std::vector<Leaf>>(std::move(all)), next);
}

}  // namespace flashlight::ks
