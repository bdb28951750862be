#include "composit/interchange/stablehlo/rows.h"

namespace composit::stablehlo {
namespace {

using Types = std::vector<Type>;

// Elements in order along an axis, with their places. What is not a number is the largest.
LazyTensors in_order(const LazyTensor& x, int64_t axis, bool descending) {
  const Type value = tensor_type(x.dtype(), {}), place = tensor_type(DType::int64, {});
  const Region comparator = region_of({value, value, place, place}, [&](const LazyTensors& in) {
    const LazyTensor &a = descending ? in[1] : in[0], &b = descending ? in[0] : in[1];
    const LazyTensor less = compare("LT", a, b);
    if (!is_floating_point(x.dtype())) return LazyTensors{less};
    const LazyTensor last = binary("and", is_nan(b), unary("not", is_nan(a)));
    return LazyTensors{binary("or", less, last)};
  });
  const Type places = tensor_type(DType::int64, x.sizes());
  return calls("sort", {x, iota(DType::int64, x.sizes(), axis)},
               {attribute("dimension", axis), attribute("body", comparator)},
               {tensor_type(x.dtype(), x.sizes()), places});
}

LazyTensors sort(const Call& call, const Types&) {
  const LazyTensor& x = tensor_of(call, "self");
  if (x.rank() == 0) return {x, number(0, DType::int64)};
  if (is_complex(x.dtype())) return {};
  return in_order(x, axis_of(call, "dim", x), bool_of(call, "descending"));
}

LazyTensors topk(const Call& call, const Types&) {
  const LazyTensor& x = tensor_of(call, "self");
  if (x.rank() == 0) return {x, number(0, DType::int64)};
  const int64_t axis = axis_of(call, "dim", x), count = int_of(call, "k");
  const LazyTensors all = in_order(x, axis, bool_of(call, "largest"));
  return {sliced(all[0], axis, 0, count), sliced(all[1], axis, 0, count)};
}

}  // namespace

void add_sorting_rows(std::vector<Row>& rows) {
  rows.insert(rows.end(),
              {{"aten::sort", sort}, {"aten::sort.stable", sort}, {"aten::topk", topk}});
}

}  // namespace composit::stablehlo
