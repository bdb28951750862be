#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "composit/interchange/onnx_read/windows.h"
#include "composit/ir/error.h"

namespace composit::onnx_read {
namespace {

Ints axes_of_planes(const LazyTensor& x) {
  if (x.rank() < 3) throw UserError("expected a batch, channels and axes of planes");
  Ints axes(static_cast<size_t>(x.rank() - 2));
  std::iota(axes.begin(), axes.end(), 2);
  return axes;
}

// The least number of a dtype: padding that no maximum takes.
Scalar least_of(DType dtype) {
  if (is_floating_point(dtype)) return Scalar(-std::numeric_limits<double>::infinity());
  if (dtype == DType::int8) return Scalar(int64_t{-128});
  if (dtype == DType::uint8) return Scalar(int64_t{0});
  throw UserError("a maximum of windows of " + std::string(name(dtype)));
}

// ONNX counts places through all of the tensor, torch within a plane.
LazyTensor places_in_tensor(const OperatorCall& call, const LazyTensor& places,
                            const LazyTensor& x) {
  const Dims planes = sizes_from(x, 2);
  LazyTensor own = places;
  if (call.integer("storage_order", 0) != 0) {  // columns first
    if (planes.size() != 2) call.refuse("columns first, of other than two axes");
    const LazyTensor row =
        op("aten::div.Tensor_mode",
           {places, number_like(static_cast<double>(planes[1]), DType::int64), "floor"});
    const LazyTensor column = places - row * Number(planes[1]);
    own = column * Number(planes[0]) + row;
  }
  Ints sizes(static_cast<size_t>(x.rank()), 1);
  sizes[0] = x.size(0);
  sizes[1] = x.size(1);
  const LazyTensor number = arange(product_of({x.size(0), x.size(1)}));
  return own + reshape(number, sizes) * Number(product_of(planes));
}

LazyTensors max_pool(const OperatorCall& call) {
  const LazyTensor& given = call.operand(0);
  const Windows windows = windows_of(call, given, call.ints("kernel_shape"));
  const Ints beyond = windows.beyond(given);
  const bool reaches_beyond =
      std::any_of(beyond.begin(), beyond.end(), [](int64_t size) { return size != 0; });
  const bool plain = windows.is_plain() && (!reaches_beyond || windows.ceil);
  // Integers are compared as numbers of float32, which has all of theirs.
  LazyTensor x = is_floating_point(given.dtype()) ? given : cast(given, DType::float32);
  static_cast<void>(least_of(given.dtype()));
  if (!plain && call.wants(1)) call.refuse("places of windows over uneven padding");
  if (!plain) x = padded(x, windows, least_of(x.dtype()));
  const Ints padding = plain ? windows.before : Ints(windows.axes(), 0);
  const char* names[] = {"aten::max_pool1d_with_indices", "aten::max_pool2d_with_indices",
                         "aten::max_pool3d_with_indices"};
  if (windows.axes() > 3) call.refuse("windows of more than three axes");
  const LazyTensors made = apply(
      names[windows.axes() - 1],
      {x, windows.kernel, windows.strides, padding, windows.dilations, plain && windows.ceil});
  LazyTensors results = {cast(made[0], given.dtype())};
  if (call.wants(1)) results.push_back(places_in_tensor(call, made[1], given));
  return results;
}

// The sum of each window over the number of its elements that count.
LazyTensor window_means(const LazyTensor& x, const Windows& windows, bool with_padding) {
  const LazyTensor sums = window_sums(padded(x, windows, Scalar(0.0)), windows);
  Dims sizes = sizes_from(x, 2);
  if (with_padding)
    for (size_t i = 0; i < sizes.size(); ++i) sizes[i] += windows.before[i] + windows.behind[i];
  sizes.insert(sizes.begin(), {1, 1});
  LazyTensor ones = full(sizes, 1.0, x.dtype());
  Windows around = windows;
  if (with_padding) {
    around.before = Ints(windows.axes(), 0);
    around.behind = around.before;
  }
  ones = padded(ones, around, Scalar(0.0));
  return sums / window_sums(ones, windows);
}

LazyTensors average_pool(const OperatorCall& call) {
  const LazyTensor& x = call.operand(0);
  const Windows windows = windows_of(call, x, call.ints("kernel_shape"));
  const bool with_padding = call.flag("count_include_pad");
  const bool dilated = std::any_of(windows.dilations.begin(), windows.dilations.end(),
                                   [](int64_t dilation) { return dilation != 1; });
  if (!windows.is_plain() || dilated || windows.axes() > 3)
    return {window_means(x, windows, with_padding)};
  const char* names[] = {"aten::avg_pool1d", "aten::avg_pool2d", "aten::avg_pool3d"};
  return {op(names[windows.axes() - 1],
             {x, windows.kernel, windows.strides, windows.before, windows.ceil, with_padding})};
}

LazyTensors lp_pool(const OperatorCall& call) {
  const LazyTensor& x = call.operand(0);
  const Windows windows = windows_of(call, x, call.ints("kernel_shape"));
  const auto p = static_cast<double>(call.integer("p", 2));
  const LazyTensor powers = pow(abs(x), p);
  return {pow(window_sums(padded(powers, windows, Scalar(0.0)), windows), 1 / p)};
}

LazyTensors global_average(const OperatorCall& call) {
  const LazyTensor& x = call.operand(0);
  return {mean(x, axes_of_planes(x), true)};
}

LazyTensors global_max(const OperatorCall& call) {
  const LazyTensor& x = call.operand(0);
  return {amax(x, axes_of_planes(x), true)};
}

LazyTensors global_lp(const OperatorCall& call) {
  const LazyTensor& x = call.operand(0);
  const auto p = static_cast<double>(call.integer("p", 2));
  return {pow(sum(pow(abs(x), p), axes_of_planes(x), true), 1 / p)};
}

// Values at the places that MaxPool gave; places count through all of the result.
LazyTensors max_unpool(const OperatorCall& call) {
  const LazyTensor &x = call.operand(0), &places = call.operand(1);
  const Ints kernel = call.ints("kernel_shape");
  const size_t axes = kernel.size();
  if (x.rank() != static_cast<int64_t>(axes) + 2) call.refuse("expected a size per axis of planes");
  const Ints strides = per_axis(call, "strides", axes, 1),
             pads = per_axis(call, "pads", 2 * axes, 0);
  Dims own = {x.size(0), x.size(1)};
  for (size_t i = 0; i < axes; ++i)
    own.push_back((x.sizes()[i + 2] - 1) * strides[i] + kernel[i] - pads[i] - pads[axes + i]);
  own = expect_sizes(own);
  const LazyTensor flat = full({product_of(own)}, 0.0, x.dtype());
  const LazyTensor y =
      reshape(op("aten::scatter.src",
                 {flat, int64_t{0}, reshape(places, {x.numel()}), reshape(x, {x.numel()})}),
              own);
  if (!call.optional(2)) return {y};
  // The sizes that are given may be larger than what follows from the windows.
  const Dims larger = expect_sizes(call.known_ints(2));
  if (larger.size() != own.size()) call.refuse("output_shape: expected a size per axis");
  Ints list;
  for (size_t i = own.size(); i-- > 0;) {
    list.push_back(0);
    list.push_back(larger[i] - own[i]);
  }
  return {op("aten::constant_pad_nd", {y, list, Scalar(0.0)})};
}

}  // namespace

void add_pooling_rows(std::vector<Row>& rows) {
  rows.insert(rows.end(), {{"AveragePool", average_pool},
                           {"GlobalAveragePool", global_average},
                           {"GlobalLpPool", global_lp},
                           {"GlobalMaxPool", global_max},
                           {"LpPool", lp_pool},
                           {"MaxPool", max_pool},
                           {"MaxUnpool", max_unpool}});
}

}  // namespace composit::onnx_read
