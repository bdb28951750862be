#include <limits>

#include "composit/interchange/onnx/rows.h"

namespace composit::onnx {
namespace {

constexpr char kSum[] = "ReduceSum", kMean[] = "ReduceMean", kMax[] = "ReduceMax",
               kMin[] = "ReduceMin", kArgMax[] = "ArgMax", kArgMin[] = "ArgMin";

// Sums of bools and small integers are made in int64, as torch makes them.
LazyTensor widened(const LazyTensor& x, DType result) {
  const bool plain = is_floating_point(result) || result == DType::int32 || result == DType::int64;
  return cast_to(x, plain ? result : DType::int64);
}

template <const char* op>
LazyTensors over_axes(const Call& call, const std::vector<Type>& results) {
  const LazyTensor& x = tensor_of(call, "self");
  const DType dtype = results[0].dtype;
  const LazyTensor value =
      reduced(op, widened(x, dtype), axes_of(call, "dim", x), bool_of(call, "keepdim"));
  return {cast_to(value, dtype)};
}

// The largest or the least of numbers, which is no number where one of them is none. Runtimes lose
// that along some axes.
LazyTensor extremum(std::string_view op, const LazyTensor& x, const std::vector<int64_t>& axes,
                    bool keep) {
  const LazyTensor wide = widened(x, x.dtype());
  const LazyTensor value = cast_to(reduced(op, wide, axes, keep), x.dtype());
  if (!is_floating_point(x.dtype())) return value;
  const LazyTensor nan = onnx::call("IsNaN", {x}, {}, tensor_type(DType::bool_, x.sizes()));
  const LazyTensor any = reduced(kMax, cast_to(nan, DType::int32), axes, keep);
  const double none = std::numeric_limits<double>::quiet_NaN();
  return where(cast_to(any, DType::bool_), number(none, x.dtype()), value);
}

template <const char* op>
LazyTensors extrema(const Call& call, const std::vector<Type>&) {
  const LazyTensor& x = tensor_of(call, "self");
  return {extremum(op, x, axes_of(call, "dim", x), bool_of(call, "keepdim"))};
}

// Of bools, as integers.
template <const char* op>
LazyTensors of_truth(const Call& call, const std::vector<Type>& results) {
  const LazyTensor& x = tensor_of(call, "self");
  const LazyTensor truth = cast_to(cast_to(x, DType::bool_), DType::int32);
  const LazyTensor value = reduced(op, truth, axes_of(call, "dim", x), bool_of(call, "keepdim"));
  // Of nothing, the least and the largest integer.
  const LazyTensor is = onnx::call("Greater", {value, number(0, DType::int32)}, {},
                                   tensor_type(DType::bool_, value.sizes()));
  return {cast_to(is, results[0].dtype)};
}

LazyTensors prod(const Call& call, const std::vector<Type>& results) {
  const LazyTensor& x = tensor_of(call, "self");
  if (x.rank() == 0) return {};
  const DType dtype = results[0].dtype;
  return {cast_to(
      reduced("ReduceProd", widened(x, dtype), {axis_of(call, "dim", x)}, bool_of(call, "keepdim")),
      dtype)};
}

// A mean of nothing is no number; runtimes give 0.
LazyTensors mean(const Call& call, const std::vector<Type>& results) {
  return tensor_of(call, "self").numel() == 0 ? LazyTensors() : over_axes<kMean>(call, results);
}

// Of bools as of integers.
LazyTensor ordered(const LazyTensor& x) {
  return x.dtype() == DType::bool_ ? cast_to(x, DType::int32) : x;
}

// What is not a number comes first among the largest and among the least, as torch has it; runtimes
// pass over it.
LazyTensor key(const LazyTensor& x, double of_nan) {
  if (!is_floating_point(x.dtype())) return ordered(x);
  const LazyTensor nan = onnx::call("IsNaN", {x}, {}, tensor_type(DType::bool_, x.sizes()));
  return where(nan, number(of_nan, x.dtype()), x);
}

LazyTensor arg(std::string_view op, const LazyTensor& x, int64_t axis, bool keep,
               const Type& result) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return onnx::call(op, {key(x, op == kArgMax ? kInfinity : -kInfinity)},
                    {attribute("axis", axis), attribute("keepdims", keep ? 1 : 0)}, result);
}

template <const char* op, const char* place>
LazyTensors with_places(const Call& call, const std::vector<Type>& results) {
  const LazyTensor& x = tensor_of(call, "self");
  if (x.rank() == 0) return {x, filled(0, DType::int64, {})};
  const int64_t axis = axis_of(call, "dim", x);
  const bool keep = bool_of(call, "keepdim");
  return {extremum(op, x, {axis}, keep), arg(place, x, axis, keep, results[1])};
}

template <const char* place>
LazyTensors places(const Call& call, const std::vector<Type>& results) {
  const LazyTensor& x = tensor_of(call, "self");
  if (x.rank() == 0) return {filled(0, DType::int64, {})};
  const bool keep = bool_of(call, "keepdim");
  if (!call["dim"].is_none()) return {arg(place, x, axis_of(call, "dim", x), keep, results[0])};
  const LazyTensor found =
      arg(place, reshaped(x, {x.numel()}), 0, false, tensor_type(DType::int64, {}));
  return {reshaped(found, results[0].sizes)};
}

LazyTensors cumsum(const Call& call, const std::vector<Type>& results) {
  const LazyTensor& x = tensor_of(call, "self");
  const DType dtype = results[0].dtype;
  if (x.rank() == 0) return {cast_to(x, dtype)};
  const LazyTensor axis = number(static_cast<double>(axis_of(call, "dim", x)), DType::int64);
  const LazyTensor wide = widened(x, dtype);
  return {
      cast_to(onnx::call("CumSum", {wide, axis}, {}, tensor_type(wide.dtype(), x.sizes())), dtype)};
}

// The first `count` in order, with their places.
LazyTensors in_order(const LazyTensor& x, int64_t axis, int64_t count, bool largest,
                     const std::vector<Type>& results) {
  // Numbers that are none are the largest.
  const LazyTensor given = key(x, std::numeric_limits<double>::infinity());
  const LazyTensors found = calls(
      "TopK", {given, integers({count})},
      {attribute("axis", axis), attribute("largest", largest ? 1 : 0), attribute("sorted", 1)},
      {tensor_type(given.dtype(), results[0].sizes), results[1]});
  if (!is_floating_point(x.dtype())) return {cast_to(found[0], x.dtype()), found[1]};
  return {onnx::call("GatherElements", {x, found[1]}, {attribute("axis", axis)},
                     tensor_type(x.dtype(), results[0].sizes)),
          found[1]};
}

LazyTensors topk(const Call& call, const std::vector<Type>& results) {
  const LazyTensor& x = tensor_of(call, "self");
  if (x.rank() == 0) return {x, filled(0, DType::int64, {})};
  return in_order(x, axis_of(call, "dim", x), int_of(call, "k"), bool_of(call, "largest"), results);
}

// Of equal elements ONNX gives the first one first, as a stable sort does.
LazyTensors sort(const Call& call, const std::vector<Type>& results) {
  const LazyTensor& x = tensor_of(call, "self");
  if (x.rank() == 0) return {x, filled(0, DType::int64, {})};
  const int64_t axis = axis_of(call, "dim", x);
  return in_order(x, axis, x.size(axis), bool_of(call, "descending"), results);
}

}  // namespace

void add_reduction_rows(std::vector<Row>& rows) {
  rows.insert(rows.end(), {{"aten::sum.dim_IntList", over_axes<kSum>},
                           {"aten::mean.dim", mean},
                           {"aten::amax", extrema<kMax>},
                           {"aten::amin", extrema<kMin>},
                           {"aten::all.dims", of_truth<kMin>},
                           {"aten::any.dims", of_truth<kMax>},
                           {"aten::prod.dim_int", prod},
                           {"aten::max.dim", with_places<kMax, kArgMax>},
                           {"aten::min.dim", with_places<kMin, kArgMin>},
                           {"aten::argmax", places<kArgMax>},
                           {"aten::argmin", places<kArgMin>},
                           {"aten::cumsum", cumsum},
                           {"aten::sort", sort},
                           {"aten::sort.stable", sort},
                           {"aten::topk", topk}});
}

}  // namespace composit::onnx
