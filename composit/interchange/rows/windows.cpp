// Windows of several sizes, and places of triangles: what follows from sizes alone is constants.
#include <algorithm>

#include "composit/interchange/common_rows.h"
#include "composit/interchange/values.h"
#include "composit/ops/functions.h"
#include "composit/ops/native.h"

namespace composit::interchange {
namespace {

using Types = std::vector<Type>;
using X = const LazyTensor&;

// Window i along an axis goes from floor(i * in / out) to before ceil((i + 1) * in / out).
struct Windows {
  int64_t count, length;        // of the longest
  std::vector<int64_t> places;  // [count, length]; a shorter one repeats its last place
};

Windows windows_of(int64_t in, int64_t out) {
  const auto begin = [&](int64_t i) { return i * in / out; };
  const auto end = [&](int64_t i) { return ((i + 1) * in + out - 1) / out; };
  Windows windows{out, 0, {}};
  for (int64_t i = 0; i < out; ++i) windows.length = std::max(windows.length, end(i) - begin(i));
  for (int64_t i = 0; i < out; ++i)
    for (int64_t k = 0; k < windows.length; ++k)
      windows.places.push_back(std::min(begin(i) + k, end(i) - 1));
  return windows;
}

// The largest element of each window, and its place in the picture, which of equal ones is the
// first: a place that is repeated stands behind itself.
template <size_t axes>
LazyTensors adaptive_max_pool(const Call& call, const Types& results) {
  X x = tensor_of(call, "self");
  if (results[0].numel() == 0 || !is_floating_point(x.dtype())) return {};
  const auto first = x.rank() - static_cast<int64_t>(axes);
  LazyTensor windows = x;
  LazyTensor places = zeros({1}, DType::int64);  // of all elements of a window, in the picture
  Dims counts, lengths;
  for (size_t i = 0; i < axes; ++i) {
    const int64_t axis = first + static_cast<int64_t>(i), in = x.size(axis);
    const Windows own = windows_of(in, results[0].sizes[static_cast<size_t>(axis)]);
    const LazyTensor chosen = integers(own.places);
    windows = apply_one("aten::index_select", {windows, axis, chosen});
    counts.push_back(own.count);
    lengths.push_back(own.length);
    places = reshape(unsqueeze(places, -1) * in + chosen, {places.numel() * chosen.numel()});
  }
  // [.., count, length, count, length] to [.., count, count, length * length].
  Dims split(x.sizes().begin(), x.sizes().begin() + first), pairs, kept;
  std::vector<int64_t> order, own_order;
  for (int64_t i = 0; i < first; ++i) order.push_back(i);
  for (size_t i = 0; i < axes; ++i) pairs.insert(pairs.end(), {counts[i], lengths[i]});
  for (int64_t part = 0; part < 2; ++part)
    for (size_t i = 0; i < axes; ++i) own_order.push_back(2 * static_cast<int64_t>(i) + part);
  for (const int64_t axis : own_order) order.push_back(first + axis);
  split.insert(split.end(), pairs.begin(), pairs.end());
  Dims flat = results[0].sizes;
  flat.push_back(-1);
  const LazyTensor elements = reshape(permute(reshape(windows, split), order), flat);
  Dims own_flat = counts;
  own_flat.push_back(-1);
  const LazyTensor table = reshape(permute(reshape(places, pairs), own_order), own_flat);
  const LazyTensors found = composit::apply("aten::max.dim", {elements, -1, true});
  const LazyTensor place =
      apply_one("aten::gather", {expand(table, elements.sizes()), -1, found[1]});
  return {reshape(found[0], results[0].sizes), reshape(place, results[1].sizes)};
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

}  // namespace

void add_window_rows(std::vector<Row>& rows) {
  rows.insert(rows.end(), {{"aten::adaptive_max_pool2d", adaptive_max_pool<2>},
                           {"aten::adaptive_max_pool3d", adaptive_max_pool<3>},
                           {"aten::tril_indices", triangle_indices<false>},
                           {"aten::triu_indices", triangle_indices<true>}});
}

}  // namespace composit::interchange
