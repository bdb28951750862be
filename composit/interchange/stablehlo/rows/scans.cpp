// Running sums and the like, by doubling: after step k each element has met the 2^k before it.
#include <cmath>
#include <functional>

#include "composit/interchange/stablehlo/rows.h"

namespace composit::stablehlo {
namespace {

using Types = std::vector<Type>;
using Combine = std::function<LazyTensors(const LazyTensors& before, const LazyTensors& here)>;

// Each element moved `by` places back along an axis; zeros before.
LazyTensor moved(const LazyTensor& x, int64_t axis, int64_t by) {
  std::vector<int64_t> low(x.sizes().size(), 0), high(x.sizes().size(), 0);
  low[static_cast<size_t>(axis)] = by;
  high[static_cast<size_t>(axis)] = -by;
  return padded(x, like(0, x), low, high);
}

// `combine` is associative.
LazyTensors scan(LazyTensors values, int64_t axis, const Combine& combine) {
  const LazyTensor place = iota(DType::int64, values.at(0).sizes(), axis);
  for (int64_t step = 1; step < values[0].size(axis); step *= 2) {
    LazyTensors before;
    for (const LazyTensor& value : values) before.push_back(moved(value, axis, step));
    const LazyTensors both = combine(before, values);
    const LazyTensor is_first =
        compare("LT", place, number(static_cast<double>(step), DType::int64));
    for (size_t i = 0; i < values.size(); ++i) values[i] = select(is_first, values[i], both[i]);
  }
  return values;
}

template <const char* op>
LazyTensors cumulative(const Call& call, const Types& results) {
  const DType dtype = results[0].dtype;
  const LazyTensor& given = tensor_of(call, "self");
  const LazyTensor x = cast_to(given, is_half(dtype) ? DType::float32 : dtype);
  if (x.rank() == 0) return {cast_to(x, dtype)};
  const LazyTensors all =
      scan({x}, axis_of(call, "dim", x), [](const LazyTensors& before, const LazyTensors& here) {
        return LazyTensors{binary(op, before[0], here[0])};
      });
  return {cast_to(all[0], dtype)};
}

// The largest so far; of equal ones the last, and what is not a number stays.
template <const char* direction>
LazyTensors extrema(const Call& call, const Types&) {
  const LazyTensor& x = tensor_of(call, "self");
  if (x.rank() == 0) return {x, number(0, DType::int64)};
  const int64_t axis = axis_of(call, "dim", x);
  return scan({x, iota(DType::int64, x.sizes(), axis)}, axis,
              [](const LazyTensors& before, const LazyTensors& here) {
                const LazyTensor reaches =
                    binary("or", compare(direction, here[0], before[0]), is_nan(here[0]));
                return LazyTensors{select(reaches, here[0], before[0]),
                                   select(reaches, here[1], before[1])};
              });
}

// log(exp(a) + exp(b)), also of infinite ones.
LazyTensors logcumsumexp(const Call& call, const Types&) {
  const LazyTensor& x = tensor_of(call, "self");
  if (x.rank() == 0) return {x};
  if (!is_floating_point(x.dtype())) return {};
  return scan({x}, axis_of(call, "dim", x), [](const LazyTensors& before, const LazyTensors& here) {
    const LazyTensor &a = before[0], &b = here[0];
    const LazyTensor large = binary("maximum", a, b), small = binary("minimum", a, b);
    const LazyTensor step = unary("exponential", binary("subtract", small, large));
    const LazyTensor sum = binary("add", large, unary("log_plus_one", step));
    return LazyTensors{
        select(compare("EQ", a, b), binary("add", large, like(std::log(2.0), large)), sum)};
  });
}

// h_i = factor_i h_{i-1} + term_i.
LazyTensors recurrence(const Call& call, const Types& results) {
  const LazyTensor term = broadcast_to(tensor_of(call, "term"), results[0].sizes);
  const LazyTensor factor = broadcast_to(tensor_of(call, "factor"), results[0].sizes);
  if (term.rank() == 0) return {};
  const LazyTensors all =
      scan({factor, term}, axis_of(call, "dim", term),
           [](const LazyTensors& before, const LazyTensors& here) {
             return LazyTensors{binary("multiply", before[0], here[0]),
                                binary("add", binary("multiply", here[0], before[1]), here[1])};
           });
  return {all[1]};
}

constexpr char kAdd[] = "add", kMultiply[] = "multiply", kGreater[] = "GE", kLess[] = "LE";

}  // namespace

void add_scan_rows(std::vector<Row>& rows) {
  rows.insert(rows.end(), {{"aten::cumsum", cumulative<kAdd>},
                           {"aten::cumprod", cumulative<kMultiply>},
                           {"aten::cummax", extrema<kGreater>},
                           {"aten::cummin", extrema<kLess>},
                           {"aten::logcumsumexp", logcumsumexp},
                           {"composit::recurrence", recurrence}});
}

}  // namespace composit::stablehlo
