#include "composit/ir/array.h"

#include <cstring>
#include <mutex>

#include "composit/ir/error.h"

namespace composit {

struct Array::Impl {
  Type type;
  std::shared_ptr<const void> owner;
  const std::byte* data;
  std::once_flag hashed;
  Hash hash;
};

namespace {

// Calls `visit(pointer)` for every element in row-major order.
template <class Visit>
void for_each_element(const Type& type, const std::byte* data, Visit visit) {
  const auto size = static_cast<int64_t>(item_size(type.dtype));
  std::vector<int64_t> index(type.rank(), 0);
  for (int64_t remaining = type.numel(); remaining > 0; --remaining) {
    visit(data);
    for (size_t axis = type.rank(); axis-- > 0;) {
      data += type.strides[axis] * size;
      if (++index[axis] < type.sizes[axis].value()) break;
      data -= index[axis] * type.strides[axis] * size;
      index[axis] = 0;
    }
  }
}

void hash_type(Hasher& hasher, const Type& type) {
  hasher.add(static_cast<uint64_t>(type.dtype) | static_cast<uint64_t>(type.conj) << 8 |
             static_cast<uint64_t>(type.neg) << 9);
  hasher.add(static_cast<uint64_t>(type.rank()));
  for (Dim size : type.sizes) hasher.add(static_cast<uint64_t>(size.value()));
  for (int64_t stride : type.strides) hasher.add(static_cast<uint64_t>(stride));
}

}  // namespace

Array::Array(Type type, std::shared_ptr<const void> owner, const void* data) : impl_(std::make_shared<Impl>()) {
  COMPOSIT_ASSERT(type.layout == Layout::strided && type.strides.size() == type.rank(), "an Array is strided");
  impl_->type = std::move(type);
  impl_->owner = std::move(owner);
  impl_->data = static_cast<const std::byte*>(data);
}

Array Array::copy_of(const Type& type, const void* data) {
  COMPOSIT_ASSERT(is_contiguous(type), "copy_of takes contiguous elements");
  const auto size = static_cast<size_t>(type.nbytes());
  auto bytes = std::shared_ptr<std::byte[]>(new std::byte[size]);
  if (size > 0) std::memcpy(bytes.get(), data, size);
  const void* begin = bytes.get();
  return Array(type, std::move(bytes), begin);
}

const Type& Array::type() const { return impl_->type; }
const std::byte* Array::data() const { return impl_->data; }
const std::shared_ptr<const void>& Array::owner() const { return impl_->owner; }

Array Array::contiguous() const {
  if (is_contiguous(type())) return *this;
  Type result = type();
  result.strides = contiguous_strides(result.sizes);
  const size_t size = item_size(result.dtype);
  auto bytes = std::shared_ptr<std::byte[]>(new std::byte[static_cast<size_t>(result.nbytes())]);
  std::byte* to = bytes.get();
  for_each_element(type(), data(), [&](const std::byte* from) {
    std::memcpy(to, from, size);
    to += size;
  });
  const void* begin = bytes.get();
  return Array(std::move(result), std::move(bytes), begin);
}

Hash Array::content_hash() const {
  std::call_once(impl_->hashed, [this] {
    Hasher hasher;
    hash_type(hasher, type());
    const Array flat = contiguous();
    hasher.add_bytes(flat.data(), static_cast<size_t>(flat.type().nbytes()));
    impl_->hash = hasher.finish();
  });
  return impl_->hash;
}

bool Array::operator==(const Array& other) const {
  if (!defined() || !other.defined()) return defined() == other.defined();
  return impl_ == other.impl_ || (type() == other.type() && content_hash() == other.content_hash());
}

}  // namespace composit
