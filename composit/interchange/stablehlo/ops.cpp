#include "composit/interchange/stablehlo/ops.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>

#include "composit/ir/graph.h"
#include "composit/ops/native.h"

namespace composit::stablehlo {

LazyTensors calls(std::string_view op, const LazyTensors& operands, Attributes attributes,
                  std::vector<Type> results) {
  return interchange::results_of(std::string(kDomain) + "::" + std::string(op), operands,
                                 std::move(attributes), std::move(results));
}

LazyTensor call(std::string_view op, const LazyTensors& operands, Attributes attributes,
                Type result) {
  return calls(op, operands, std::move(attributes), {std::move(result)})[0];
}

NamedAttribute list(std::string_view name, const std::vector<int64_t>& values) {
  return attribute(name, int_list(values));
}

LazyTensor filled(double value, DType dtype, const Dims& sizes) {
  return broadcast_to(number(value, dtype), sizes);
}

LazyTensor like(double value, const LazyTensor& x) { return number(value, x.dtype()); }

LazyTensor iota(DType dtype, const Dims& sizes, int64_t axis) {
  return call("iota", {}, {attribute("dim", axis)}, tensor_type(dtype, sizes));
}

namespace {

LazyTensor bound(DType dtype, bool low) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (is_floating_point(dtype)) return number(low ? -kInfinity : kInfinity, dtype);
  if (dtype == DType::bool_) return number(low ? 0 : 1, dtype);
  const bool is_unsigned = name(dtype).starts_with("uint");
  const int bits = static_cast<int>(8 * item_size(dtype)) - (is_unsigned ? 0 : 1);
  const uint64_t largest = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  const int64_t value = !low          ? static_cast<int64_t>(largest)
                        : is_unsigned ? 0
                                      : -static_cast<int64_t>(largest) - 1;
  return constant(array_of(tensor_type(dtype, {}), std::vector<int64_t>{value}));
}

}  // namespace

LazyTensor lowest(DType dtype) { return bound(dtype, true); }
LazyTensor highest(DType dtype) { return bound(dtype, false); }

LazyTensor unary(std::string_view op, const LazyTensor& x) {
  return call(op, {x}, {}, tensor_type(x.dtype(), x.sizes()));
}

LazyTensor binary(std::string_view op, const LazyTensor& x, const LazyTensor& y) {
  const Dims sizes = broadcast(x.sizes(), y.sizes());
  return call(op, {broadcast_to(x, sizes), broadcast_to(y, sizes)}, {},
              tensor_type(x.dtype(), sizes));
}

LazyTensor compare(std::string_view direction, const LazyTensor& x, const LazyTensor& y) {
  const Dims sizes = broadcast(x.sizes(), y.sizes());
  return call("compare", {broadcast_to(x, sizes), broadcast_to(y, sizes)},
              {attribute("direction", std::string(direction))}, tensor_type(DType::bool_, sizes));
}

LazyTensor select(const LazyTensor& condition, const LazyTensor& x, const LazyTensor& y) {
  const Dims sizes = broadcast(condition.sizes(), broadcast(x.sizes(), y.sizes()));
  return call("select",
              {broadcast_to(condition, sizes), broadcast_to(x, sizes), broadcast_to(y, sizes)}, {},
              tensor_type(x.dtype(), sizes));
}

LazyTensor is_nan(const LazyTensor& x) {
  if (is_complex(x.dtype()) || is_floating_point(x.dtype())) return compare("NE", x, x);
  return filled(0, DType::bool_, x.sizes());
}

LazyTensor truth(const LazyTensor& x) {
  return x.dtype() == DType::bool_ ? x : compare("NE", x, like(0, x));
}

LazyTensor cast_to(const LazyTensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  // Of a complex number that becomes real, what is imaginary is dropped; that it is 0 says nothing.
  if (is_complex(x.dtype()) && dtype == DType::bool_) return compare("NE", x, like(0, x));
  if (is_complex(x.dtype()) && !is_complex(dtype)) {
    const DType part = x.dtype() == DType::complex128 ? DType::float64 : DType::float32;
    return cast_to(call("real", {x}, {}, tensor_type(part, x.sizes())), dtype);
  }
  return call("convert", {x}, {}, tensor_type(dtype, x.sizes()));
}

LazyTensor reshaped(const LazyTensor& x, const Dims& sizes) {
  if (x.sizes() == sizes) return x;
  return call("reshape", {x}, {}, tensor_type(x.dtype(), sizes));
}

LazyTensor transposed(const LazyTensor& x, const std::vector<int64_t>& order) {
  if (std::is_sorted(order.begin(), order.end())) return x;
  Dims sizes;
  for (const int64_t axis : order) sizes.push_back(x.sizes().at(static_cast<size_t>(axis)));
  return call("transpose", {x}, {list("dims", order)}, tensor_type(x.dtype(), sizes));
}

LazyTensor broadcast_to(const LazyTensor& x, const Dims& sizes) {
  if (x.sizes() == sizes) return x;
  std::vector<int64_t> axes(x.sizes().size());
  std::iota(axes.begin(), axes.end(), static_cast<int64_t>(sizes.size() - axes.size()));
  return broadcast_along(x, sizes, axes);
}

LazyTensor broadcast_along(const LazyTensor& x, const Dims& sizes,
                           const std::vector<int64_t>& axes) {
  return call("broadcast_in_dim", {x}, {list("dims", axes)}, tensor_type(x.dtype(), sizes));
}

LazyTensor sliced(const LazyTensor& x, int64_t axis, int64_t begin, int64_t end, int64_t step) {
  const auto at = static_cast<size_t>(axis);
  if (begin == 0 && end == x.sizes()[at] && step == 1) return x;
  std::vector<int64_t> begins(x.sizes().size(), 0), ends = x.sizes(), steps(begins.size(), 1);
  begins[at] = begin;
  ends[at] = std::max(begin, end);
  steps[at] = step;
  Dims sizes = x.sizes();
  sizes[at] = (ends[at] - begin + step - 1) / step;
  return call("slice", {x}, {list("begin", begins), list("end", ends), list("step", steps)},
              tensor_type(x.dtype(), sizes));
}

LazyTensor concatenated(const LazyTensors& parts, int64_t axis) {
  if (parts.size() == 1) return parts[0];
  Dims sizes = parts.at(0).sizes();
  sizes[static_cast<size_t>(axis)] = 0;
  for (const LazyTensor& part : parts) sizes[static_cast<size_t>(axis)] += part.size(axis);
  return call("concatenate", parts, {attribute("dim", axis)}, tensor_type(parts[0].dtype(), sizes));
}

LazyTensor padded(const LazyTensor& x, const LazyTensor& value, const std::vector<int64_t>& low,
                  const std::vector<int64_t>& high) {
  Dims sizes = x.sizes();
  for (size_t i = 0; i < sizes.size(); ++i) sizes[i] += low[i] + high[i];
  if (sizes == x.sizes() && std::all_of(low.begin(), low.end(), [](int64_t n) { return n == 0; }))
    return x;
  return call("pad", {x, value}, {list("low", low), list("high", high)},
              tensor_type(x.dtype(), sizes));
}

LazyTensor in_range(const LazyTensor& indices, int64_t limit) {
  return call("in_range", {indices}, {attribute("limit", limit)}, tensor_type(DType::bool_, {}));
}

Region region_of(const std::vector<Type>& scalars, const TensorFunction& body) {
  LazyTensors inputs;
  for (const Type& type : scalars)
    inputs.push_back(input(std::to_string(inputs.size()), type, InputKind::block));
  LazyTensors outputs = body(inputs);
  return std::make_shared<const Graph>(
      Graph({.inputs = std::move(inputs), .outputs = std::move(outputs)}));
}

Region combiner(DType dtype, std::string_view op) {
  const Type scalar = tensor_type(dtype, {});
  return region_of({scalar, scalar}, [&](const LazyTensors& x) {
    return LazyTensors{op == "right" ? x[1] : binary(op, x[0], x[1])};
  });
}

Region chooser(DType dtype, bool largest) {
  const Type value = tensor_type(dtype, {}), place = tensor_type(DType::int64, {});
  return region_of({value, place, value, place}, [&](const LazyTensors& in) {
    const LazyTensor &a = in[0], &i = in[1], &b = in[2], &k = in[3];
    const LazyTensor a_nan = is_nan(a), b_nan = is_nan(b);
    const LazyTensor beats = binary("or", compare(largest ? "GT" : "LT", b, a), b_nan);
    const LazyTensor takes = binary("and", beats, unary("not", a_nan));
    const LazyTensor equal = binary("or", compare("EQ", a, b), binary("and", a_nan, b_nan));
    const LazyTensor right = binary("or", takes, binary("and", equal, compare("LT", k, i)));
    return LazyTensors{select(right, b, a), select(right, k, i)};
  });
}

Dims without(const Dims& sizes, const std::vector<int64_t>& axes, bool keep) {
  Dims left;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const bool gone = std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) != axes.end();
    if (!gone) left.push_back(sizes[i]);
    if (gone && keep) left.push_back(1);
  }
  return left;
}

LazyTensor reduced(std::string_view op, const LazyTensor& x, const LazyTensor& init,
                   const std::vector<int64_t>& axes, bool keep) {
  if (axes.empty()) return x;
  const LazyTensor value =
      call("reduce", {x, init}, {attribute("applies", std::string(op)), list("dimensions", axes)},
           tensor_type(x.dtype(), without(x.sizes(), axes, false)));
  return reshaped(value, without(x.sizes(), axes, keep));
}

LazyTensor over_all(std::string_view op, const LazyTensor& x, const LazyTensor& init) {
  std::vector<int64_t> axes(x.sizes().size());
  std::iota(axes.begin(), axes.end(), 0);
  return reduced(op, x, init, axes, false);
}

}  // namespace composit::stablehlo
