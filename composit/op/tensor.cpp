#include "composit/op/tensor.h"

#include "composit/op/nest.h"

namespace composit {

int64_t Tensor::size(int64_t axis) const {
  return type().sizes.at(static_cast<size_t>(wrap_axis(axis, rank())));
}

std::vector<int64_t> Tensor::sizes() const { return type().sizes; }

}  // namespace composit
