#include "composit/ir/type.h"

#include <algorithm>

#include "composit/ir/error.h"
#include "composit/ir/hash.h"

namespace composit {

int64_t Type::numel() const {
  uint64_t count = 1;  // unsigned, here and below: an illegal type wraps, until verify finds it
  for (int64_t size : sizes) count *= static_cast<uint64_t>(size);
  return static_cast<int64_t>(count);
}

int64_t Type::extent() const {
  int64_t last = 0;
  for (size_t axis = 0; axis < rank(); ++axis) {
    if (sizes[axis] == 0) return 0;
    last += (sizes[axis] - 1) * strides[axis];
  }
  return last + 1;
}

void Type::add_to(Hasher& hasher) const {
  const auto byte = [](auto value, int place) {
    return static_cast<uint64_t>(static_cast<uint8_t>(value)) << (8 * place);
  };
  hasher.add(byte(dtype, 0) | byte(layout, 1) | byte(device.type, 2) | byte(device.index, 3) |
             byte(conj, 4) | byte(neg, 5));
  hasher.add(static_cast<uint64_t>(rank()));
  for (int64_t size : sizes) hasher.add(static_cast<uint64_t>(size));
  for (int64_t stride : strides) hasher.add(static_cast<uint64_t>(stride));
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
  uint64_t stride = 1;
  for (size_t axis = sizes.size(); axis-- > 0;) {
    strides[axis] = static_cast<int64_t>(stride);
    stride *= static_cast<uint64_t>(std::max<int64_t>(sizes[axis], 1));
  }
  return strides;
}

bool is_contiguous(const Type& type) {
  if (type.layout != Layout::strided || type.strides.size() != type.rank()) return false;
  uint64_t stride = 1;
  for (size_t axis = type.rank(); axis-- > 0;) {
    if (static_cast<uint64_t>(type.strides[axis]) != stride) return false;
    stride *= static_cast<uint64_t>(std::max<int64_t>(type.sizes[axis], 1));
  }
  return true;
}

int64_t wrap_axis(int64_t axis, int64_t rank) {
  const int64_t axes = std::max<int64_t>(rank, 1);
  if (axis < -axes || axis >= axes)
    throw UserError("expected an axis from " + std::to_string(-axes) + " to " +
                    std::to_string(axes - 1) + ", received " + std::to_string(axis));
  return axis < 0 ? axis + axes : axis;
}

Type without_repeats(Type type) {
  for (size_t axis = 0; axis < type.rank(); ++axis)
    if (type.strides[axis] == 0 && type.sizes[axis] > 1) type.sizes[axis] = 1;
  return type;
}

Type undefined_type() {
  Type type;
  type.dtype = DType::count_;
  return type;
}

}  // namespace composit
