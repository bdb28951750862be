#include "composit/interchange/onnx/rows.h"

namespace composit::onnx {
namespace {

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

// Of bools, as integers.
template <const char* op>
LazyTensors of_truth(const Call& call, const std::vector<Type>& results) {
  const LazyTensor& x = tensor_of(call, "self");
  const LazyTensor truth = cast_to(cast_to(x, DType::bool_), DType::int32);
  const LazyTensor value = reduced(op, truth, axes_of(call, "dim", x), bool_of(call, "keepdim"));
  return {cast_to(value, results[0].dtype)};
}

LazyTensors prod(const Call& call, const std::vector<Type>& results) {
  const LazyTensor& x = tensor_of(call, "self");
  if (x.rank() == 0) return {};
  const DType dtype = results[0].dtype;
  return {cast_to(
      reduced("ReduceProd", widened(x, dtype), {axis_of(call, "dim", x)}, bool_of(call, "keepdim")),
      dtype)};
}

LazyTensor arg(const char* op, const LazyTensor& x, int64_t axis, bool keep, const Type& result) {
  return onnx::call(op, {x}, {attribute("axis", axis), attribute("keepdims", keep ? 1 : 0)},
                    result);
}

template <const char* op, const char* place>
LazyTensors with_places(const Call& call, const std::vector<Type>& results) {
  const LazyTensor& x = tensor_of(call, "self");
  if (x.rank() == 0 || x.dtype() == DType::bool_) return {};
  const int64_t axis = axis_of(call, "dim", x);
  const bool keep = bool_of(call, "keepdim");
  return {reduced(op, x, {axis}, keep), arg(place, x, axis, keep, results[1])};
}

template <const char* place>
LazyTensors places(const Call& call, const std::vector<Type>& results) {
  const LazyTensor& x = tensor_of(call, "self");
  if (x.rank() == 0 || x.dtype() == DType::bool_) return {};
  const bool keep = bool_of(call, "keepdim");
  if (!call["dim"].is_none()) return {arg(place, x, axis_of(call, "dim", x), keep, results[0])};
  if (keep) return {};
  return {arg(place, reshaped(x, {x.numel()}), 0, false, results[0])};
}

LazyTensors cumsum(const Call& call, const std::vector<Type>& results) {
  const LazyTensor& x = tensor_of(call, "self");
  if (x.rank() == 0) return {};
  const DType dtype = results[0].dtype;
  const LazyTensor axis = number(static_cast<double>(axis_of(call, "dim", x)), DType::int64);
  const LazyTensor wide = widened(x, dtype);
  return {
      cast_to(onnx::call("CumSum", {wide, axis}, {}, tensor_type(wide.dtype(), x.sizes())), dtype)};
}

LazyTensors topk(const Call& call, const std::vector<Type>& results) {
  const LazyTensor& x = tensor_of(call, "self");
  if (x.rank() == 0) return {};
  return calls("TopK", {x, integers({int_of(call, "k")})},
               {attribute("axis", axis_of(call, "dim", x)),
                attribute("largest", bool_of(call, "largest") ? 1 : 0), attribute("sorted", 1)},
               results);
}

// Of equal elements ONNX gives the first one first, as a stable sort does.
LazyTensors sort(const Call& call, const std::vector<Type>& results) {
  const LazyTensor& x = tensor_of(call, "self");
  if (x.rank() == 0 || x.dtype() == DType::bool_) return {};
  const int64_t axis = axis_of(call, "dim", x);
  return calls("TopK", {x, integers({x.size(axis)})},
               {attribute("axis", axis),
                attribute("largest", bool_of(call, "descending") ? 1 : 0), attribute("sorted", 1)},
               results);
}

constexpr char kSum[] = "ReduceSum", kMean[] = "ReduceMean", kMax[] = "ReduceMax",
               kMin[] = "ReduceMin", kArgMax[] = "ArgMax", kArgMin[] = "ArgMin";

}  // namespace

void add_reduction_rows(std::vector<Row>& rows) {
  rows.insert(rows.end(), {{"aten::sum.dim_IntList", over_axes<kSum>},
                           {"aten::mean.dim", over_axes<kMean>},
                           {"aten::amax", over_axes<kMax>},
                           {"aten::amin", over_axes<kMin>},
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
