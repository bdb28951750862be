// Constants, and what follows from sizes.
#include <cmath>

#include "composit/interchange/onnx_read/rows.h"
#include "composit/ir/error.h"
#include "composit/ops/native.h"

namespace composit::onnx_read {
namespace {

LazyTensor floats(const std::vector<double>& values, const Dims& sizes) {
  return constant(array_of(tensor_type(DType::float32, sizes), values));
}

LazyTensors constant_row(const OperatorCall& call) {
  if (call.has("value")) return {constant(call.tensor("value"))};
  if (call.has("value_float")) return {floats({call.real("value_float")}, {})};
  if (call.has("value_int"))
    return {constant(
        array_of(tensor_type(DType::int64, {}), std::vector<int64_t>{call.integer("value_int")}))};
  if (call.has("value_ints")) return {integers(call.ints("value_ints"))};
  if (call.has("value_floats")) {
    const std::vector<double> values = call.reals("value_floats");
    return {floats(values, {static_cast<int64_t>(values.size())})};
  }
  call.refuse("a constant of texts, or a sparse one");
}

LazyTensors constant_of_shape(const OperatorCall& call) {
  Array value = array_of(tensor_type(DType::float32, {}), std::vector<double>{0});
  if (call.has("value")) value = call.tensor("value");
  if (value.type().numel() != 1) call.refuse("its value has not one element");
  const Dims sizes = expect_sizes(call.known_ints(0));
  const LazyTensor number = reshape(constant(value), {});
  return {expand(number, sizes)};
}

LazyTensors shape(const OperatorCall& call) {
  const LazyTensor& x = call.operand(0);
  const int64_t rank = x.rank();
  const auto bound = [&](int64_t place) {
    return std::min(std::max<int64_t>(place < 0 ? place + rank : place, 0), rank);
  };
  const int64_t begin = bound(call.integer("start", 0)), end = bound(call.integer("end", rank));
  Ints sizes;
  for (int64_t i = begin; i < end; ++i) sizes.push_back(x.size(i));
  return {integers(sizes)};
}

LazyTensors size(const OperatorCall& call) {
  return {constant(
      array_of(tensor_type(DType::int64, {}), std::vector<int64_t>{call.operand(0).numel()}))};
}

constexpr int64_t kMostMade = int64_t{1} << 22;  // elements of a constant that is made

int64_t expect_moderate(double count) {
  if (!(count <= static_cast<double>(kMostMade))) throw UserError("it has more than 2^22 elements");
  return std::max<int64_t>(0, static_cast<int64_t>(count));
}

LazyTensors range(const OperatorCall& call) {
  const DType dtype = call.operand(0).dtype();
  if (is_floating_point(dtype)) {
    const double start = call.known_real(0), limit = call.known_real(1);
    const double delta = call.known_real(2);
    if (delta == 0 || !std::isfinite(delta)) call.refuse("its step is no number");
    const int64_t count = expect_moderate(std::ceil((limit - start) / delta));
    const LazyTensor steps = cast(arange(count), dtype);
    return {steps * number_like(delta, dtype) + number_like(start, dtype)};
  }
  const int64_t start = call.known_int(0), limit = call.known_int(1);
  const int64_t delta = call.known_int(2);
  if (delta == 0) call.refuse("its step is 0");
  const double span = static_cast<double>(limit) - static_cast<double>(start);
  const int64_t count = expect_moderate(std::ceil(span / static_cast<double>(delta)));
  LazyTensor values = arange(count);  // int64, which wraps
  if (delta != 1) values = values * Number(delta);
  if (start != 0) values = values + Number(start);
  return {cast(values, dtype)};
}

LazyTensors eye_like(const OperatorCall& call) {
  const LazyTensor& x = call.operand(0);
  if (x.rank() != 2) call.refuse("expected a matrix");
  const DType dtype = call.dtype("dtype", x.dtype());
  const int64_t k = call.integer("k", 0);
  const LazyTensor row = reshape(arange(x.size(0)), {x.size(0), 1});
  const LazyTensor column = reshape(arange(x.size(1)), {1, x.size(1)});
  return {cast(eq(row + Number(k), column), dtype)};
}

LazyTensors one_hot(const OperatorCall& call) {
  const LazyTensor &indices = call.operand(0), &values = call.operand(2);
  const std::vector<double> depths = call.known_reals(1);
  if (depths.size() != 1 || values.numel() != 2) call.refuse("expected one depth and two values");
  const int64_t depth = expect_moderate(depths[0]);
  const int64_t axis = axis_of_rank(call.integer("axis", -1), indices.rank() + 1);
  const LazyTensor places = unsqueeze(cast(indices, DType::int64), axis);
  const LazyTensor wrapped = where(places < 0, places + Number(depth), places);
  Ints sizes(static_cast<size_t>(indices.rank() + 1), 1);
  sizes[static_cast<size_t>(axis)] = depth;
  const LazyTensor is_there = eq(wrapped, reshape(arange(depth), sizes));
  const LazyTensor flat = reshape(values, {2});
  return {where(is_there, select_at(flat, 0, 1), select_at(flat, 0, 0))};
}

// Windows of signals: a sum of cosines.
template <const double* factors>
LazyTensors window(const OperatorCall& call) {
  const int64_t size = expect_moderate(static_cast<double>(call.known_int(0)));
  const DType dtype = call.dtype("output_datatype", DType::float32);
  const double steps = static_cast<double>(call.flag("periodic", true) ? size : size - 1);
  std::vector<double> values(static_cast<size_t>(size));
  for (size_t i = 0; i < values.size(); ++i) {
    const double angle = 2 * M_PI * static_cast<double>(i) / steps;
    values[i] = factors[0] - factors[1] * std::cos(angle) + factors[2] * std::cos(2 * angle);
  }
  return {constant(array_of(tensor_type(dtype, {size}), values))};
}

constexpr double kHann[] = {0.5, 0.5, 0}, kHamming[] = {25.0 / 46, 21.0 / 46, 0},
                 kBlackman[] = {0.42, 0.5, 0.08};

// Places of what is not 0, where that is known: how many there are is a size.
LazyTensors nonzero_row(const OperatorCall& call) {
  const Array value = call.value(0);
  const std::vector<double> numbers = elements<double>(value);
  const Dims& sizes = value.type().sizes;
  std::vector<std::vector<int64_t>> places(sizes.size());
  int64_t count = 0;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] == 0) continue;
    ++count;
    auto rest = static_cast<int64_t>(i);
    for (size_t axis = sizes.size(); axis-- > 0; rest /= sizes[axis])
      places[axis].push_back(rest % sizes[axis]);
  }
  std::vector<int64_t> all;
  for (const auto& axis : places) all.insert(all.end(), axis.begin(), axis.end());
  return {constant(
      array_of(tensor_type(DType::int64, {static_cast<int64_t>(sizes.size()), count}), all))};
}

}  // namespace

void add_constant_rows(std::vector<Row>& rows) {
  rows.insert(rows.end(), {{"BlackmanWindow", window<kBlackman>},
                           {"Constant", constant_row},
                           {"ConstantOfShape", constant_of_shape},
                           {"EyeLike", eye_like},
                           {"HammingWindow", window<kHamming>},
                           {"HannWindow", window<kHann>},
                           {"NonZero", nonzero_row},
                           {"OneHot", one_hot},
                           {"Range", range},
                           {"Shape", shape},
                           {"Size", size}});
}

}  // namespace composit::onnx_read
