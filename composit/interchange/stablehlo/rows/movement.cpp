#include "composit/interchange/movement_rows.h"
#include "composit/interchange/stablehlo/rows.h"

namespace composit::stablehlo {
namespace {

using Types = std::vector<Type>;

LazyTensors split(const LazyTensor& x, int64_t axis, const std::vector<int64_t>& sizes) {
  LazyTensors parts;
  int64_t begin = 0;
  for (const int64_t size : sizes) {
    parts.push_back(sliced(x, axis, begin, begin + size));
    begin += size;
  }
  return parts;
}

LazyTensor padded_with(const LazyTensor& x, double value, const std::vector<int64_t>& low,
                       const std::vector<int64_t>& high) {
  return padded(x, number(value, x.dtype()), low, high);
}

LazyTensor reversed(const LazyTensor& x, const std::vector<int64_t>& axes) {
  return call("reverse", {x}, {list("dims", axes)}, tensor_type(x.dtype(), x.sizes()));
}

LazyTensors arange(const Call& call, const Types& results) {
  const double start = real_of(call, "start"), step = real_of(call, "step");
  const Type& type = results[0];
  const LazyTensor index = iota(type.dtype, type.sizes, 0);
  return {binary("add", binary("multiply", index, like(step, index)), like(start, index))};
}

LazyTensors full(const Call& call, const Types& results) {
  const double value = real_of(call, "fill_value");
  if (is_complex(results[0].dtype)) return {};
  return {filled(value, results[0].dtype, results[0].sizes)};
}

}  // namespace

void add_movement_rows(std::vector<Row>& rows) {
  interchange::add_movement_rows(rows, {.cast_to = cast_to,
                                        .reshaped = reshaped,
                                        .transposed = transposed,
                                        .expanded = broadcast_to,
                                        .sliced = sliced,
                                        .split = split,
                                        .concatenated = concatenated,
                                        .padded = padded_with,
                                        .reversed = reversed});
  rows.insert(rows.end(), {{"aten::arange.start_step", arange}, {"aten::full", full}});
}

}  // namespace composit::stablehlo
