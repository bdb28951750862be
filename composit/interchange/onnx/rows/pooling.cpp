#include <algorithm>

#include "composit/interchange/onnx/rows.h"

namespace composit::onnx {
namespace {

// Padding before and behind, the same on both sides.
List both_sides(const std::vector<int64_t>& padding) {
  std::vector<int64_t> pads = padding;
  pads.insert(pads.end(), padding.begin(), padding.end());
  return int_list(pads);
}

// One number stands for all axes.
std::vector<int64_t> per_axis(std::vector<int64_t> values, size_t axes) {
  if (values.size() == 1) values.resize(axes, values[0]);
  return values;
}

// The number of windows by ONNX's rule. Where it rounds up, torch leaves out a window that begins
// behind the padded picture.
int64_t windows(int64_t size, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation,
                bool ceil) {
  const int64_t room = size + 2 * pad - dilation * (kernel - 1) - 1;
  return (ceil ? (room + stride - 1) / stride : room / stride) + 1;
}

// Sizes with a batch axis, which ONNX asks for.
Dims batched(const Dims& sizes, size_t axes) {
  Dims with = sizes;
  if (with.size() == axes + 1) with.insert(with.begin(), 1);
  return with;
}

template <size_t axes>
LazyTensors max_pool(const Call& call, const std::vector<Type>& results) {
  const LazyTensor& given = tensor_of(call, "self");
  const LazyTensor x = reshaped(given, batched(given.sizes(), axes));
  const Dims sizes = batched(results[0].sizes, axes);
  if (!is_floating_point(x.dtype())) return {};
  const std::vector<int64_t> kernel = per_axis(ints_of(call, "kernel_size"), axes);
  const std::vector<int64_t> padding = per_axis(ints_of(call, "padding"), axes);
  const std::vector<int64_t> dilation = per_axis(ints_of(call, "dilation"), axes);
  std::vector<int64_t> stride = per_axis(ints_of(call, "stride"), axes);
  if (stride.empty()) stride = kernel;
  const bool ceil = bool_of(call, "ceil_mode");
  for (size_t i = 0; i < axes; ++i)
    if (windows(x.sizes()[i + 2], kernel[i], stride[i], padding[i], dilation[i], ceil) !=
        sizes[i + 2])
      return {};
  const LazyTensors made =
      calls("MaxPool", {x},
            {attribute("kernel_shape", int_list(kernel)), attribute("strides", int_list(stride)),
             attribute("pads", both_sides(padding)), attribute("dilations", int_list(dilation)),
             attribute("ceil_mode", ceil ? 1 : 0)},
            {tensor_type(x.dtype(), sizes), tensor_type(DType::int64, sizes)});
  const LazyTensor values = reshaped(made[0], results[0].sizes);
  if (results.size() == 1) return {values};
  // ONNX counts places through all of the tensor, torch within a plane.
  double plane = 1;
  for (size_t i = 2; i < axes + 2; ++i) plane *= static_cast<double>(x.sizes()[i]);
  const LazyTensor places = onnx::call("Mod", {made[1], number(plane, DType::int64)}, {},
                                       tensor_type(DType::int64, sizes));
  return {values, reshaped(places, results[1].sizes)};
}

template <size_t axes>
LazyTensors average_pool(const Call& call, const std::vector<Type>& results) {
  const LazyTensor& x = tensor_of(call, "self");
  const bool divisor = axes > 1 && !call["divisor_override"].is_none();
  if (x.rank() != static_cast<int64_t>(axes) + 2 || divisor || bool_of(call, "ceil_mode"))
    return {};
  const std::vector<int64_t> kernel = per_axis(ints_of(call, "kernel_size"), axes);
  std::vector<int64_t> stride = per_axis(ints_of(call, "stride"), axes);
  if (stride.empty()) stride = kernel;
  return {onnx::call(
      "AveragePool", {x},
      {attribute("kernel_shape", int_list(kernel)), attribute("strides", int_list(stride)),
       attribute("pads", both_sides(per_axis(ints_of(call, "padding"), axes))),
       attribute("count_include_pad", bool_of(call, "count_include_pad") ? 1 : 0)},
      results[0])};
}

// Where windows do not overlap and all have one size.
template <size_t axes>
LazyTensors adaptive_average(const Call& call, const std::vector<Type>& results) {
  const LazyTensor& x = tensor_of(call, "self");
  const size_t first = x.sizes().size() - axes;
  std::vector<int64_t> kernel, reduced_axes;
  bool to_one = true;
  for (size_t i = first; i < x.sizes().size(); ++i) {
    const int64_t size = results[0].sizes[i];
    if (size == 0 || x.sizes()[i] % size != 0) return {};
    kernel.push_back(x.sizes()[i] / size);
    reduced_axes.push_back(static_cast<int64_t>(i));
    to_one = to_one && size == 1;
  }
  if (to_one) return {reduced("ReduceMean", x, reduced_axes, true)};
  if (first != 2) return {};
  return {onnx::call(
      "AveragePool", {x},
      {attribute("kernel_shape", int_list(kernel)), attribute("strides", int_list(kernel))},
      results[0])};
}

// The pixel at floor(i * in / out).
template <size_t axes>
LazyTensors nearest(const Call& call, const std::vector<Type>& results) {
  const LazyTensor& x = tensor_of(call, "self");
  for (size_t i = 2; i < axes + 2; ++i)
    if (results[0].sizes[i] % x.sizes()[i] != 0) return {};  // scales that are no whole numbers
  return {onnx::call("Resize", {x, {}, {}, integers(results[0].sizes)},
                     {attribute("mode", "nearest"), attribute("nearest_mode", "floor"),
                      attribute("coordinate_transformation_mode", "asymmetric")},
                     results[0])};
}

}  // namespace

void add_pooling_rows(std::vector<Row>& rows) {
  rows.insert(rows.end(), {{"aten::max_pool2d_with_indices", max_pool<2>},
                           {"aten::max_pool3d_with_indices", max_pool<3>},
                           {"aten::avg_pool1d", average_pool<1>},
                           {"aten::avg_pool2d", average_pool<2>},
                           {"aten::avg_pool3d", average_pool<3>},
                           {"aten::adaptive_avg_pool2d", adaptive_average<2>},
                           {"aten::_adaptive_avg_pool2d", adaptive_average<2>},
                           {"aten::upsample_nearest1d", nearest<1>},
                           {"aten::upsample_nearest2d", nearest<2>},
                           {"aten::upsample_nearest3d", nearest<3>}});
}

}  // namespace composit::onnx
