#include "composit/interchange/onnx/rows.h"

#include <algorithm>
#include <complex>

#include "composit/ir/error.h"
#include "composit/ops/operations.h"

namespace composit::onnx {

const std::vector<Row>& all_rows() {
  static const auto* rows = [] {
    auto* all = new std::vector<Row>();
    for (const auto add : {add_activation_rows, add_convolution_rows, add_elementwise_rows,
                           add_indexing_rows, add_movement_rows, add_normalization_rows,
                           add_pooling_rows, add_product_rows, add_reduction_rows})
      add(*all);
    std::string unknown;
    for (const Row& row : *all)
      if (find_operation(Symbol(row.op)) == nullptr) unknown += " " + std::string(row.op);
    COMPOSIT_ASSERT(unknown.empty(),
                    "rows for operations that composit does not define:" + unknown);
    return all;
  }();
  return *rows;
}

const Row* find_row(Symbol op) {
  static const auto* by_name = [] {
    auto* map = new std::map<std::string_view, const Row*>();
    for (const Row& row : all_rows())
      COMPOSIT_ASSERT(map->emplace(row.op, &row).second,
                      "two rows for '" + std::string(row.op) + "'");
    return map;
  }();
  const auto found = by_name->find(op.str());
  return found == by_name->end() ? nullptr : found->second;
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

bool fits_attribute(double value, const LazyTensor& x) {
  return x.dtype() != DType::float64 || static_cast<double>(static_cast<float>(value)) == value;
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

}  // namespace composit::onnx
