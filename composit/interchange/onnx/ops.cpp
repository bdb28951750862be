#include "composit/interchange/onnx/ops.h"

#include <algorithm>
#include <string>

#include "composit/interchange/onnx/dtypes.h"

namespace composit::onnx {

LazyTensors calls(std::string_view op, const LazyTensors& operands, Attributes attributes,
                  std::vector<Type> results) {
  return interchange::results_of(std::string(kDomain) + "::" + std::string(op), operands,
                                 std::move(attributes), std::move(results));
}

LazyTensor call(std::string_view op, const LazyTensors& operands, Attributes attributes,
                Type result) {
  return calls(op, operands, std::move(attributes), {std::move(result)})[0];
}

LazyTensor unary(std::string_view op, const LazyTensor& x) {
  return call(op, {x}, {}, tensor_type(x.dtype(), x.sizes()));
}

LazyTensor binary(std::string_view op, const LazyTensor& x, const LazyTensor& y) {
  return call(op, {x, y}, {}, tensor_type(x.dtype(), broadcast(x.sizes(), y.sizes())));
}

LazyTensor compare(std::string_view op, const LazyTensor& x, const LazyTensor& y) {
  return call(op, {x, y}, {}, tensor_type(DType::bool_, broadcast(x.sizes(), y.sizes())));
}

LazyTensor where(const LazyTensor& condition, const LazyTensor& x, const LazyTensor& y) {
  const Dims sizes = broadcast(condition.sizes(), broadcast(x.sizes(), y.sizes()));
  if (x.dtype() != DType::bool_)
    return call("Where", {condition, x, y}, {}, tensor_type(x.dtype(), sizes));
  // Runtimes have no Where of bool.
  const LazyTensor otherwise = unary("Not", condition);
  return compare("Or", compare("And", condition, x), compare("And", otherwise, y));
}

LazyTensor cast_to(const LazyTensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  return call("Cast", {x}, {attribute("to", data_type_of(dtype))}, tensor_type(dtype, x.sizes()));
}

LazyTensor reshaped(const LazyTensor& x, const Dims& sizes) {
  if (interchange::is_left_out(x.sizes(), sizes)) return x;
  Attributes attributes;
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end())
    attributes.push_back(attribute("allowzero", 1));  // else 0 is the size that was there
  return call("Reshape", {x, integers(sizes)}, std::move(attributes),
              tensor_type(x.dtype(), sizes));
}

LazyTensor transposed(const LazyTensor& x, const std::vector<int64_t>& order) {
  if (std::is_sorted(order.begin(), order.end())) return x;
  Dims sizes;
  for (const int64_t axis : order) sizes.push_back(x.sizes().at(static_cast<size_t>(axis)));
  return call("Transpose", {x}, {attribute("perm", int_list(order))},
              tensor_type(x.dtype(), sizes));
}

LazyTensor expanded(const LazyTensor& x, const Dims& sizes) {
  if (interchange::is_left_out(x.sizes(), sizes)) return x;
  return call("Expand", {x, integers(sizes)}, {}, tensor_type(x.dtype(), sizes));
}

LazyTensor sliced(const LazyTensor& x, int64_t axis, int64_t begin, int64_t end, int64_t step) {
  const auto at = static_cast<size_t>(axis);
  Dims sizes = x.sizes();
  sizes[at] = std::max<int64_t>(0, (end - begin + step - 1) / step);
  if (begin == 0 && step == 1 && interchange::is_left_out(x.sizes(), sizes)) return x;
  return call("Slice", {x, integers({begin}), integers({end}), integers({axis}), integers({step})},
              {}, tensor_type(x.dtype(), sizes));
}

LazyTensor reduced(std::string_view op, const LazyTensor& x, const std::vector<int64_t>& axes,
                   bool keep) {
  Dims sizes;
  for (size_t i = 0; i < x.sizes().size(); ++i) {
    const bool gone = std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) != axes.end();
    if (!gone) sizes.push_back(x.sizes()[i]);
    if (gone && keep) sizes.push_back(1);
  }
  if (axes.empty()) return x;
  return call(op, {x, integers(axes)}, {attribute("keepdims", keep ? 1 : 0)},
              tensor_type(x.dtype(), sizes));
}

}  // namespace composit::onnx
