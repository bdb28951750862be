#include <algorithm>

#include "composit/interchange/stablehlo/rows.h"
#include "composit/ir/graph.h"
#include "composit/ops/functions.h"
#include "composit/ops/native.h"

namespace composit::stablehlo {
namespace {

using Types = std::vector<Type>;
using Axes = std::vector<int64_t>;

// One number stands for all axes.
Axes per_axis(Axes values, size_t axes) {
  if (values.size() == 1) values.resize(axes, values[0]);
  return values;
}

// Windows over the last axes of a tensor.
struct Windows {
  Axes kernel, stride, dilation, low, high;  // of all axes
};

// `sizes`: of the result, which say how many windows there are: where their number was rounded up,
// the last ones reach further behind.
template <size_t axes>
Windows windows_of(const Call& call, const LazyTensor& x, const Dims& sizes, const Axes& dilation) {
  const size_t first = x.sizes().size() - axes;
  const Axes kernel = per_axis(ints_of(call, "kernel_size"), axes);
  const Axes padding = per_axis(ints_of(call, "padding"), axes);
  Axes stride = per_axis(ints_of(call, "stride"), axes);
  if (stride.empty()) stride = kernel;
  const Axes ones(first, 1), zeros(first, 0);
  Windows windows{ones, ones, ones, zeros, zeros};
  for (size_t i = 0; i < axes; ++i) {
    const int64_t reach = (sizes[first + i] - 1) * stride[i] + dilation[i] * (kernel[i] - 1) + 1;
    windows.kernel.push_back(kernel[i]);
    windows.stride.push_back(stride[i]);
    windows.dilation.push_back(dilation[i]);
    windows.low.push_back(padding[i]);
    windows.high.push_back(reach - padding[i] - x.sizes()[first + i]);
  }
  return windows;
}

LazyTensors over_windows(const LazyTensors& operands, const Windows& windows, Attributes how,
                         Types results) {
  Attributes attributes = {list("window_dimensions", windows.kernel),
                           list("window_strides", windows.stride),
                           list("window_dilations", windows.dilation), list("low", windows.low),
                           list("high", windows.high)};
  attributes.insert(attributes.end(), how.begin(), how.end());
  return calls("reduce_window", operands, std::move(attributes), std::move(results));
}

template <size_t axes>
LazyTensors max_pool(const Call& call, const Types& results) {
  const LazyTensor& x = tensor_of(call, "self");
  if (results[0].numel() == 0) return {};
  const Windows windows =
      windows_of<axes>(call, x, results[0].sizes, per_axis(ints_of(call, "dilation"), axes));
  const size_t first = x.sizes().size() - axes;
  const Dims plane(x.sizes().begin() + static_cast<int64_t>(first), x.sizes().end());
  int64_t elements = 1;
  for (const int64_t size : plane) elements *= size;
  const LazyTensor places =
      broadcast_to(reshaped(iota(DType::int64, {elements}, 0), plane), x.sizes());
  return over_windows(
      {x, places, lowest(x.dtype()), number(static_cast<double>(elements), DType::int64)}, windows,
      {attribute("body", chooser(x.dtype(), true)), attribute("of_values", "maximum")}, results);
}

// How many elements each window counts, by torch's rule: padding counts where it is asked for, but
// not what lies behind it.
template <size_t axes>
Array counts_of(const Call& call, const LazyTensor& x, const Dims& sizes, const Windows& windows) {
  const size_t first = x.sizes().size() - axes;
  const bool pads = bool_of(call, "count_include_pad");
  std::vector<double> counts = {1};
  Dims plane;
  for (size_t i = first; i < x.sizes().size(); ++i) {
    std::vector<double> next;
    for (const double count : counts)
      for (int64_t w = 0; w < sizes[i]; ++w) {
        int64_t begin = w * windows.stride[i] - windows.low[i];
        int64_t end = std::min(begin + windows.kernel[i], x.sizes()[i] + windows.low[i]);
        if (!pads) begin = std::max<int64_t>(begin, 0), end = std::min(end, x.sizes()[i]);
        next.push_back(count * static_cast<double>(end - begin));
      }
    counts = std::move(next);
    plane.push_back(sizes[i]);
  }
  return array_of(tensor_type(x.dtype(), plane), counts);
}

template <size_t axes>
LazyTensors average_pool(const Call& call, const Types& results) {
  const LazyTensor& x = tensor_of(call, "self");
  if (results[0].numel() == 0 || !is_floating_point(x.dtype()) || is_half(x.dtype())) return {};
  const Windows windows = windows_of<axes>(call, x, results[0].sizes, Axes(axes, 1));
  const LazyTensor sum =
      over_windows({x, like(0, x)}, windows, {attribute("body", combiner(x.dtype(), "add"))},
                   {tensor_type(x.dtype(), results[0].sizes)})[0];
  const bool divides = axes > 1 && !call["divisor_override"].is_none();
  const LazyTensor count = divides ? like(static_cast<double>(int_of(call, "divisor_override")), x)
                                   : constant(counts_of<axes>(call, x, results[0].sizes, windows));
  return {binary("divide", sum, count)};
}

// The places that each window of an axis reads, [windows, longest]: the last one is repeated where
// a window is shorter.
std::vector<int64_t> window_places(int64_t size, int64_t windows, int64_t& longest) {
  const auto begin = [&](int64_t w) { return w * size / windows; };
  const auto end = [&](int64_t w) { return ((w + 1) * size + windows - 1) / windows; };
  longest = 0;
  for (int64_t w = 0; w < windows; ++w) longest = std::max(longest, end(w) - begin(w));
  std::vector<int64_t> places;
  for (int64_t w = 0; w < windows; ++w)
    for (int64_t k = 0; k < longest; ++k) places.push_back(std::min(begin(w) + k, end(w) - 1));
  return places;
}

// x with each of its last axes, from `first` on, split into windows and places within them.
LazyTensor in_windows(LazyTensor x, size_t first, const Dims& windows, Axes& within) {
  const size_t axes = x.sizes().size() - first;
  for (size_t i = axes; i-- > 0;) {  // axes behind are split already
    const size_t axis = first + i;
    int64_t longest = 0;
    const std::vector<int64_t> places = window_places(x.sizes()[axis], windows[axis], longest);
    x = apply_one("aten::index_select", {x, static_cast<int64_t>(axis), integers(places)});
    Dims sizes = x.sizes();
    sizes[axis] = windows[axis];
    sizes.insert(sizes.begin() + static_cast<int64_t>(axis) + 1, longest);
    x = reshaped(x, sizes);
  }
  for (size_t i = 0; i < axes; ++i) within.push_back(static_cast<int64_t>(first + 2 * i + 1));
  return x;
}

template <size_t axes>
LazyTensors adaptive_max_pool(const Call& call, const Types& results) {
  const LazyTensor& x = tensor_of(call, "self");
  if (results[0].numel() == 0 || x.numel() == 0) return {};
  const size_t first = x.sizes().size() - axes;
  const Dims plane(x.sizes().begin() + static_cast<int64_t>(first), x.sizes().end());
  Dims ones(first, 1);
  ones.insert(ones.end(), plane.begin(), plane.end());
  int64_t elements = 1;
  for (const int64_t size : plane) elements *= size;
  Axes within, same;
  const LazyTensor values = in_windows(x, first, results[0].sizes, within);
  const LazyTensor places =
      in_windows(reshaped(iota(DType::int64, {elements}, 0), ones), first, results[0].sizes, same);
  return calls("reduce",
               {values, broadcast_to(places, values.sizes()), lowest(x.dtype()),
                number(static_cast<double>(elements), DType::int64)},
               {list("dimensions", within), attribute("body", chooser(x.dtype(), true)),
                attribute("of_values", "maximum")},
               results);
}

}  // namespace

void add_pooling_rows(std::vector<Row>& rows) {
  rows.insert(rows.end(), {{"aten::max_pool1d_with_indices", max_pool<1>},
                           {"aten::max_pool2d_with_indices", max_pool<2>},
                           {"aten::max_pool3d_with_indices", max_pool<3>},
                           {"aten::adaptive_max_pool2d", adaptive_max_pool<2>},
                           {"aten::adaptive_max_pool3d", adaptive_max_pool<3>},
                           {"aten::avg_pool1d", average_pool<1>},
                           {"aten::avg_pool2d", average_pool<2>},
                           {"aten::avg_pool3d", average_pool<3>}});
}

}  // namespace composit::stablehlo
