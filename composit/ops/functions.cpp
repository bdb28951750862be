#include "composit/ops/functions.h"

#include "composit/ir/error.h"
#include "composit/op/promotion.h"

namespace composit {

Tensor apply_one(std::string_view name, std::vector<ArgumentValue> arguments) {
  Tensors results = apply(name, std::move(arguments));
  COMPOSIT_ASSERT(results.size() == 1, std::string(name) + " has several results");
  return results[0];
}

#define COMPOSIT_DEFINE(name, op)                                                       \
  Tensor name(const Tensor& a, const Tensor& b) { return apply_one(op, {a, b}); }       \
  Tensor name(const Tensor& a, const Number& b) { return apply_one(op, {a, b.value}); } \
  Tensor name(const Number& a, const Tensor& b) { return apply_one(op, {a.value, b}); }
COMPOSIT_BINARY_FUNCTIONS(COMPOSIT_DEFINE)
#undef COMPOSIT_DEFINE
#define COMPOSIT_DEFINE(name, op) \
  Tensor name(const Tensor& x) { return apply_one(op, {x}); }
COMPOSIT_UNARY_FUNCTIONS(COMPOSIT_DEFINE)
#undef COMPOSIT_DEFINE

Tensor where(const Tensor& condition, const Tensor& x, const Tensor& y) {
  return apply_one("aten::where.self", {condition, x, y});
}
Tensor where(const Tensor& condition, const Tensor& x, const Number& y) {
  return apply_one("aten::where.self", {condition, x, y.value});
}
Tensor where(const Tensor& condition, const Number& x, const Tensor& y) {
  return apply_one("aten::where.self", {condition, x.value, y});
}
Tensor pow(const Tensor& x, double exponent) {
  return apply_one("aten::pow.Tensor_Scalar", {x, exponent});
}
Tensor to(const Tensor& x, DType dtype) {
  return x.dtype() == dtype ? x : apply_one("aten::to.dtype", {x, dtype});
}
Tensor conj(const Tensor& x) {
  return is_complex(x.dtype()) ? apply_one("aten::conj_physical", {x}) : x;
}

Tensor sum(const Tensor& x, const Ints& axes, bool keepdim) {
  return apply_one("aten::sum.dim_IntList", {x, axes, keepdim});
}
Tensor mean(const Tensor& x, const Ints& axes, bool keepdim) {
  return apply_one("aten::mean.dim", {x, axes, keepdim});
}
Tensor amax(const Tensor& x, const Ints& axes, bool keepdim) {
  return apply_one("aten::amax", {x, axes, keepdim});
}
Tensor cumsum(const Tensor& x, int64_t axis) { return apply_one("aten::cumsum", {x, axis}); }
Tensor softmax(const Tensor& x, int64_t axis) {
  return apply_one("aten::_softmax", {x, axis, false});
}

Tensor matmul(const Tensor& a, const Tensor& b) { return apply_one("aten::matmul", {a, b}); }
Tensor mm(const Tensor& a, const Tensor& b) { return apply_one("aten::mm", {a, b}); }
Tensor bmm(const Tensor& a, const Tensor& b) { return apply_one("aten::bmm", {a, b}); }

Tensor reshape(const Tensor& x, const Ints& sizes) {
  return x.sizes() == sizes ? x : apply_one("aten::reshape", {x, sizes});
}
Tensor expand(const Tensor& x, const Ints& sizes) {
  return x.sizes() == sizes ? x : apply_one("aten::expand", {x, sizes});
}
Tensor permute(const Tensor& x, const Ints& axes) { return apply_one("aten::permute", {x, axes}); }
Tensor transpose(const Tensor& x, int64_t a, int64_t b) {
  return apply_one("aten::transpose.int", {x, a, b});
}
Tensor unsqueeze(const Tensor& x, int64_t axis) { return apply_one("aten::unsqueeze", {x, axis}); }
Tensor squeeze(const Tensor& x, const Ints& axes) {
  return apply_one("aten::squeeze.dims", {x, axes});
}
Tensor slice(const Tensor& x, int64_t axis, int64_t begin, int64_t end, int64_t step) {
  return apply_one("aten::slice.Tensor", {x, axis, begin, end, step});
}
Tensor select_at(const Tensor& x, int64_t axis, int64_t index) {
  return apply_one("aten::select.int", {x, axis, index});
}
Tensor cat(const Tensors& parts, int64_t axis) { return apply_one("aten::cat", {parts, axis}); }
Tensor flip(const Tensor& x, const Ints& axes) { return apply_one("aten::flip", {x, axes}); }
Tensor tril(const Tensor& x, int64_t diagonal) { return apply_one("aten::tril", {x, diagonal}); }

void expect_floating(DType dtype) {
  if (category(dtype) < DTypeCategory::floating)
    throw UserError("expected a floating point dtype, received " + std::string(name(dtype)));
}

Tensor full(const Ints& sizes, const Number& value, DType dtype) {
  return apply_one("aten::full", {sizes, value.value, dtype});
}
Tensor zeros(const Ints& sizes, DType dtype) { return full(sizes, 0, dtype); }
Tensor zeros_like(const Tensor& x) { return full(x.sizes(), 0, x.dtype()); }
Tensor ones_like(const Tensor& x) { return full(x.sizes(), 1, x.dtype()); }
Tensor arange(int64_t end, DType dtype) { return apply_one("aten::arange", {end, dtype}); }

Tensor reduced(const Tensor& loss, int64_t reduction) {
  if (reduction < 0 || reduction > 2)
    throw UserError("expected reduction 0 (none), 1 (mean) or 2 (sum), received " +
                    std::to_string(reduction));
  if (reduction == 0) return loss;
  return reduction == 1 ? mean(loss) : sum(loss);
}
Tensor spread(const Tensor& cotangent, const Tensor& loss, int64_t reduction) {
  return reduction == 1 ? cotangent / static_cast<double>(loss.numel()) : cotangent;
}

Tensor sum_to_size(const Tensor& x, const Ints& sizes) {
  const int64_t extra = x.rank() - static_cast<int64_t>(sizes.size());
  Ints axes;
  for (int64_t axis = 0; axis < x.rank(); ++axis)
    if (axis < extra || (sizes[static_cast<size_t>(axis - extra)] == 1 && x.size(axis) != 1))
      axes.push_back(axis);
  return axes.empty() ? reshape(x, sizes) : reshape(sum(x, axes, true), sizes);
}

}  // namespace composit
