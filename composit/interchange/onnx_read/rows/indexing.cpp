#include <algorithm>
#include <numeric>

#include "composit/interchange/onnx_read/rows.h"
#include "composit/ir/error.h"
#include "composit/ops/native.h"

namespace composit::onnx_read {
namespace {

// Indices are counted from the end where they are negative.
LazyTensor wrapped_places(const OperatorCall& call, size_t index, int64_t size) {
  const LazyTensor& given = call.operand(index);
  if (given.dtype() != DType::int64 && given.dtype() != DType::int32)
    call.refuse("expected indices of int64 or int32, received " + std::string(name(given.dtype())));
  const bool folds = call.folds() || given.numel() == 1;
  if (const auto known = folds ? call.find_value(index) : std::nullopt) {
    std::vector<int64_t> places = elements<int64_t>(*known);
    for (int64_t& place : places) {
      if (place < -size || place >= size)
        call.refuse("index " + std::to_string(place) + " of " + std::to_string(size));
      if (place < 0) place += size;
    }
    return constant(array_of(tensor_type(DType::int64, given.sizes()), places));
  }
  const LazyTensor places = cast(given, DType::int64);
  return where(places < 0, places + Number(size), places);
}

LazyTensors gather_row(const OperatorCall& call) {
  const LazyTensor &x = call.operand(0), &given = call.operand(1);
  const int64_t axis = call.axis("axis", 0, x);
  const LazyTensor indices = wrapped_places(call, 1, x.size(axis));
  if (indices.rank() == 0)
    if (const auto known = call.find_value(1)) {
      const int64_t place = elements<int64_t>(*known)[0];
      return {select_at(x, axis, place < 0 ? place + x.size(axis) : place)};
    }
  if (axis == 0 && x.rank() == 2 && is_floating_point(x.dtype()) && indices.rank() > 0)
    return {op("aten::embedding", {x, indices})};
  const LazyTensor flat = reshape(indices, {indices.numel()});
  Dims sizes(x.sizes().begin(), x.sizes().begin() + axis);
  sizes.insert(sizes.end(), given.sizes().begin(), given.sizes().end());
  sizes.insert(sizes.end(), x.sizes().begin() + axis + 1, x.sizes().end());
  return {reshape(op("aten::index_select", {x, axis, flat}), sizes)};
}

LazyTensors gather_elements(const OperatorCall& call) {
  const LazyTensor& x = call.operand(0);
  const int64_t axis = call.axis("axis", 0, x);
  return {op("aten::gather", {x, axis, wrapped_places(call, 1, x.size(axis))})};
}

// The last axis of `indices` are places in axes `first`, first + 1, … of x: one index of all these.
LazyTensor flat_places(const OperatorCall& call, const LazyTensor& x, const LazyTensor& indices,
                       int64_t first) {
  if (indices.dtype() != DType::int64) call.refuse("expected indices of int64");
  const int64_t count = indices.size(-1);
  LazyTensor flat;
  for (int64_t i = 0; i < count; ++i) {
    const LazyTensor place = select_at(indices, indices.rank() - 1, i);
    const int64_t size = x.size(first + i);
    const LazyTensor own = where(place < 0, place + Number(size), place);
    flat = flat ? flat * Number(size) + own : own;
  }
  return flat;
}

// UserError for indices that are known and out of range: a flat place would hide them.
void expect_in_range(const OperatorCall& call, const LazyTensor& x, size_t index, int64_t first) {
  const auto known = call.find_value(index);
  if (!known) return;
  const std::vector<int64_t> places = elements<int64_t>(*known);
  const auto count = static_cast<size_t>(call.operand(index).size(-1));
  for (size_t i = 0; i < places.size(); ++i) {
    const int64_t size = x.size(first + static_cast<int64_t>(i % count));
    if (places[i] < -size || places[i] >= size)
      call.refuse("index " + std::to_string(places[i]) + " of " + std::to_string(size));
  }
}

LazyTensors gather_nd(const OperatorCall& call) {
  const LazyTensor &x = call.operand(0), &indices = call.operand(1);
  const int64_t batch = call.integer("batch_dims", 0);
  if (batch < 0 || indices.rank() <= batch || x.rank() <= batch) call.refuse("too many batch axes");
  const int64_t count = indices.size(-1);
  if (count < 1 || count > x.rank() - batch) call.refuse("too many indices");
  expect_in_range(call, x, 1, batch);
  const LazyTensor places = flat_places(call, x, indices, batch);  // batch…, rest…
  const Dims &own = x.sizes(), &given = places.sizes();
  const int64_t batches = product_of({own.begin(), own.begin() + batch});
  const int64_t axes = product_of({own.begin() + batch, own.begin() + batch + count});
  const Ints tail(own.begin() + batch + count, own.end());
  const int64_t rest = product_of(tail);
  for (int64_t i = 0; i < batch; ++i)
    if (x.size(i) != indices.size(i)) call.refuse("batch axes differ");
  const int64_t each = product_of({given.begin() + batch, given.end()});
  // One axis of batches and places, one of what lies behind.
  LazyTensor flat = reshape(places, {batches, each});
  flat = flat + reshape(arange(batches) * Number(axes), {batches, 1});
  const LazyTensor found = op("aten::index_select", {reshape(x, {batches * axes, rest}), int64_t{0},
                                                     reshape(flat, {batches * each})});
  Dims sizes = given;
  sizes.insert(sizes.end(), tail.begin(), tail.end());
  return {reshape(found, sizes)};
}

std::string scatter_reduction(const OperatorCall& call) {
  const std::string reduction = call.text("reduction", "none");
  expect_one_of("reduction", reduction, {"none", "add", "mul", "max", "min"});
  return reduction == "add"   ? "sum"
         : reduction == "mul" ? "prod"
         : reduction == "max" ? "amax"
         : reduction == "min" ? "amin"
                              : "none";
}

// Along axis 0 of a matrix: `places` has a row of `x` per row of `updates`.
LazyTensor scattered(const LazyTensor& x, int64_t axis, const LazyTensor& places,
                     const LazyTensor& updates, const std::string& reduction) {
  if (reduction == "none") return op("aten::scatter.src", {x, axis, places, updates});
  if (reduction == "sum") return op("aten::scatter_add", {x, axis, places, updates});
  return op("aten::scatter_reduce.two", {x, axis, places, updates, reduction});
}

void expect_same(const OperatorCall& call, const LazyTensor& x, const LazyTensor& updates) {
  if (x.dtype() != updates.dtype()) call.refuse("the updates are of another dtype");
}

LazyTensors scatter_elements(const OperatorCall& call) {
  const LazyTensor &x = call.operand(0), &updates = call.operand(2);
  expect_same(call, x, updates);
  const int64_t axis = call.axis("axis", 0, x);
  if (call.operand(1).sizes() != updates.sizes())
    call.refuse("indices and updates differ in sizes");
  return {
      scattered(x, axis, wrapped_places(call, 1, x.size(axis)), updates, scatter_reduction(call))};
}

LazyTensors scatter_nd(const OperatorCall& call) {
  const LazyTensor &x = call.operand(0), &indices = call.operand(1), &updates = call.operand(2);
  expect_same(call, x, updates);
  if (indices.rank() < 1) call.refuse("indices have no axis");
  const int64_t count = indices.size(-1);
  if (count < 1 || count > x.rank()) call.refuse("too many indices");
  expect_in_range(call, x, 1, 0);
  const LazyTensor places = flat_places(call, x, indices, 0);
  const int64_t rows = product_of({x.sizes().begin(), x.sizes().begin() + count});
  const Ints tail(x.sizes().begin() + count, x.sizes().end());
  const int64_t rest = product_of(tail), each = places.numel();
  Dims expected = places.sizes();
  expected.insert(expected.end(), tail.begin(), tail.end());
  if (updates.sizes() != expected) call.refuse("the updates have other sizes than indices say");
  const LazyTensor by_row = expand(reshape(places, {each, 1}), {each, rest});
  const LazyTensor result = scattered(reshape(x, {rows, rest}), 0, by_row,
                                      reshape(updates, {each, rest}), scatter_reduction(call));
  return {reshape(result, x.sizes())};
}

// Rows that a condition names; how many there are has to be known.
LazyTensors compress(const OperatorCall& call) {
  const std::vector<int64_t> condition = elements<int64_t>(call.value(1));
  LazyTensor x = call.operand(0);
  int64_t axis = 0;
  if (call.has("axis"))
    axis = call.axis("axis", {}, x);
  else
    x = reshape(x, {x.numel()});
  Ints places;
  for (size_t i = 0; i < condition.size(); ++i)
    if (condition[i] != 0) places.push_back(static_cast<int64_t>(i));
  if (!places.empty() && places.back() >= x.size(axis)) call.refuse("its condition is too long");
  return {op("aten::index_select", {x, axis, integers(places)})};
}

// Each sequence of the batch reversed up to its length.
LazyTensors reverse_sequence(const OperatorCall& call) {
  const LazyTensor &x = call.operand(0), &lengths = call.operand(1);
  const int64_t batch_axis = call.integer("batch_axis", 1),
                time_axis = call.integer("time_axis", 0);
  if (batch_axis + time_axis != 1 || batch_axis * time_axis != 0 || x.rank() < 2 ||
      lengths.rank() != 1)
    call.refuse("expected the batch and the time as the first two axes");
  const int64_t steps = x.size(time_axis), batch = x.size(batch_axis);
  if (lengths.numel() != batch) call.refuse("expected a length per sequence");
  const Ints time_sizes = time_axis == 0 ? Ints{steps, 1} : Ints{1, steps};
  const Ints batch_sizes = time_axis == 0 ? Ints{1, batch} : Ints{batch, 1};
  const LazyTensor time = reshape(arange(steps), time_sizes);
  const LazyTensor length = reshape(cast(lengths, DType::int64), batch_sizes);
  const LazyTensor places = where(time < length, length - 1 - time, time);
  Ints sizes = places.sizes();
  sizes.resize(static_cast<size_t>(x.rank()), 1);
  return {op("aten::gather", {x, time_axis, expand(reshape(places, sizes), x.sizes())})};
}

// The cache with an update written into it from a place of each batch on (opset 24).
LazyTensors tensor_scatter(const OperatorCall& call) {
  const LazyTensor &cache = call.operand(0), &update = call.operand(1);
  const int64_t axis = call.axis("axis", -2, cache);
  const std::string mode = call.text("mode", "linear");
  expect_one_of("mode", mode, {"linear", "circular"});
  if (axis == 0 || update.rank() != cache.rank()) call.refuse("expected a batch before the axis");
  expect_same(call, cache, update);
  Ints sizes(static_cast<size_t>(cache.rank()), 1);
  sizes[static_cast<size_t>(axis)] = update.size(axis);
  LazyTensor places = reshape(arange(update.size(axis)), sizes);
  if (call.optional(2)) {
    Ints batch(static_cast<size_t>(cache.rank()), 1);
    batch[0] = cache.size(0);
    places = places + reshape(cast(call.operand(2), DType::int64), batch);
  }
  if (mode == "circular") places = op("aten::remainder.Scalar", {places, Scalar(cache.size(axis))});
  return {op("aten::scatter.src", {cache, axis, expand(places, update.sizes()), update})};
}

}  // namespace

void add_indexing_rows(std::vector<Row>& rows) {
  rows.insert(rows.end(), {{"Compress", compress},
                           {"Gather", gather_row},
                           {"GatherElements", gather_elements},
                           {"GatherND", gather_nd},
                           {"ReverseSequence", reverse_sequence},
                           {"Scatter", scatter_elements},
                           {"ScatterElements", scatter_elements},
                           {"ScatterND", scatter_nd},
                           {"TensorScatter", tensor_scatter}});
}

}  // namespace composit::onnx_read
