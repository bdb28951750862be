// Reading and writing at computed places. StableHLO moves an index that is out of range, where
// torch throws: that indices are in range is a condition of the program (guards.h).
#include <algorithm>
#include <numeric>
#include <optional>

#include "composit/interchange/indices.h"
#include "composit/interchange/stablehlo/rows.h"

namespace composit::stablehlo {
namespace {

using Types = std::vector<Type>;
using Axes = std::vector<int64_t>;
using interchange::chosen_by;
using interchange::is_integer;

// Counted from the front, as int64.
LazyTensor from_front(const LazyTensor& index, int64_t size) {
  const LazyTensor at = cast_to(index, DType::int64);
  const LazyTensor wrapped = binary("add", at, number(static_cast<double>(size), DType::int64));
  return select(compare("LT", at, number(0, DType::int64)), wrapped, at);
}

// ---- masks --------------------------------------------------------------------------------------

LazyTensor are_as_many(const LazyTensor& mask, int64_t count) {
  const LazyTensor flat = cast_to(reshaped(mask, {mask.numel()}), DType::int64);
  const LazyTensor sum = reduced("add", flat, number(0, DType::int64), {0}, false);
  return compare("EQ", sum, number(static_cast<double>(count), DType::int64));
}

// The places of the first `count` true elements in row-major order, a column per axis. That there
// are so many is a condition of the program.
LazyTensors places_of_mask(const LazyTensor& mask, int64_t count) {
  const int64_t elements = mask.numel();
  const LazyTensor flat = reshaped(mask, {elements});
  const Type truth_type = tensor_type(DType::bool_, {}), place = tensor_type(DType::int64, {});
  const Region before =
      region_of({truth_type, truth_type, place, place},
                [](const LazyTensors& in) { return LazyTensors{compare("GT", in[0], in[1])}; });
  const LazyTensors sorted =
      calls("sort", {flat, iota(DType::int64, {elements}, 0)},
            {attribute("dimension", int64_t{0}), attribute("body", before)},
            {tensor_type(DType::bool_, {elements}), tensor_type(DType::int64, {elements})});
  LazyTensor rest = checked(sliced(sorted[1], 0, 0, count), are_as_many(mask, count), kAsMany);
  LazyTensors columns(mask.sizes().size());
  for (size_t axis = columns.size(); axis-- > 0;) {
    const LazyTensor size = number(static_cast<double>(mask.sizes()[axis]), DType::int64);
    columns[axis] = binary("remainder", rest, size);
    rest = binary("divide", rest, size);
  }
  return columns;
}

// The indices with masks as the places that they choose.
LazyTensors without_masks(const LazyTensors& given, int64_t chosen) {
  LazyTensors indices;
  for (const LazyTensor& index : given) {
    if (!index || is_integer(index)) {
      indices.push_back(index);
      continue;
    }
    for (const LazyTensor& column : places_of_mask(truth(index), chosen)) indices.push_back(column);
  }
  return indices;
}

// ---- places -------------------------------------------------------------------------------------

// A tensor indexed at some of its axes; the axes of the indices stand where `offsets` are not.
struct Places {
  LazyTensor indices;  // the sizes of the indices, then one number per indexed axis
  Axes axes;           // that are indexed
  Axes offsets;        // in the result: the axes of x that are not
  Dims sizes;          // of the result
  LazyTensor valid;    // all are in range
};

LazyTensor columns_of(const LazyTensors& indices, const Dims& common) {
  Dims last = common;
  last.push_back(1);
  LazyTensors columns;
  for (const LazyTensor& index : indices)
    columns.push_back(reshaped(broadcast_to(index, common), last));
  return concatenated(columns, static_cast<int64_t>(common.size()));
}

// By the rules of NumPy: where the indexed axes stand side by side, those of the indices take their
// place, else they come first. False where an index is a mask.
bool places_of(const LazyTensor& x, const LazyTensors& given, Places& places) {
  LazyTensors indices;
  Dims common;
  for (size_t axis = 0; axis < given.size(); ++axis) {
    if (!given[axis]) continue;
    if (!is_integer(given[axis])) return false;
    const int64_t size = x.sizes().at(axis);
    places.axes.push_back(static_cast<int64_t>(axis));
    indices.push_back(from_front(given[axis], size));
    const LazyTensor valid = in_range(indices.back(), size);
    places.valid = places.valid ? binary("and", places.valid, valid) : valid;
    common = broadcast(common, given[axis].sizes());
  }
  if (indices.empty()) return false;
  const auto count = static_cast<int64_t>(places.axes.size());
  const bool adjacent = places.axes.back() - places.axes.front() == count - 1;
  const auto first = static_cast<size_t>(adjacent ? places.axes.front() : 0);
  std::vector<size_t> kept;
  for (size_t axis = 0; axis < x.sizes().size(); ++axis)
    if (axis >= given.size() || !given[axis]) kept.push_back(axis);
  for (size_t i = 0; i <= kept.size(); ++i) {
    if (i == first) places.sizes.insert(places.sizes.end(), common.begin(), common.end());
    if (i == kept.size()) break;
    places.offsets.push_back(static_cast<int64_t>(places.sizes.size()));
    places.sizes.push_back(x.sizes()[kept[i]]);
  }
  places.indices = columns_of(indices, common);
  return true;
}

LazyTensor read(const LazyTensor& x, const Places& places) {
  if (x.numel() == 0) return filled(0, x.dtype(), places.sizes);
  Dims window = x.sizes();
  for (const int64_t axis : places.axes) window[static_cast<size_t>(axis)] = 1;
  const LazyTensor value =
      call("gather", {x, places.indices},
           {list("offset_dims", places.offsets), list("collapsed_slice_dims", places.axes),
            list("start_index_map", places.axes),
            attribute("index_vector_dim", places.indices.rank() - 1), list("slice_sizes", window)},
           tensor_type(x.dtype(), places.sizes));
  return checked(value, places.valid, "indices are in range");
}

LazyTensor written(const LazyTensor& x, const Places& places, const LazyTensor& values,
                   const std::string& combine) {
  if (x.numel() == 0) return x;
  const LazyTensor result =
      call("scatter", {x, places.indices, broadcast_to(values, places.sizes)},
           {list("update_window_dims", places.offsets), list("inserted_window_dims", places.axes),
            list("scatter_dims_to_operand_dims", places.axes),
            attribute("index_vector_dim", places.indices.rank() - 1),
            attribute("body", combiner(x.dtype(), combine))},
           tensor_type(x.dtype(), x.sizes()));
  return checked(result, places.valid, "indices are in range");
}

LazyTensors index(const Call& call, const Types& results) {
  const LazyTensor& x = tensor_of(call, "self");
  const auto chosen = chosen_by(call["indices"].tensors(), results[0]);
  Places places;
  if (!chosen || !places_of(x, without_masks(call["indices"].tensors(), *chosen), places))
    return {};
  return {read(x, places)};
}

LazyTensors nonzero(const Call& call, const Types& results) {
  const LazyTensor& x = tensor_of(call, "self");
  const int64_t count = results[0].sizes[0];
  // Of one number there is a row without columns.
  const LazyTensor mask = truth(x.rank() == 0 ? reshaped(x, {1}) : x);
  if (x.rank() == 0)
    return {checked(filled(0, DType::int64, results[0].sizes), are_as_many(mask, count), kAsMany)};
  LazyTensors columns;
  for (const LazyTensor& column : places_of_mask(mask, count))
    columns.push_back(reshaped(column, {count, 1}));
  return {concatenated(columns, 1)};
}

LazyTensors masked_select(const Call& call, const Types& results) {
  const LazyTensor &x = tensor_of(call, "self"), &mask = tensor_of(call, "mask");
  Dims sizes = broadcast(x.sizes(), mask.sizes());
  if (sizes.empty()) sizes = {1};
  const LazyTensor from = broadcast_to(x, sizes);
  Places places;
  const LazyTensors columns = places_of_mask(broadcast_to(truth(mask), sizes), results[0].sizes[0]);
  return places_of(from, columns, places) ? LazyTensors{read(from, places)} : LazyTensors();
}

LazyTensors index_put(const Call& call, const Types&) {
  const LazyTensor &x = tensor_of(call, "self"), &values = tensor_of(call, "values");
  const LazyTensors& given = call["indices"].tensors();
  const auto chosen = interchange::chosen_by_values(given, values, x.rank());
  Places places;
  if (values.dtype() != x.dtype() ||
      !places_of(x, chosen ? without_masks(given, *chosen) : given, places))
    return {};
  const std::string sum = x.dtype() == DType::bool_ ? "or" : "add";
  return {written(x, places, values, bool_of(call, "accumulate") ? sum : "right")};
}

LazyTensors along(const LazyTensor& x, int64_t axis, const LazyTensor& indices) {
  LazyTensors given(static_cast<size_t>(axis) + 1);
  given.back() = indices;
  Places places;
  return places_of(x, given, places) ? LazyTensors{read(x, places)} : LazyTensors();
}

LazyTensors embedding(const Call& call, const Types&) {
  return along(tensor_of(call, "weight"), 0, tensor_of(call, "indices"));
}

LazyTensors index_select(const Call& call, const Types&) {
  const LazyTensor &x = tensor_of(call, "self"), &index = tensor_of(call, "index");
  if (x.rank() == 0 || index.rank() != 1) return {};
  return along(x, axis_of(call, "dim", x), index);
}

LazyTensors gather(const Call& call, const Types&) {
  const LazyTensor &x = tensor_of(call, "self"), &index = tensor_of(call, "index");
  if (x.rank() == 0 || index.rank() != x.rank()) return {};
  const int64_t axis = axis_of(call, "dim", x);
  LazyTensors indices;
  for (int64_t i = 0; i < x.rank(); ++i)
    indices.push_back(i == axis ? index : iota(DType::int64, index.sizes(), i));
  Places places;
  return places_of(x, indices, places) ? LazyTensors{read(x, places)} : LazyTensors();
}

}  // namespace

void add_indexing_rows(std::vector<Row>& rows) {
  rows.insert(rows.end(), {{"aten::embedding", embedding},
                           {"aten::index_select", index_select},
                           {"aten::gather", gather},
                           {"aten::index.Tensor", index},
                           {"aten::masked_select", masked_select},
                           {"aten::nonzero", nonzero},
                           {"aten::index_put", index_put}});
}

}  // namespace composit::stablehlo
