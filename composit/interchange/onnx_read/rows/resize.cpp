// Resize and Upsample: along one axis after the other, by ATen's upsampling where that is the same,
// else by places that are looked up (nearest), or by a matrix that is made when the model is read.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "composit/interchange/onnx_read/rows.h"
#include "composit/ir/error.h"
#include "composit/ops/native.h"

namespace composit::onnx_read {
namespace {

struct Resizing {
  std::string mode, coordinates, nearest;
  double cubic = -0.75, outside_value = 0;
  bool antialias = false, exclude_outside = false;
};

// One axis.
struct Axis {
  int64_t axis = 0, size = 0, result = 0;
  double scale = 1;                   // the result's size over the operand's, before rounding
  double roi_begin = 0, roi_end = 1;  // the part of the operand, for tf_crop_and_resize
};

// Where element `place` of the result lies in the operand.
double origin_of(double place, const Axis& axis, const Resizing& how) {
  const auto size = static_cast<double>(axis.size);
  const double length = axis.scale * size;
  if (how.coordinates == "align_corners")
    return length == 1 ? 0 : place * (size - 1) / (length - 1);
  if (how.coordinates == "asymmetric") return place / axis.scale;
  if (how.coordinates == "tf_crop_and_resize") {
    const double span = (axis.roi_end - axis.roi_begin) * (size - 1);
    return (length == 1 ? span / 2 : place * span / (length - 1)) + axis.roi_begin * (size - 1);
  }
  if (how.coordinates == "pytorch_half_pixel" && length == 1) return -0.5;
  double offset = 0;
  if (how.coordinates == "half_pixel_symmetric")
    offset = size / 2 * (1 - static_cast<double>(axis.result) / length);
  return offset + (place + 0.5) / axis.scale - 0.5;
}

int64_t nearest_of(double origin, const std::string& mode) {
  if (mode == "floor") return static_cast<int64_t>(std::floor(origin));
  if (mode == "ceil") return static_cast<int64_t>(std::ceil(origin));
  if (mode == "round_prefer_floor") return static_cast<int64_t>(std::ceil(origin - 0.5));
  return static_cast<int64_t>(std::floor(origin + 0.5));
}

// The weight of an element at a distance.
double weight_of(double distance, const Resizing& how) {
  const double x = std::abs(distance), a = how.cubic;
  if (how.mode == "linear") return std::max(0.0, 1 - x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

// A row of the matrix: how much of each element of the operand there is in one of the result.
void fill_row(double* row, double origin, const Axis& axis, const Resizing& how) {
  const double reach = how.mode == "linear" ? 1 : 2;
  const double shrink = how.antialias ? std::min(axis.scale, 1.0) : 1;
  const auto first = static_cast<int64_t>(std::floor(origin - reach / shrink)) + 1;
  const auto last = static_cast<int64_t>(std::ceil(origin + reach / shrink)) - 1;
  double sum = 0;
  for (int64_t i = first; i <= last; ++i) {
    const bool outside = i < 0 || i >= axis.size;
    if (outside && how.exclude_outside) continue;
    const double weight = weight_of((static_cast<double>(i) - origin) * shrink, how);
    row[std::min(std::max<int64_t>(i, 0), axis.size - 1)] += weight;
    sum += weight;
  }
  if ((how.exclude_outside || how.antialias) && sum != 0)
    for (int64_t i = 0; i < axis.size; ++i) row[i] /= sum;
}

constexpr int64_t kMostWeights = int64_t{1} << 22;  // elements of a matrix

LazyTensor resized(const LazyTensor& x, const Axis& axis, const Resizing& how) {
  if (axis.size == 0) throw UserError("an axis of size 0 is resized");
  if (axis.result > kMostWeights / std::max<int64_t>(1, axis.size))
    throw UserError("a size is too large");
  std::vector<int64_t> places;
  std::vector<double> inside(static_cast<size_t>(axis.result), 1);
  std::vector<double> matrix;
  if (how.mode != "nearest") matrix.resize(static_cast<size_t>(axis.result * axis.size), 0);
  for (int64_t i = 0; i < axis.result; ++i) {
    const double origin = origin_of(static_cast<double>(i), axis, how);
    if (!(std::abs(origin) < 1e15)) throw UserError("a scale is out of range");
    if (how.coordinates == "tf_crop_and_resize" &&
        (origin < 0 || origin > static_cast<double>(axis.size - 1)))
      inside[static_cast<size_t>(i)] = 0;
    if (how.mode == "nearest")
      places.push_back(
          std::min(std::max<int64_t>(nearest_of(origin, how.nearest), 0), axis.size - 1));
    else
      fill_row(&matrix[static_cast<size_t>(i * axis.size)],
               std::min(std::max(origin, -3.0), static_cast<double>(axis.size) + 3), axis, how);
  }
  LazyTensor y;
  if (how.mode == "nearest") {
    y = op("aten::index_select", {x, axis.axis, integers(places)});
  } else {
    const LazyTensor weights =
        constant(array_of(tensor_type(x.dtype(), {axis.result, axis.size}), matrix));
    y = transpose(matmul(transpose(x, axis.axis, -1), transpose(weights, 0, 1)), axis.axis, -1);
  }
  if (std::count(inside.begin(), inside.end(), 0) == 0) return y;
  Ints sizes(static_cast<size_t>(x.rank()), 1);
  sizes[static_cast<size_t>(axis.axis)] = axis.result;
  const LazyTensor known =
      reshape(constant(array_of(tensor_type(DType::bool_, {axis.result}), inside)), sizes);
  return where(known, y, number_like(how.outside_value, x.dtype()));
}

// ATen's operator where it gives the same: of all axes behind batch and channels.
LazyTensor by_upsampling(const LazyTensor& x, std::vector<Axis> axes, const Resizing& how) {
  std::sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) { return a.axis < b.axis; });
  const size_t planes = x.sizes().size() - std::min<size_t>(x.sizes().size(), 2);
  if (axes.size() != planes || planes < 1 || planes > 3 || how.antialias || how.exclude_outside ||
      x.numel() == 0 || !is_floating_point(x.dtype()))
    return {};
  Ints sizes;
  bool whole = true;  // scales are whole numbers
  for (const Axis& axis : axes) {
    const bool exact =
        axis.scale * static_cast<double>(axis.size) == static_cast<double>(axis.result);
    if (axis.axis < 2 || !exact || axis.result < 1) return {};
    whole = whole && axis.result % axis.size == 0;
    sizes.push_back(axis.result);
  }
  const std::string number = std::to_string(planes) + "d";
  if (how.mode == "nearest" && how.coordinates == "asymmetric" && how.nearest == "floor" && whole)
    return op("aten::upsample_nearest" + number, {x, sizes});
  const bool corners = how.coordinates == "align_corners";
  if (!corners && how.coordinates != "half_pixel") return {};
  const char* linear[] = {"aten::upsample_linear1d", "aten::upsample_bilinear2d",
                          "aten::upsample_trilinear3d"};
  if (how.mode == "linear") return op(linear[planes - 1], {x, sizes, corners});
  if (how.mode == "cubic" && how.cubic == -0.75 && planes == 2)
    return op("aten::upsample_bicubic2d", {x, sizes, corners});
  return {};
}

LazyTensor resized(const LazyTensor& x, std::vector<Axis> axes, const Resizing& how) {
  for (const Axis& axis : axes)
    if (axis.result < 0 || !(axis.scale > 0) || !std::isfinite(axis.scale))
      throw UserError("a scale or a size is out of range");
  std::erase_if(axes, [&](const Axis& axis) {
    return axis.scale == 1 && axis.result == axis.size && how.coordinates != "tf_crop_and_resize";
  });
  if (axes.empty()) return x;
  if (LazyTensor y = by_upsampling(x, axes, how)) return y;
  const bool real = is_floating_point(x.dtype());
  LazyTensor y = real || how.mode == "nearest" ? x : cast(x, DType::float32);
  for (const Axis& axis : axes) y = resized(y, axis, how);
  if (y.dtype() == x.dtype()) return y;
  throw UserError("integers are resized by their nearest only");
}

// Scales: the result's sizes are rounded down.
void take_scales(std::vector<Axis>& axes, const std::vector<double>& scales) {
  if (scales.size() != axes.size()) throw UserError("expected a scale per axis");
  for (size_t i = 0; i < axes.size(); ++i) {
    axes[i].scale = static_cast<float>(scales[i]);
    const double size = std::floor(axes[i].scale * static_cast<double>(axes[i].size));
    if (!(size >= 0 && size < 1e15)) throw UserError("a scale is out of range");
    axes[i].result = static_cast<int64_t>(size);
  }
}

void take_sizes(std::vector<Axis>& axes, const Ints& sizes, const std::string& policy) {
  if (sizes.size() != axes.size()) throw UserError("expected a size per axis");
  std::vector<double> scales;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (sizes[i] < 0 || axes[i].size == 0) throw UserError("a size is out of range");
    scales.push_back(static_cast<double>(sizes[i]) / static_cast<double>(axes[i].size));
  }
  const bool stretch = policy == "stretch" || scales.empty();
  double common = 1;
  if (!stretch)
    common = policy == "not_larger" ? *std::min_element(scales.begin(), scales.end())
                                    : *std::max_element(scales.begin(), scales.end());
  for (size_t i = 0; i < axes.size(); ++i) {
    axes[i].scale = stretch ? scales[i] : common;
    axes[i].result =
        stretch ? sizes[i] : static_cast<int64_t>(common * static_cast<double>(axes[i].size) + 0.5);
  }
}

std::vector<Axis> axes_of(const OperatorCall& call, const LazyTensor& x) {
  Ints named = call.ints("axes");
  if (!call.has("axes")) {
    named.resize(static_cast<size_t>(x.rank()));
    std::iota(named.begin(), named.end(), 0);
  }
  std::vector<Axis> axes;
  for (const int64_t axis : named) {
    const int64_t own = axis_of_rank(axis, x.rank());
    axes.push_back({.axis = own, .size = x.size(own), .result = x.size(own)});
  }
  return axes;
}

// Resize of version 10 has scales, and the coordinates of Upsample.
LazyTensors resize_of_10(const OperatorCall& call) {
  const LazyTensor& x = call.operand(0);
  Resizing how{call.text("mode", "nearest"), "asymmetric", "floor"};
  expect_one_of("mode", how.mode, {"nearest", "linear"});
  std::vector<Axis> axes = axes_of(call, x);
  if (call.node().op_type == "Upsample" && call.version() < 9)
    take_scales(axes, call.reals("scales"));
  else
    take_scales(axes, call.known_reals(1));
  for (const Axis& axis : axes)
    if (how.mode == "nearest" && axis.scale < 1)
      call.refuse("version 10 does not say which element is the nearest of a smaller result");
  return {resized(x, axes, how)};
}

LazyTensors resize(const OperatorCall& call) {
  if (call.version() < 11) return resize_of_10(call);
  call.pass_over({}, 4);  // of scales and sizes one is there; roi is for one kind of coordinates
  const LazyTensor& x = call.operand(0);
  Resizing how{call.text("mode", "nearest"),
               call.text("coordinate_transformation_mode", "half_pixel"),
               call.text("nearest_mode", "round_prefer_floor"),
               call.real("cubic_coeff_a", -0.75),
               call.real("extrapolation_value", 0),
               call.flag("antialias"),
               call.flag("exclude_outside")};
  expect_one_of("mode", how.mode, {"nearest", "linear", "cubic"});
  expect_one_of("coordinate_transformation_mode", how.coordinates,
                {"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric",
                 "tf_crop_and_resize", "half_pixel_symmetric"});
  expect_one_of("nearest_mode", how.nearest,
                {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"});
  std::vector<Axis> axes = axes_of(call, x);
  const std::string policy = call.text("keep_aspect_ratio_policy", "stretch");
  expect_one_of("keep_aspect_ratio_policy", policy, {"stretch", "not_larger", "not_smaller"});
  const bool by_size = call.optional(3) && call.operand(3).numel() > 0;
  if (by_size)
    take_sizes(axes, call.known_ints(3), policy);
  else
    take_scales(axes, call.known_reals(2));
  if (how.coordinates == "tf_crop_and_resize") {
    const std::vector<double> roi = call.known_reals(1);
    if (roi.size() != 2 * axes.size()) call.refuse("roi: expected two numbers per axis");
    for (size_t i = 0; i < axes.size(); ++i) {
      axes[i].roi_begin = roi[i];
      axes[i].roi_end = roi[axes.size() + i];
    }
    std::erase_if(axes, [](const Axis& axis) {
      return axis.scale == 1 && axis.roi_begin == 0 && axis.roi_end == 1;
    });
  }
  return {resized(x, axes, how)};
}

}  // namespace

void add_resize_rows(std::vector<Row>& rows) {
  rows.insert(rows.end(), {{"Resize", resize}, {"Upsample", resize_of_10}});
}

}  // namespace composit::onnx_read
