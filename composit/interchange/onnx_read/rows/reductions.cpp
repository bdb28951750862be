#include <algorithm>
#include <cmath>
#include <numeric>

#include "composit/interchange/onnx_read/rows.h"
#include "composit/ir/error.h"

namespace composit::onnx_read {
namespace {

struct Reduction {
  Ints axes;  // none: the operand is left as it is
  bool keep = true;
};

// Axes are an attribute first, an operand later; none are all of them, or by a flag none.
Reduction reduction_of(const OperatorCall& call, const LazyTensor& x) {
  Reduction reduction{call.ints_of(1, "axes").value_or(Ints()), call.flag("keepdims", true)};
  for (int64_t& axis : reduction.axes) axis = axis_of_rank(axis, x.rank());
  std::sort(reduction.axes.begin(), reduction.axes.end());
  const auto end = std::unique(reduction.axes.begin(), reduction.axes.end());
  reduction.axes.erase(end, reduction.axes.end());
  const bool may_be_none = call.flag("noop_with_empty_axes");
  if (reduction.axes.empty() && !may_be_none) {
    reduction.axes.resize(static_cast<size_t>(x.rank()));
    std::iota(reduction.axes.begin(), reduction.axes.end(), 0);
  }
  return reduction;
}

// Sums keep the dtype, unlike torch's of integers.
LazyTensor summed(const LazyTensor& x, const Reduction& reduction) {
  if (reduction.axes.empty()) return x;
  return op("aten::sum.dim_IntList", {x, reduction.axes, reduction.keep, x.dtype()});
}

LazyTensors reduce_sum(const OperatorCall& call) {
  const LazyTensor& x = call.operand(0);
  return {summed(x, reduction_of(call, x))};
}

LazyTensors reduce_mean(const OperatorCall& call) {
  const LazyTensor& x = call.operand(0);
  const Reduction reduction = reduction_of(call, x);
  if (reduction.axes.empty()) return {x};
  if (is_floating_point(x.dtype())) return {mean(x, reduction.axes, reduction.keep)};
  return {cast(mean(cast(x, DType::float64), reduction.axes, reduction.keep), x.dtype())};
}

// Of bools, as of integers. The largest of nothing is the least number there is.
template <bool largest>
LazyTensors reduce_extremum(const OperatorCall& call) {
  const LazyTensor& x = call.operand(0);
  const Reduction reduction = reduction_of(call, x);
  if (reduction.axes.empty()) return {x};
  if (x.dtype() == DType::bool_)
    return {op(largest ? "aten::any.dims" : "aten::all.dims", {x, reduction.axes, reduction.keep})};
  if (x.numel() == 0 && is_floating_point(x.dtype())) {
    const LazyTensor zero = summed(x, reduction);
    return {full(zero.sizes(), largest ? -INFINITY : INFINITY, x.dtype())};
  }
  return {op(largest ? "aten::amax" : "aten::amin", {x, reduction.axes, reduction.keep})};
}

LazyTensors reduce_prod(const OperatorCall& call) {
  LazyTensor x = call.operand(0);
  const Reduction reduction = reduction_of(call, x);
  const DType dtype = x.dtype();
  for (size_t i = reduction.axes.size(); i-- > 0;)
    x = op("aten::prod.dim_int", {x, reduction.axes[i], reduction.keep, dtype});
  return {x};
}

LazyTensors reduce_l1(const OperatorCall& call) {
  const LazyTensor& x = call.operand(0);
  return {summed(abs(x), reduction_of(call, x))};
}

LazyTensors reduce_sum_square(const OperatorCall& call) {
  const LazyTensor& x = call.operand(0);
  return {summed(x * x, reduction_of(call, x))};
}

LazyTensors reduce_l2(const OperatorCall& call) {
  const LazyTensor& x = call.operand(0);
  const LazyTensor wide = is_floating_point(x.dtype()) ? x : cast(x, DType::float64);
  return {cast(sqrt(summed(wide * wide, reduction_of(call, x))), x.dtype())};
}

LazyTensors reduce_log_sum(const OperatorCall& call) {
  const LazyTensor& x = call.operand(0);
  const LazyTensor wide = is_floating_point(x.dtype()) ? x : cast(x, DType::float64);
  return {cast(log(summed(wide, reduction_of(call, x))), x.dtype())};
}

LazyTensors reduce_log_sum_exp(const OperatorCall& call) {
  const LazyTensor& x = call.operand(0);
  const Reduction reduction = reduction_of(call, x);
  if (reduction.axes.empty()) return {x};
  const LazyTensor wide = is_floating_point(x.dtype()) ? x : cast(x, DType::float64);
  if (x.numel() == 0) return {cast(log(summed(wide, reduction)), x.dtype())};
  return {cast(op("aten::logsumexp", {wide, reduction.axes, reduction.keep}), x.dtype())};
}

// The first of equal elements, or the last.
template <const char* name>
LazyTensors arg(const OperatorCall& call) {
  const LazyTensor& x = call.operand(0);
  const int64_t axis = call.axis("axis", 0, x);
  const bool keep = call.flag("keepdims", true);
  if (!call.flag("select_last_index")) return {op(name, {x, axis, keep})};
  const LazyTensor place = op(name, {flip(x, {axis}), axis, keep});
  return {Number(x.size(axis) - 1) - place};
}

constexpr char kArgMax[] = "aten::argmax", kArgMin[] = "aten::argmin";

LazyTensors top_k(const OperatorCall& call) {
  const LazyTensor& x = call.operand(0);
  const int64_t axis = call.axis("axis", -1, x);
  call.pass_over({"sorted"});  // what is sorted is in an order that any order allows
  int64_t count = 0;
  if (call.version() < 10) {
    count = call.integer("k");
  } else {
    const Ints given = call.known_ints(1);
    if (given.size() != 1) call.refuse("expected one number of elements");
    count = given[0];
  }
  if (count < 0 || count > x.size(axis)) call.refuse("there are not so many elements");
  // The first of equal elements comes first, which torch's topk leaves open.
  const LazyTensors sorted =
      apply("aten::sort.stable", {x, true, axis, call.flag("largest", true)});
  return {slice(sorted[0], axis, 0, count), slice(sorted[1], axis, 0, count)};
}

// Forwards or backwards, each element itself left out or not.
template <const char* name>
LazyTensors cumulative(const OperatorCall& call) {
  LazyTensor x = call.operand(0);
  const Ints given = call.known_ints(1);
  if (given.size() != 1) call.refuse("expected one axis");
  const int64_t axis = axis_of_rank(given[0], x.rank()), size = x.size(axis);
  const bool backwards = call.flag("reverse");
  if (backwards) x = flip(x, {axis});
  LazyTensor result = op(name, {x, axis, x.dtype()});
  if (call.flag("exclusive") && size > 0) {
    const bool is_sum = std::string_view(name) == "aten::cumsum";
    Dims sizes = x.sizes();
    sizes[static_cast<size_t>(axis)] = 1;
    result = cat({full(sizes, is_sum ? 0 : 1, x.dtype()), slice(result, axis, 0, size - 1)}, axis);
  }
  return {backwards ? flip(result, {axis}) : result};
}

constexpr char kCumSum[] = "aten::cumsum", kCumProd[] = "aten::cumprod";

}  // namespace

void add_reduction_rows(std::vector<Row>& rows) {
  rows.insert(rows.end(), {{"ArgMax", arg<kArgMax>},
                           {"ArgMin", arg<kArgMin>},
                           {"CumProd", cumulative<kCumProd>},
                           {"CumSum", cumulative<kCumSum>},
                           {"ReduceL1", reduce_l1},
                           {"ReduceL2", reduce_l2},
                           {"ReduceLogSum", reduce_log_sum},
                           {"ReduceLogSumExp", reduce_log_sum_exp},
                           {"ReduceMax", reduce_extremum<true>},
                           {"ReduceMean", reduce_mean},
                           {"ReduceMin", reduce_extremum<false>},
                           {"ReduceProd", reduce_prod},
                           {"ReduceSum", reduce_sum},
                           {"ReduceSumSquare", reduce_sum_square},
                           {"TopK", top_k}});
}

}  // namespace composit::onnx_read
