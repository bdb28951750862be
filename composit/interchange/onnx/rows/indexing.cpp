#include <algorithm>

#include "composit/interchange/indices.h"
#include "composit/interchange/onnx/rows.h"

namespace composit::onnx {
namespace {

LazyTensors embedding(const Call& call, const std::vector<Type>& results) {
  return {onnx::call("Gather", {tensor_of(call, "weight"), tensor_of(call, "indices")},
                     {attribute("axis", 0)}, results[0])};
}

LazyTensors index_select(const Call& call, const std::vector<Type>& results) {
  const LazyTensor& x = tensor_of(call, "self");
  if (x.rank() == 0 || tensor_of(call, "index").rank() != 1) return {};
  return {onnx::call("Gather", {x, tensor_of(call, "index")},
                     {attribute("axis", axis_of(call, "dim", x))}, results[0])};
}

LazyTensors gather(const Call& call, const std::vector<Type>& results) {
  const LazyTensor &x = tensor_of(call, "self"), &index = tensor_of(call, "index");
  if (x.rank() == 0 || index.rank() != x.rank()) return {};
  return {onnx::call("GatherElements", {x, cast_to(index, DType::int64)},
                     {attribute("axis", axis_of(call, "dim", x))}, results[0])};
}

// Indices of all axes, one column each; nothing where they are not all given. `leading`: those of
// the first axes are enough.
LazyTensor places(const LazyTensors& indices, const LazyTensor& x, bool leading = false) {
  const bool is_all = static_cast<int64_t>(indices.size()) == x.rank();
  if ((!is_all && !leading) || indices.empty()) return {};
  Dims sizes;
  for (const LazyTensor& index : indices) {
    if (!index || (index.dtype() != DType::int64 && index.dtype() != DType::int32)) return {};
    sizes = broadcast(sizes, index.sizes());
  }
  Dims last = sizes;
  last.push_back(1);
  LazyTensors columns;
  for (size_t axis = 0; axis < indices.size(); ++axis) {
    const LazyTensor index = cast_to(indices[axis], DType::int64);
    columns.push_back(reshaped(expanded(index, sizes), last));
  }
  if (columns.size() == 1) return columns[0];
  last.back() = static_cast<int64_t>(columns.size());
  return onnx::call("Concat", columns, {attribute("axis", static_cast<int64_t>(sizes.size()))},
                    tensor_type(DType::int64, last));
}

LazyTensor truth(const LazyTensor& x) {
  return x.dtype() == DType::bool_ ? x : cast_to(x, DType::bool_);
}

// The places of the `count` true elements of a mask, a column per axis. How many there are is asked
// for elsewhere (lower.cpp).
LazyTensors places_of_mask(const LazyTensor& mask, int64_t count) {
  const LazyTensor all =
      onnx::call("NonZero", {truth(mask)}, {}, tensor_type(DType::int64, {mask.rank(), count}));
  LazyTensors columns;
  for (int64_t axis = 0; axis < mask.rank(); ++axis)
    columns.push_back(reshaped(sliced(all, 0, axis, axis + 1), {count}));
  return columns;
}

LazyTensors without_masks(const LazyTensors& given, int64_t chosen) {
  LazyTensors indices;
  for (const LazyTensor& index : given) {
    if (!index || interchange::is_integer(index)) {
      indices.push_back(index);
      continue;
    }
    for (const LazyTensor& column : places_of_mask(index, chosen)) indices.push_back(column);
  }
  return indices;
}

LazyTensors masked_select(const Call& call, const std::vector<Type>& results) {
  const LazyTensor &x = tensor_of(call, "self"), &mask = tensor_of(call, "mask");
  Dims sizes = broadcast(x.sizes(), mask.sizes());
  if (sizes.empty()) sizes = {1};
  const LazyTensor at =
      places(places_of_mask(expanded(truth(mask), sizes), results[0].sizes[0]), expanded(x, sizes));
  return {onnx::call("GatherND", {expanded(x, sizes), at}, {}, results[0])};
}

LazyTensors index(const Call& call, const std::vector<Type>& results) {
  const LazyTensor& x = tensor_of(call, "self");
  const auto chosen = interchange::chosen_by(call["indices"].tensors(), results[0]);
  if (!chosen) return {};
  LazyTensors indices = without_masks(call["indices"].tensors(), *chosen);
  while (!indices.empty() && !indices.back()) indices.pop_back();
  const auto given = std::count_if(indices.begin(), indices.end(),
                                   [](const LazyTensor& one) { return one.defined(); });
  if (given == 1) {
    const auto found = std::find_if(indices.begin(), indices.end(),
                                    [](const LazyTensor& one) { return one.defined(); });
    if (found->dtype() != DType::int64 && found->dtype() != DType::int32) return {};
    return {onnx::call("Gather", {x, *found},
                       {attribute("axis", static_cast<int64_t>(found - indices.begin()))},
                       results[0])};
  }
  const LazyTensor at = places(indices, x, true);
  return at ? LazyTensors{onnx::call("GatherND", {x, at}, {}, results[0])} : LazyTensors();
}

LazyTensors index_put(const Call& call, const std::vector<Type>& results) {
  const LazyTensor &x = tensor_of(call, "self"), &values = tensor_of(call, "values");
  const LazyTensors& given = call["indices"].tensors();
  const auto chosen = interchange::chosen_by_values(given, values, x.rank());
  const LazyTensors indices = chosen ? without_masks(given, *chosen) : given;
  const LazyTensor at = places(indices, x, true);
  if (!at || values.dtype() != x.dtype()) return {};
  Dims sizes = at.sizes();  // of the indices, then the axes of x that have none
  sizes.pop_back();
  sizes.insert(sizes.end(), x.sizes().begin() + static_cast<int64_t>(indices.size()),
               x.sizes().end());
  const bool adds = bool_of(call, "accumulate");
  return {onnx::call("ScatterND", {x, at, expanded(values, sizes)},
                     {attribute("reduction", adds ? "add" : "none")}, results[0])};
}

// ONNX has an axis per row, torch per column.
LazyTensors nonzero(const Call& call, const std::vector<Type>& results) {
  const LazyTensor& x = tensor_of(call, "self");
  if (x.rank() == 0) return {};
  const Dims& sizes = results[0].sizes;
  const LazyTensor places =
      onnx::call("NonZero", {x}, {}, tensor_type(DType::int64, {sizes[1], sizes[0]}));
  return {transposed(places, {1, 0})};
}

}  // namespace

void add_indexing_rows(std::vector<Row>& rows) {
  rows.insert(rows.end(), {{"aten::embedding", embedding},
                           {"aten::index_select", index_select},
                           {"aten::gather", gather},
                           {"aten::masked_select", masked_select},
                           {"aten::nonzero", nonzero},
                           {"aten::index.Tensor", index},
                           {"aten::index_put", index_put}});
}

}  // namespace composit::onnx
