// Values in memory: a tensor for each number, at all indices that it depends on.
#include <algorithm>

#include "frontends/ks/values.h"

namespace flashlight::ks {

using composit::DType;

namespace {

Expr both(const Expr& x, const Expr& y) { return !x.defined() ? y : !y.defined() ? x : x && y; }

}  // namespace

void Tape::add_leaf(const Expr& number, const std::vector<size_t>& variables, const Expr& inside,
                    bool is_length, std::vector<Leaf>& all) {
  const Expr value =
      inside.defined()
          ? composit::select(inside, number, composit::cast(Expr(int64_t{0}), number.dtype()))
          : number;
  std::vector<size_t> axes = variables;
  for (const size_t one : variables_of({value}))
    if (std::find(axes.begin(), axes.end(), one) == axes.end())
      axes.insert(std::lower_bound(axes.begin(), axes.end(), one), one);
  const auto known = value.dtype() == DType::int64 ? range(value) : std::nullopt;
  all.push_back({tensor(value, axes), axes, is_length, known});
}

void Tape::leaves(const Value& value, const std::vector<size_t>& variables, std::vector<Leaf>& all,
                  const Expr& inside) {
  if (value.is_number() && !is_known(value.number())) {
    add_leaf(value.number(), variables, inside, false, all);
  } else if (value.is_tuple()) {
    for (const Value& item : value.items()) leaves(item, variables, all, inside);
  } else if (value.is_tensor()) {
    const TensorValue& tensor = value.tensor();
    for (const Expr& length : tensor.lengths)
      if (length.defined()) add_leaf(length, variables, inside, true, all);
    const Index index = this->variables(tensor.sizes);
    std::vector<size_t> axes = variables;
    for (const Expr& one : index) axes.push_back(one.number());
    leaves(tensor.at(index), axes, all, both(inside, tensor.inside(index)));
  }
}

Expr Tape::read(const Leaf& leaf, const Index& own, std::optional<Range> range) {
  Index index;  // a tensor's own axes are the last ones of its leaves
  for (size_t i = 0; i + own.size() < leaf.variables.size(); ++i)
    index.push_back(Expr::parameter(leaf.variables[i], DType::int64));
  index.insert(index.end(), own.begin(), own.end());
  return load(leaf.tensor, index, range);
}

Value Tape::from_leaves(const Value& form, const std::shared_ptr<const std::vector<Leaf>>& leaves,
                        size_t& next, const Index& own) {
  if (form.is_number() && is_known(form.number())) return form;
  if (form.is_number()) {
    const Leaf& leaf = leaves->at(next++);
    return {read(leaf, own, leaf.range)};
  }
  if (form.is_tuple()) {
    Values items;
    for (const Value& item : form.items()) items.push_back(from_leaves(item, leaves, next, own));
    return tuple_of(std::move(items));
  }
  if (!form.is_tensor()) return form;
  const TensorValue& tensor = form.tensor();
  Index lengths = tensor.lengths;
  for (size_t axis = 0; axis < lengths.size(); ++axis)
    if (lengths[axis].defined())
      lengths[axis] = read(leaves->at(next++), own, Range{0, tensor.sizes[axis]});
  const Index some = variables(tensor.sizes);
  const Value element = tensor.at(some);
  const size_t first = next;
  next += count_leaves(element);
  return tensor_of(
      tensor.sizes,
      [this, element, leaves, first, own](const Index& here) {
        Index index = own;
        index.insert(index.end(), here.begin(), here.end());
        size_t from = first;
        return from_leaves(element, leaves, from, index);
      },
      true, std::move(lengths));
}

size_t Tape::count_leaves(const Value& form) {
  if (form.is_number()) return is_known(form.number()) ? 0 : 1;
  size_t count = 0;
  if (form.is_tuple())
    for (const Value& item : form.items()) count += count_leaves(item);
  if (form.is_tensor()) {
    const TensorValue& tensor = form.tensor();
    for (size_t axis = 0; axis < tensor.sizes.size(); ++axis) count += tensor.ragged(axis) ? 1 : 0;
    count += count_leaves(tensor.at(variables(tensor.sizes)));
  }
  return count;
}

}  // namespace flashlight::ks
