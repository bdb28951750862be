#include "composit/interchange/row.h"

#include <algorithm>
#include <complex>

#include "composit/ir/error.h"
#include "composit/ops/operations.h"

namespace composit::interchange {

RowTable::RowTable(std::initializer_list<void (*)(std::vector<Row>&)> families) {
  for (const auto add : families) add(rows_);
  for (const Row& row : rows_) {
    const std::string op(row.op);
    COMPOSIT_ASSERT(find_operation(Symbol(op)) != nullptr, "a row for the unknown '" + op + "'");
    COMPOSIT_ASSERT(by_name_.emplace(row.op, &row).second, "two rows for '" + op + "'");
  }
}

const Row* RowTable::find(Symbol op) const {
  const auto found = by_name_.find(op.str());
  return found == by_name_.end() ? nullptr : found->second;
}

const LazyTensor& tensor_of(const Call& call, std::string_view name) {
  static const LazyTensor absent;
  const ArgumentValue& value = call[name];
  return value.is_none() ? absent : value.tensor();
}

std::vector<int64_t> ints_of(const Call& call, std::string_view name) {
  const ArgumentValue& value = call[name];
  return value.is_none() ? std::vector<int64_t>() : to_ints(value.data());
}

std::vector<int64_t> ints_of(const Call& call, std::string_view name, size_t axes) {
  std::vector<int64_t> values = ints_of(call, name);
  if (values.size() == 1) values.resize(axes, values[0]);
  return values;
}

int64_t int_of(const Call& call, std::string_view name) { return call[name].data().as_int(); }
bool bool_of(const Call& call, std::string_view name) { return call[name].data().as<bool>(); }

double number_of(const Scalar& scalar) {
  return std::visit(
      [](const auto& value) {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::complex<double>>)
          return value.real();
        else
          return static_cast<double>(value);
      },
      scalar.value);
}

double real_of(const Call& call, std::string_view name) {
  const Attribute& data = call[name].data();
  if (const auto* real = data.get_if<double>()) return *real;
  if (const auto* scalar = data.get_if<Scalar>()) return number_of(*scalar);
  return static_cast<double>(data.as_int());
}

int64_t axis_of(const Call& call, std::string_view name, const LazyTensor& x) {
  return wrap_axis(int_of(call, name), x.rank());
}

std::vector<int64_t> axes_of(const Call& call, std::string_view name, const LazyTensor& x) {
  if (x.rank() == 0) return {};
  std::vector<int64_t> axes = ints_of(call, name);
  for (int64_t& axis : axes) axis = wrap_axis(axis, x.rank());
  if (axes.empty())
    for (int64_t axis = 0; axis < x.rank(); ++axis) axes.push_back(axis);
  std::sort(axes.begin(), axes.end());
  return axes;
}

}  // namespace composit::interchange
