#include "composit/numpy/sorting.h"

#include "composit/ir/error.h"
#include "composit/numpy/result_type.h"
#include "composit/numpy/shape.h"

namespace composit::numpy {
namespace {

// Sorted elements, and where they were.
LazyTensors sorted_along(std::string_view function, const NdArray& x, std::optional<int64_t> axis) {
  expect_real(function, x.dtype());
  const NdArray y = axis ? x : ravel(x);
  const int64_t place = axis_of_rank(axis.value_or(0), y.ndim(), function);
  return apply("aten::sort.stable", {LazyTensor(y), true, place, false});
}

}  // namespace

NdArray sort(const NdArray& x, std::optional<int64_t> axis) {
  return sorted_along("sort", x, axis)[0];
}
NdArray argsort(const NdArray& x, std::optional<int64_t> axis) {
  return sorted_along("argsort", x, axis)[1];
}

NdArray searchsorted(const NdArray& sorted, const Operand& values, std::string_view side) {
  if (side != "left" && side != "right")
    refuse("searchsorted", "expected side left or right, received '" + std::string(side) + "'");
  if (sorted.ndim() != 1)
    refuse("searchsorted", "expected a vector, received shape " + str(sorted.shape()));
  const DType dtype = result_type("searchsorted", {sorted, values});
  expect_real("searchsorted", dtype);
  return apply_one("aten::searchsorted.Tensor",
                   {to(sorted, dtype), as_array(values, dtype), false, side == "right"});
}

}  // namespace composit::numpy
