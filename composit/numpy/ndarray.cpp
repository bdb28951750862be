#include "composit/numpy/ndarray.h"

#include <algorithm>

#include "composit/ir/error.h"
#include "composit/numpy/indexing.h"
#include "composit/numpy/shape.h"
#include "composit/ops/functions.h"

namespace composit::numpy {

std::string NdArray::name() const {
  return is_input(*node) ? input_name(*node) : std::string(node->annotation("name"));
}

NdArray NdArray::T() const { return transpose(*this); }
NdArray NdArray::astype(DType dtype) const { return to(*this, dtype); }
NdArray NdArray::reshape(const Ints& shape) const { return numpy::reshape(*this, shape); }
NdArray NdArray::operator[](const Indices& indices) const { return get_item(*this, indices); }

int64_t axis_of_rank(int64_t axis, int64_t rank, std::string_view function) {
  if (axis >= -rank && axis < rank) return axis < 0 ? axis + rank : axis;
  refuse(function, "expected an axis in [" + std::to_string(-rank) + ", " + std::to_string(rank) +
                       "), received " + std::to_string(axis));
}

Ints Axes::of_rank(int64_t rank, std::string_view function) const {
  Ints axes;
  if (is_none())
    for (int64_t axis = 0; axis < rank; ++axis) axes.push_back(axis);
  else
    for (int64_t axis : *list_) axes.push_back(axis_of_rank(axis, rank, function));
  Ints sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end())
    refuse(function, "expected different axes, received axis " + std::to_string(*twice) + " twice");
  return axes;
}

void refuse(std::string_view function, const std::string& what) {
  throw UserError("[numpy." + std::string(function) + "] " + what);
}

}  // namespace composit::numpy
