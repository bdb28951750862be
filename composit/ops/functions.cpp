#include "composit/ops/functions.h"

#include "composit/ir/error.h"
#include "composit/op/promotion.h"

namespace composit {

LazyTensor apply_one(std::string_view name, std::vector<ArgumentValue> arguments) {
  LazyTensors results = apply(name, std::move(arguments));
  COMPOSIT_ASSERT(results.size() == 1, std::string(name) + " has several results");
  return results[0];
}

#define COMPOSIT_DEFINE(name, op)                                                               \
  LazyTensor name(const LazyTensor& a, const LazyTensor& b) { return apply_one(op, {a, b}); }   \
  LazyTensor name(const LazyTensor& a, const Number& b) { return apply_one(op, {a, b.value}); } \
  LazyTensor name(const Number& a, const LazyTensor& b) { return apply_one(op, {a.value, b}); }
COMPOSIT_BINARY_FUNCTIONS(COMPOSIT_DEFINE)
#undef COMPOSIT_DEFINE
#define COMPOSIT_DEFINE(name, op) \
  LazyTensor name(const LazyTensor& x) { return apply_one(op, {x}); }
COMPOSIT_UNARY_FUNCTIONS(COMPOSIT_DEFINE)
#undef COMPOSIT_DEFINE

LazyTensor where(const LazyTensor& condition, const LazyTensor& x, const LazyTensor& y) {
  return apply_one("aten::where.self", {condition, x, y});
}
LazyTensor where(const LazyTensor& condition, const LazyTensor& x, const Number& y) {
  return apply_one("aten::where.self", {condition, x, y.value});
}
LazyTensor where(const LazyTensor& condition, const Number& x, const LazyTensor& y) {
  return apply_one("aten::where.self", {condition, x.value, y});
}
LazyTensor pow(const LazyTensor& x, double exponent) {
  return apply_one("aten::pow.Tensor_Scalar", {x, exponent});
}
LazyTensor to(const LazyTensor& x, DType dtype) {
  return x.dtype() == dtype ? x : apply_one("aten::to.dtype", {x, dtype});
}
LazyTensor conj(const LazyTensor& x) {
  return is_complex(x.dtype()) ? apply_one("aten::conj_physical", {x}) : x;
}
DType opmath_dtype(DType dtype) { return is_half(dtype) ? DType::float32 : dtype; }
LazyTensor widened(const LazyTensor& x) { return to(x, opmath_dtype(x.dtype())); }
LazyTensor narrowed(const LazyTensor& x, DType dtype) { return is_half(dtype) ? to(x, dtype) : x; }

LazyTensor sum(const LazyTensor& x, const Ints& axes, bool keepdim) {
  return apply_one("aten::sum.dim_IntList", {x, axes, keepdim});
}
LazyTensor mean(const LazyTensor& x, const Ints& axes, bool keepdim) {
  return apply_one("aten::mean.dim", {x, axes, keepdim});
}
LazyTensor amax(const LazyTensor& x, const Ints& axes, bool keepdim) {
  return apply_one("aten::amax", {x, axes, keepdim});
}
LazyTensor cumsum(const LazyTensor& x, int64_t axis) {
  return apply_one("aten::cumsum", {x, axis});
}
LazyTensor softmax(const LazyTensor& x, int64_t axis) {
  return apply_one("aten::_softmax", {x, axis, false});
}

LazyTensor matmul(const LazyTensor& a, const LazyTensor& b) {
  return apply_one("aten::matmul", {a, b});
}
LazyTensor mm(const LazyTensor& a, const LazyTensor& b) { return apply_one("aten::mm", {a, b}); }
LazyTensor bmm(const LazyTensor& a, const LazyTensor& b) { return apply_one("aten::bmm", {a, b}); }

LazyTensor reshape(const LazyTensor& x, const Ints& sizes) {
  return x.sizes() == sizes ? x : apply_one("aten::reshape", {x, sizes});
}
LazyTensor expand(const LazyTensor& x, const Ints& sizes) {
  return x.sizes() == sizes ? x : apply_one("aten::expand", {x, sizes});
}
LazyTensor permute(const LazyTensor& x, const Ints& axes) {
  return apply_one("aten::permute", {x, axes});
}
LazyTensor transpose(const LazyTensor& x, int64_t a, int64_t b) {
  return apply_one("aten::transpose.int", {x, a, b});
}
LazyTensor unsqueeze(const LazyTensor& x, int64_t axis) {
  return apply_one("aten::unsqueeze", {x, axis});
}
LazyTensor squeeze(const LazyTensor& x, const Ints& axes) {
  return apply_one("aten::squeeze.dims", {x, axes});
}
LazyTensor slice(const LazyTensor& x, int64_t axis, int64_t begin, int64_t end, int64_t step) {
  return apply_one("aten::slice.Tensor", {x, axis, begin, end, step});
}
LazyTensor select_at(const LazyTensor& x, int64_t axis, int64_t index) {
  return apply_one("aten::select.int", {x, axis, index});
}
LazyTensor cat(const LazyTensors& parts, int64_t axis) {
  return apply_one("aten::cat", {parts, axis});
}
LazyTensor flip(const LazyTensor& x, const Ints& axes) {
  return apply_one("aten::flip", {x, axes});
}
LazyTensor tril(const LazyTensor& x, int64_t diagonal) {
  return apply_one("aten::tril", {x, diagonal});
}

void expect_floating(DType dtype) {
  if (category(dtype) < DTypeCategory::floating)
    throw UserError("expected a floating point dtype, received " + std::string(name(dtype)));
}

LazyTensor full(const Ints& sizes, const Number& value, DType dtype) {
  return apply_one("aten::full", {sizes, value.value, dtype});
}
LazyTensor zeros(const Ints& sizes, DType dtype) { return full(sizes, 0, dtype); }
LazyTensor zeros_like(const LazyTensor& x) { return full(x.sizes(), 0, x.dtype()); }
LazyTensor ones_like(const LazyTensor& x) { return full(x.sizes(), 1, x.dtype()); }
LazyTensor arange(int64_t end, DType dtype) { return apply_one("aten::arange", {end, dtype}); }

LazyTensor reduced(const LazyTensor& loss, int64_t reduction) {
  if (reduction < 0 || reduction > 2)
    throw UserError("expected reduction 0 (none), 1 (mean) or 2 (sum), received " +
                    std::to_string(reduction));
  if (reduction == 0) return loss;
  return reduction == 1 ? mean(loss) : sum(loss);
}
LazyTensor spread(const LazyTensor& cotangent, const LazyTensor& loss, int64_t reduction) {
  return reduction == 1 ? cotangent / static_cast<double>(loss.numel()) : cotangent;
}

LazyTensor sum_to_size(const LazyTensor& x, const Ints& sizes) {
  const int64_t extra = x.rank() - static_cast<int64_t>(sizes.size());
  Ints axes;
  for (int64_t axis = 0; axis < x.rank(); ++axis)
    if (axis < extra || (sizes[static_cast<size_t>(axis - extra)] == 1 && x.size(axis) != 1))
      axes.push_back(axis);
  return axes.empty() ? reshape(x, sizes) : reshape(sum(x, axes, true), sizes);
}

}  // namespace composit
