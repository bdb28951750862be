#include "composit/ops/axes.h"

#include <limits>

#include "composit/op/promotion.h"

namespace composit {

int64_t count_over(const Ints& sizes, const Ints& axes) {
  const std::vector<bool> reduced = wrap_axes(axes, static_cast<int64_t>(sizes.size()));
  int64_t count = 1;
  for (size_t axis = 0; axis < reduced.size(); ++axis)
    if (reduced[axis]) count *= sizes[axis];
  return count;
}

LazyTensor with_axes(const LazyTensor& y, const LazyTensor& x, const Ints& axes, bool keepdim) {
  if (keepdim) return y;
  const std::vector<bool> reduced = wrap_axes(axes, x.rank());
  Ints sizes;
  for (size_t axis = 0; axis < reduced.size(); ++axis)
    sizes.push_back(reduced[axis] ? 1 : x.size(static_cast<int64_t>(axis)));
  return reshape(y, sizes);
}

void expect_elements(const In& x, const Ints& axes) {
  const std::vector<bool> reduced = wrap_axes(axes, x.rank());
  for (size_t axis = 0; axis < reduced.size(); ++axis)
    if (reduced[axis] && x.type().sizes[axis] == 0)
      throw UserError("expected an element at least along axis " + std::to_string(axis) +
                      ", received sizes " + str(x.sizes()));
}

DType sum_dtype(DType dtype) {
  return category(dtype) <= DTypeCategory::integer ? DType::int64 : dtype;
}

Gradients to_chosen(const Vjp& v, const LazyTensor& x, int64_t dim, bool keepdim) {
  const LazyTensor g = with_axes(v.cotangents[0], x, {dim}, keepdim);
  const LazyTensor index = with_axes(v.results[1], x, {dim}, keepdim);
  return {apply_one("aten::scatter_add", {zeros_like(x), dim, index, g})};
}

static bool is_unsigned(DType dtype) { return dtype == DType::uint8 || dtype >= DType::uint16; }

Expr least(DType dtype) {
  if (category(dtype) == DTypeCategory::floating)
    return cast(-std::numeric_limits<double>::infinity(), dtype);
  if (dtype == DType::bool_) return Expr::literal(false, dtype);
  const int bits = 8 * static_cast<int>(item_size(dtype));
  return Expr::literal(
      is_unsigned(dtype) ? int64_t{0} : std::numeric_limits<int64_t>::min() >> (64 - bits), dtype);
}

Expr greatest(DType dtype) {
  if (category(dtype) == DTypeCategory::floating)
    return cast(std::numeric_limits<double>::infinity(), dtype);
  if (dtype == DType::bool_) return Expr::literal(true, dtype);
  const int bits = 8 * static_cast<int>(item_size(dtype)) + (is_unsigned(dtype) ? 1 : 0);
  return Expr::literal(std::numeric_limits<int64_t>::max() >> (64 - bits), dtype);
}

}  // namespace composit
