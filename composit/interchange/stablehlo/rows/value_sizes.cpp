// Operators whose results are as long as values say. A module has the lengths of the captured run;
// that they are so for other values is a condition of the program.
#include <algorithm>

#include "composit/interchange/stablehlo/rows.h"
#include "composit/ops/functions.h"

namespace composit::stablehlo {
namespace {

using Types = std::vector<Type>;

LazyTensor count_of(int64_t value) { return number(static_cast<double>(value), DType::int64); }

LazyTensor total(const LazyTensor& x) {
  return reduced("add", cast_to(x, DType::int64), count_of(0), {0}, false);
}

// True where an element differs from the one before; the first one does.
LazyTensor begins(const LazyTensor& x) {
  const int64_t length = x.size(0);
  const LazyTensor differs = compare("NE", sliced(x, 0, 1, length), sliced(x, 0, 0, length - 1));
  return concatenated({filled(1, DType::bool_, {1}), differs}, 0);
}

LazyTensor put(const LazyTensor& into, const LazyTensor& places, const LazyTensor& values,
               bool add) {
  return apply_one("aten::index_put", {into, LazyTensors{places}, values, add});
}

// Of elements in groups: one of each group, the group of each, how many each has.
LazyTensors groups_of(const LazyTensor& x, const Types& results) {
  const LazyTensor first = begins(x);
  const int64_t groups = results[0].sizes[0];
  const LazyTensor holds = compare("EQ", total(first), count_of(groups));
  const LazyTensor numbers = apply_one("aten::cumsum", {cast_to(first, DType::int64), 0});
  // Beyond the last group nothing is asked for: `holds` tells.
  const LazyTensor group = binary("minimum", binary("subtract", numbers, count_of(1)),
                                  count_of(std::max<int64_t>(groups - 1, 0)));
  const LazyTensor ones = filled(1, DType::int64, x.sizes());
  return {checked(put(filled(0, x.dtype(), {groups}), group, x, false), holds, kAsMany), group,
          put(filled(0, DType::int64, {groups}), group, ones, true)};
}

LazyTensor asked_for(const LazyTensor& x, const Type& type) {
  return type.numel() == 0 ? filled(0, type.dtype, type.sizes) : reshaped(x, type.sizes);
}

LazyTensors unique(const Call& call, const Types& results) {
  const LazyTensor& x = tensor_of(call, "self");
  if (x.numel() == 0 || is_complex(x.dtype())) return {};
  const LazyTensors sorted = composit::apply("aten::sort", {reshaped(x, {x.numel()}), 0, false});
  const LazyTensors groups = groups_of(sorted[0], results);
  const LazyTensor inverse = put(filled(0, DType::int64, {x.numel()}), sorted[1], groups[1], false);
  return {groups[0], asked_for(inverse, results[1]), asked_for(groups[2], results[2])};
}

LazyTensors unique_consecutive(const Call& call, const Types& results) {
  const LazyTensor& x = tensor_of(call, "self");
  if (x.numel() == 0 || !call["dim"].is_none()) return {};
  const LazyTensors groups = groups_of(reshaped(x, {x.numel()}), results);
  return {groups[0], asked_for(groups[1], results[1]), asked_for(groups[2], results[2])};
}

LazyTensors bincount(const Call& call, const Types& results) {
  const LazyTensor& x = tensor_of(call, "self");
  const int64_t length = results[0].sizes[0];
  if (x.numel() == 0) return {filled(0, results[0].dtype, results[0].sizes)};
  const LazyTensor places = cast_to(x, DType::int64);
  const LazyTensor& given = tensor_of(call, "weights");
  const LazyTensor weights =
      given ? cast_to(given, results[0].dtype) : filled(1, results[0].dtype, x.sizes());
  LazyTensor counts = put(filled(0, results[0].dtype, {length}), places, weights, true);
  if (length > int_of(call, "minlength")) {
    const LazyTensor largest = reduced("maximum", places, count_of(0), {0}, false);
    counts = checked(counts, compare("EQ", largest, count_of(length - 1)), kAsMany);
  }
  return {counts};
}

// The number i as often as repeats[i] says: how many ends of runs stand before each place.
LazyTensors repeat_interleave(const Call& call, const Types& results) {
  const LazyTensor& repeats = tensor_of(call, "repeats");
  const int64_t length = results[0].sizes[0], count = repeats.size(0);
  if (count == 0 || length == 0) return {filled(0, results[0].dtype, results[0].sizes)};
  const LazyTensor ends = apply_one("aten::cumsum", {cast_to(repeats, DType::int64), 0});
  const LazyTensor holds = compare("EQ", total(repeats), count_of(length));
  const LazyTensor marks =
      put(filled(0, DType::int64, {length + 1}), binary("minimum", ends, count_of(length)),
          filled(1, DType::int64, {count}), true);
  const LazyTensor index = apply_one("aten::cumsum", {sliced(marks, 0, 0, length), 0});
  return {checked(cast_to(index, results[0].dtype), holds, kAsMany)};
}

}  // namespace

void add_value_size_rows(std::vector<Row>& rows) {
  rows.insert(rows.end(), {{"aten::_unique2", unique},
                           {"aten::unique_consecutive", unique_consecutive},
                           {"aten::bincount", bincount},
                           {"aten::repeat_interleave.Tensor", repeat_interleave}});
}

}  // namespace composit::stablehlo
