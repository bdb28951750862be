#include <algorithm>
#include <numeric>

#include "composit/interchange/stablehlo/rows.h"
#include "composit/ir/graph.h"
#include "composit/ops/native.h"

namespace composit::stablehlo {
namespace {

using Types = std::vector<Type>;

LazyTensors same(const Call& call, const Types&) { return {call.tensors().at(0)}; }

LazyTensors same_elements(const Call& call, const Types& results) {
  return {reshaped(call.tensors().at(0), results[0].sizes)};
}

LazyTensors expand(const Call& call, const Types& results) {
  return {broadcast_to(call.tensors().at(0), results[0].sizes)};
}

LazyTensors permute(const Call& call, const Types&) {
  const LazyTensor& x = tensor_of(call, "self");
  std::vector<int64_t> order = ints_of(call, "dims");
  for (int64_t& axis : order) axis = wrap_axis(axis, x.rank());
  return {transposed(x, order)};
}

LazyTensors swapped(const LazyTensor& x, int64_t a, int64_t b) {
  std::vector<int64_t> order(static_cast<size_t>(x.rank()));
  std::iota(order.begin(), order.end(), 0);
  if (!order.empty()) std::swap(order[static_cast<size_t>(a)], order[static_cast<size_t>(b)]);
  return {transposed(x, order)};
}

LazyTensors transpose(const Call& call, const Types&) {
  const LazyTensor& x = tensor_of(call, "self");
  return swapped(x, axis_of(call, "dim0", x), axis_of(call, "dim1", x));
}

LazyTensors t(const Call& call, const Types&) {
  const LazyTensor& x = tensor_of(call, "self");
  return x.rank() < 2 ? LazyTensors{x} : swapped(x, 0, 1);
}

LazyTensors slice(const Call& call, const Types& results) {
  const LazyTensor& x = tensor_of(call, "self");
  const int64_t axis = axis_of(call, "dim", x), size = x.size(axis);
  const int64_t step = int_of(call, "step");
  int64_t begin = call["start"].is_none() ? 0 : int_of(call, "start");
  begin = std::clamp<int64_t>(begin < 0 ? begin + size : begin, 0, size);
  const int64_t end = begin + results[0].sizes[static_cast<size_t>(axis)] * step;
  return {sliced(x, axis, begin, std::min(end, size), step)};
}

LazyTensors one_of(const Call& call, const Types& results) {
  const LazyTensor& x = tensor_of(call, "self");
  const int64_t axis = axis_of(call, "dim", x);
  int64_t index = int_of(call, "index");
  if (index < 0) index += x.size(axis);
  return {reshaped(sliced(x, axis, index, index + 1), results[0].sizes)};
}

LazyTensors pieces(const Call& call, const Types& results) {
  const LazyTensor& x = tensor_of(call, "self");
  const int64_t axis = axis_of(call, "dim", x);
  LazyTensors parts;
  int64_t begin = 0;
  for (const Type& type : results) {
    const int64_t end = begin + type.sizes[static_cast<size_t>(axis)];
    parts.push_back(sliced(x, axis, begin, end));
    begin = end;
  }
  return parts;
}

LazyTensors cat(const Call& call, const Types& results) {
  LazyTensors parts;
  for (const LazyTensor& tensor : call["tensors"].tensors()) {
    if (tensor.rank() != static_cast<int64_t>(results[0].rank())) continue;  // torch's empty ones
    parts.push_back(cast_to(tensor, results[0].dtype));
  }
  if (parts.empty()) return {};
  return {
      concatenated(parts, wrap_axis(int_of(call, "dim"), static_cast<int64_t>(results[0].rank())))};
}

LazyTensors pad(const Call& call, const Types&) {
  const LazyTensor& x = tensor_of(call, "self");
  const std::vector<int64_t> pad = ints_of(call, "pad");  // of the last axis first
  const size_t rank = x.sizes().size();
  std::vector<int64_t> low(rank, 0), high(rank, 0);
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    low[rank - 1 - i] = pad[2 * i];
    high[rank - 1 - i] = pad[2 * i + 1];
  }
  return {padded(x, number(real_of(call, "value"), x.dtype()), low, high)};
}

LazyTensors flip(const Call& call, const Types&) {
  const LazyTensor& x = tensor_of(call, "self");
  if (ints_of(call, "dims").empty()) return {x};
  return {stablehlo::call("reverse", {x}, {list("dims", axes_of(call, "dims", x))},
                          tensor_type(x.dtype(), x.sizes()))};
}

LazyTensors arange(const Call& call, const Types& results) {
  const double start = real_of(call, "start"), step = real_of(call, "step");
  const Type& type = results[0];
  const LazyTensor index = iota(type.dtype, type.sizes, 0);
  return {binary("add", binary("multiply", index, like(step, index)), like(start, index))};
}

// Rows, then columns, of the elements on one side of a diagonal: numbers that no value changes.
template <bool upper>
LazyTensors triangle_indices(const Call& call, const Types& results) {
  const int64_t rows = int_of(call, "row"), columns = int_of(call, "col");
  const int64_t offset = int_of(call, "offset");
  std::vector<int64_t> places[2];
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column) {
      const bool inside = upper ? column >= row + offset : column <= row + offset;
      if (inside) places[0].push_back(row), places[1].push_back(column);
    }
  places[0].insert(places[0].end(), places[1].begin(), places[1].end());
  return {constant(array_of(tensor_type(results[0].dtype, results[0].sizes), places[0]))};
}

LazyTensors full(const Call& call, const Types& results) {
  const double value = real_of(call, "fill_value");
  if (is_complex(results[0].dtype)) return {};
  return {filled(value, results[0].dtype, results[0].sizes)};
}

}  // namespace

void add_movement_rows(std::vector<Row>& rows) {
  for (const char* op : {"aten::clone", "aten::contiguous", "aten::detach", "aten::alias"})
    rows.push_back({op, same});
  for (const char* op : {"aten::view", "aten::reshape", "aten::_unsafe_view",
                         "aten::flatten.using_ints", "aten::unsqueeze", "aten::squeeze",
                         "aten::squeeze.dim", "aten::squeeze.dims", "aten::unflatten.int"})
    rows.push_back({op, same_elements});
  rows.insert(rows.end(), {{"aten::expand", expand},
                           {"aten::permute", permute},
                           {"aten::transpose.int", transpose},
                           {"aten::t", t},
                           {"aten::slice.Tensor", slice},
                           {"aten::select.int", one_of},
                           {"aten::split.Tensor", pieces},
                           {"aten::split_with_sizes", pieces},
                           {"aten::chunk", pieces},
                           {"aten::cat", cat},
                           {"aten::constant_pad_nd", pad},
                           {"aten::flip", flip},
                           {"aten::arange.start_step", arange},
                           {"aten::full", full},
                           {"aten::tril_indices", triangle_indices<false>},
                           {"aten::triu_indices", triangle_indices<true>}});
}

}  // namespace composit::stablehlo
