#include "composit/numpy/creation.h"

#include <cmath>

#include "composit/eval/evaluate.h"
#include "composit/ir/error.h"
#include "composit/numpy/linear_algebra.h"
#include "composit/numpy/math.h"
#include "composit/numpy/result_type.h"
#include "composit/numpy/shape.h"
#include "composit/op/promotion.h"

namespace composit::numpy {

void detail::expect_length(size_t depth, int64_t length, Ints& sizes) {
  if (depth == sizes.size()) sizes.push_back(length);
  if (sizes[depth] != length)
    refuse("asarray", "expected lists of one length, received " + std::to_string(sizes[depth]) +
                          " and " + std::to_string(length) + " elements");
}

NdArray asarray(Array value, std::string name) {
  if (!value.defined()) refuse("asarray", "expected a value, received none");
  if (name.empty()) return constant(value.contiguous());
  return held_input(std::move(name), value.contiguous());
}

NdArray ndarray(const Ints& shape, DType dtype, std::string name) {
  if (name.empty()) refuse("ndarray", "expected a name, by which the value is given later");
  return input(std::move(name), tensor_type(dtype, shape));
}

namespace {

double as_double(std::string_view function, const Operand& number) {
  if (number.is_number()) {
    if (const auto* integer = std::get_if<int64_t>(&number.number()))
      return static_cast<double>(*integer);
    if (const auto* real = std::get_if<double>(&number.number())) return *real;
  }
  refuse(function, "expected a real number");
}
bool is_double(const Operand& number) {
  return number.is_number() && std::holds_alternative<double>(number.number());
}

void expect_shape(std::string_view function, const Ints& shape) {
  for (int64_t size : shape)
    if (size < 0) refuse(function, "expected sizes of at least 0, received " + str(shape));
}

NdArray filled(std::string_view function, const Ints& shape, int value, DType dtype,
               std::string name) {
  expect_shape(function, shape);
  NdArray filling = composit::full(shape, value, dtype);
  if (name.empty()) return filling;
  return asarray(evaluate({filling})[0], std::move(name));
}

NdArray constant_of(const std::vector<double>& values, DType dtype) {
  return to(asarray(values), dtype);
}

}  // namespace

NdArray zeros(const Ints& shape, DType dtype, std::string name) {
  return filled("zeros", shape, 0, dtype, std::move(name));
}
NdArray ones(const Ints& shape, DType dtype, std::string name) {
  return filled("ones", shape, 1, dtype, std::move(name));
}
NdArray empty(const Ints& shape, DType dtype, std::string name) {
  return filled("empty", shape, 0, dtype, std::move(name));
}
NdArray full(const Ints& shape, const Operand& value, std::optional<DType> dtype) {
  expect_shape("full", shape);
  if (!value.is_number())
    return broadcast_to(dtype ? value.array().astype(*dtype) : value.array(), shape);
  constexpr DType dtypes[] = {DType::bool_, DType::int64, DType::float64, DType::complex128};
  return composit::full(shape, Scalar(value.number()),
                        dtype.value_or(dtypes[value.number().index()]));
}
NdArray zeros_like(const NdArray& x, std::optional<DType> dtype) {
  return numpy::zeros(x.shape(), dtype.value_or(x.dtype()));
}
NdArray ones_like(const NdArray& x, std::optional<DType> dtype) {
  return numpy::ones(x.shape(), dtype.value_or(x.dtype()));
}
NdArray empty_like(const NdArray& x, std::optional<DType> dtype) { return zeros_like(x, dtype); }
NdArray full_like(const NdArray& x, const Operand& value, std::optional<DType> dtype) {
  return full(x.shape(), value, dtype.value_or(x.dtype()));
}

NdArray arange(const Operand& stop, std::optional<DType> dtype) {
  return arange(0, stop, 1, dtype);
}
// As NumPy's: the second element less the first is the step of all.
NdArray arange(const Operand& start, const Operand& stop, const Operand& step,
               std::optional<DType> dtype) {
  const double first = as_double("arange", start), last = as_double("arange", stop);
  const double stride = as_double("arange", step);
  if (stride == 0) refuse("arange", "expected a step other than 0");
  const bool real = is_double(start) || is_double(stop) || is_double(step);
  const DType wanted = dtype.value_or(real ? DType::float64 : DType::int64);
  if (!real && stride > 0 && last >= first)
    return apply_one("aten::arange.start_step", {Scalar(start.number()), Scalar(stop.number()),
                                                 Scalar(step.number()), wanted});
  const auto count = static_cast<int64_t>(std::max(0.0, std::ceil((last - first) / stride)));
  const double delta = (first + stride) - first;
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(first + static_cast<double>(i) * delta);
  return constant_of(values, wanted);
}

NdArray linspace(double start, double stop, int64_t num, bool endpoint,
                 std::optional<DType> dtype) {
  if (num < 0) refuse("linspace", "expected num of at least 0, received " + std::to_string(num));
  const int64_t parts = endpoint ? num - 1 : num;
  const double step = (stop - start) / static_cast<double>(parts);
  std::vector<double> values;
  for (int64_t i = 0; i < num; ++i)
    values.push_back(parts > 0 ? static_cast<double>(i) * step + start : start);
  if (endpoint && num > 1) values.back() = stop;
  const NdArray points = asarray(values);
  return dtype && category(*dtype) < DTypeCategory::floating
             ? floor(points).astype(*dtype)
             : points.astype(dtype.value_or(DType::float64));
}
NdArray logspace(double start, double stop, int64_t num, bool endpoint, double base) {
  return power(base, linspace(start, stop, num, endpoint));
}

NdArray geomspace(double start, double stop, int64_t num, bool endpoint) {
  if (!(start * stop > 0))
    refuse("geomspace", "expected limits of one sign, other than 0, received " +
                            std::to_string(start) + " and " + std::to_string(stop));
  const double sign = start < 0 ? -1 : 1;
  return sign * logspace(std::log10(sign * start), std::log10(sign * stop), num, endpoint);
}

NdArray eye(int64_t n, std::optional<int64_t> m, int64_t k, DType dtype) {
  expect_shape("eye", {n, m.value_or(n)});
  if (k == 0) return apply_one("aten::eye.m", {n, m.value_or(n), dtype});
  const NdArray rows = expand_dims(arange(n), 1), columns = arange(m.value_or(n));
  return equal(add(rows, k), columns).astype(dtype);
}
NdArray tri(int64_t n, std::optional<int64_t> m, int64_t k, DType dtype) {
  expect_shape("tri", {n, m.value_or(n)});
  return tril(ones({n, m.value_or(n)}, dtype), k);
}
NdArray identity(int64_t n, DType dtype) { return eye(n, {}, 0, dtype); }

NdArrays meshgrid(const NdArrays& arrays, std::string_view indexing) {
  if (indexing != "xy" && indexing != "ij")
    refuse("meshgrid", "expected indexing xy or ij, received '" + std::string(indexing) + "'");
  NdArrays lines;
  for (size_t i = 0; i < arrays.size(); ++i) {
    Ints shape(arrays.size(), 1);
    const bool swapped = indexing == "xy" && arrays.size() > 1 && i < 2;
    shape[swapped ? 1 - i : i] = arrays[i].size();
    lines.push_back(reshape(arrays[i], shape));
  }
  return broadcast_arrays(lines);
}

NdArray indices(const Ints& shape) {
  expect_shape("indices", shape);
  NdArrays lines;
  for (int64_t size : shape) lines.push_back(arange(size));
  return stack(meshgrid(lines, "ij"));
}

}  // namespace composit::numpy
