#include "composit/ir/type.h"

#include <algorithm>

namespace composit {

int64_t Type::numel() const {
  int64_t count = 1;
  for (Dim size : sizes) count *= size.value();
  return count;
}

Type tensor_type(DType dtype, Dims sizes) {
  Type type;
  type.dtype = dtype;
  type.strides = contiguous_strides(sizes);
  type.sizes = std::move(sizes);
  return type;
}

std::vector<int64_t> contiguous_strides(const Dims& sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t stride = 1;
  for (size_t axis = sizes.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= std::max<int64_t>(sizes[axis].value(), 1);
  }
  return strides;
}

bool is_contiguous(const Type& type) {
  return type.layout == Layout::strided && type.strides == contiguous_strides(type.sizes);
}

Type undefined_type() {
  Type type;
  type.dtype = DType::count_;
  return type;
}

}  // namespace composit
