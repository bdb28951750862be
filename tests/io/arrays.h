// Arrays for tests.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "composit/ir/array.h"

namespace composit::test {

template <class T>
Array array_of(DType dtype, Dims sizes, const std::vector<T>& values) {
  return Array::copy_of(tensor_type(dtype, std::move(sizes)), values.data());
}

inline Array floats(Dims sizes, const std::vector<float>& values) {
  return array_of(DType::float32, std::move(sizes), values);
}

// Elements whose bytes are 1, 2, 3, ...; bytes of bools are 0 and 1.
inline Array counting_bytes(DType dtype, Dims sizes) {
  const Type type = tensor_type(dtype, std::move(sizes));
  std::vector<uint8_t> bytes(static_cast<size_t>(type.nbytes()) + 1);
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<uint8_t>(dtype == DType::bool_ ? i % 2 : i + 1);
  return Array::copy_of(type, bytes.data());
}

// The same values with the axes stored in reverse order.
inline Array stored_transposed(const Array& array) {
  Type type = array.type();
  Dims reversed(type.sizes.rbegin(), type.sizes.rend());
  const auto strides = contiguous_strides(reversed);
  type.strides.assign(strides.rbegin(), strides.rend());
  const auto item = item_size(type.dtype);
  const auto size = static_cast<size_t>(type.nbytes());
  auto bytes = std::shared_ptr<std::byte[]>(new std::byte[size]);
  const Array rows = array.contiguous();
  std::vector<int64_t> index(type.rank(), 0);
  for (size_t element = 0; element * item < size; ++element) {
    size_t rest = element;
    int64_t to = 0;
    for (size_t axis = type.rank(); axis-- > 0;) {
      const auto extent = static_cast<size_t>(type.sizes[axis]);
      to += static_cast<int64_t>(rest % extent) * type.strides[axis];
      rest /= extent;
    }
    std::memcpy(bytes.get() + static_cast<size_t>(to) * item, rows.data() + element * item, item);
  }
  const void* data = bytes.get();
  return Array(type, std::move(bytes), data);
}

}  // namespace composit::test
