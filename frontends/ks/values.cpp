#include "frontends/ks/values.h"

#include <algorithm>
#include <set>

#include "composit/ir/error.h"
#include "composit/ops/functions.h"

namespace flashlight::ks {

using composit::ExprKind;
using composit::Function;

namespace {

// Integers and bools that are known stay so: they may be sizes.
bool is_known(const Expr& number) {
  return number.kind() == ExprKind::literal && !composit::is_floating_point(number.dtype());
}

}  // namespace

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

Expr Tape::load(const LazyTensor& tensor, Index index) {
  size_t number = 0;
  while (number < tensors_.size() && !(tensors_[number] == tensor)) ++number;
  if (number == tensors_.size()) tensors_.push_back(tensor);
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

std::vector<Expr> Tape::numbers_of(const Value& value) {
  std::vector<Expr> all;
  const auto add = [&](const Value& part) {
    const std::vector<Expr> inner = numbers_of(part);
    all.insert(all.end(), inner.begin(), inner.end());
  };
  if (value.is_number()) all.push_back(value.number());
  if (value.is_tuple())
    for (const Value& item : value.items()) add(item);
  if (value.is_tensor()) {
    Index zeros(value.tensor().sizes.size(), Expr(int64_t{0}));
    add(value.tensor().at(zeros));
  }
  return all;
}

std::optional<Tape::Range> Tape::range(const Expr& x) const {
  if (x.kind() == ExprKind::parameter) return Range{0, extents_[x.number()] - 1};
  if (x.kind() == ExprKind::literal) {
    const auto* value = std::get_if<int64_t>(&x.value());
    return value == nullptr ? std::nullopt : std::optional(Range{*value, *value});
  }
  if (x.kind() != ExprKind::call) return std::nullopt;
  std::vector<Range> of;
  for (const Expr& argument : x.arguments()) {
    const bool condition = argument.dtype() == composit::DType::bool_;
    const auto one = condition ? Range{0, 1} : range(argument);
    if (!one) return std::nullopt;
    of.push_back(*one);
  }
  constexpr int64_t kLarge = int64_t{1} << 31;  // products of smaller numbers do not wrap
  for (const Range& one : of)
    if (one.least < -kLarge || one.most > kLarge) return std::nullopt;
  switch (x.function()) {
    case Function::add:
      return Range{of[0].least + of[1].least, of[0].most + of[1].most};
    case Function::sub:
      return Range{of[0].least - of[1].most, of[0].most - of[1].least};
    case Function::neg:
      return Range{-of[0].most, -of[0].least};
    case Function::mul: {
      const auto all = {of[0].least * of[1].least, of[0].least * of[1].most,
                        of[0].most * of[1].least, of[0].most * of[1].most};
      return Range{std::min(all), std::max(all)};
    }
    case Function::min:
      return Range{std::min(of[0].least, of[1].least), std::min(of[0].most, of[1].most)};
    case Function::max:
      return Range{std::max(of[0].least, of[1].least), std::max(of[0].most, of[1].most)};
    case Function::select:
      return Range{std::min(of[1].least, of[2].least), std::max(of[1].most, of[2].most)};
    default:
      return std::nullopt;
  }
}

void Tape::leaves(const Value& value, const std::vector<size_t>& variables,
                  std::vector<Leaf>& all) {
  if (value.is_number() && is_known(value.number())) return;
  if (value.is_number()) {
    std::vector<size_t> axes = variables;
    for (const size_t one : variables_of({value.number()}))
      if (std::find(axes.begin(), axes.end(), one) == axes.end())
        axes.insert(std::lower_bound(axes.begin(), axes.end(), one), one);
    all.push_back({tensor(value.number(), axes), axes});
  } else if (value.is_tuple()) {
    for (const Value& item : value.items()) leaves(item, variables, all);
  } else if (value.is_tensor()) {
    Index index;
    std::vector<size_t> axes = variables;
    for (const int64_t size : value.tensor().sizes) {
      index.push_back(variable(size));
      axes.push_back(index.back().number());
    }
    leaves(value.tensor().at(index), axes, all);
  }
}

Value Tape::from_leaves(const Value& form, const std::shared_ptr<const std::vector<Leaf>>& leaves,
                        size_t& next, const Index& own) {
  if (form.is_number() && is_known(form.number())) return form;
  if (form.is_number()) {
    const Leaf& leaf = leaves->at(next++);
    Index index;  // a tensor's own axes are the last ones of its leaves
    for (size_t i = 0; i + own.size() < leaf.variables.size(); ++i)
      index.push_back(Expr::parameter(leaf.variables[i], composit::DType::int64));
    index.insert(index.end(), own.begin(), own.end());
    return {load(leaf.tensor, index)};
  }
  if (form.is_tuple()) {
    Values items;
    for (const Value& item : form.items()) items.push_back(from_leaves(item, leaves, next, own));
    return tuple_of(std::move(items));
  }
  if (!form.is_tensor()) return form;
  const Index some = variables(form.tensor().sizes);
  const Value element = form.tensor().at(some);
  const size_t first = next;
  next += count_numbers(element);
  return tensor_of(
      form.tensor().sizes,
      [this, element, leaves, first, own](const Index& here) {
        Index index = own;
        index.insert(index.end(), here.begin(), here.end());
        size_t from = first;
        return from_leaves(element, leaves, from, index);
      },
      true);
}

size_t Tape::count_numbers(const Value& form) {
  if (form.is_number()) return is_known(form.number()) ? 0 : 1;
  size_t count = 0;
  if (form.is_tuple())
    for (const Value& item : form.items()) count += count_numbers(item);
  if (form.is_tensor()) {
    Index some;
    for (const int64_t size : form.tensor().sizes) some.push_back(variable(size));
    count = count_numbers(form.tensor().at(some));
  }
  return count;
}

Value Tape::computed(const Value& value) {
  if (value.is_number() && is_known(value.number())) return {load(tensor(value.number(), {}), {})};
  if (value.is_tuple()) {
    Values items;
    for (const Value& item : value.items()) items.push_back(computed(item));
    return tuple_of(std::move(items));
  }
  if (!value.is_tensor()) return value;
  return tensor_of(value.tensor().sizes, [this, value](const Index& index) {
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
