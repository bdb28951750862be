#include "composit/ir/array.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

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

// Walks through the elements of a type in row-major order.
class Elements {
 public:
  explicit Elements(const Type& type) : type_(type), index_(type.rank(), 0) {}
  int64_t offset() const { return offset_; }  // of the current element from the first one

  void next() {
    for (size_t axis = type_.rank(); axis-- > 0;) {
      offset_ += type_.strides[axis];
      if (++index_[axis] < type_.sizes[axis]) return;
      offset_ -= index_[axis] * type_.strides[axis];
      index_[axis] = 0;
    }
  }

 private:
  const Type& type_;
  std::vector<int64_t> index_;
  int64_t offset_ = 0;
};

std::shared_ptr<std::byte> zeroed_bytes(int64_t count) {
  const auto size = static_cast<size_t>(std::max<int64_t>(count, 1));
  auto* bytes =
      static_cast<std::byte*>(std::calloc(size, 1));  // pages that are not written cost nothing
  if (bytes == nullptr) throw std::bad_alloc();
  return {bytes, [](std::byte* memory) { std::free(memory); }};
}

// Without a copy of the whole.
void hash_elements(Hasher& hasher, const Type& type, const std::byte* data) {
  constexpr size_t kBlock = 4096;  // a multiple of every item size and of the hasher's words
  std::array<std::byte, kBlock> block;
  size_t used = 0;
  const size_t size = item_size(type.dtype);
  Elements elements(type);
  for (int64_t remaining = type.numel(); remaining > 0; --remaining, elements.next()) {
    std::memcpy(&block[used], data + elements.offset() * static_cast<int64_t>(size), size);
    used += size;
    if (used < kBlock) continue;
    hasher.add_bytes(block.data(), used);
    used = 0;
  }
  hasher.add_bytes(block.data(), used);
}

}  // namespace

Array::Array(Type type, std::shared_ptr<const void> owner, const void* data)
    : impl_(std::make_shared<Impl>()) {
  COMPOSIT_ASSERT(type.layout == Layout::strided && type.strides.size() == type.rank(),
                  "an Array is strided");
  impl_->type = std::move(type);
  impl_->owner = std::move(owner);
  impl_->data = static_cast<const std::byte*>(data);
}

Array Array::copy_of(const Type& type, const void* data) {
  COMPOSIT_ASSERT(is_contiguous(type), "copy_of takes contiguous elements");
  const auto bytes = zeroed_bytes(type.nbytes());
  if (type.nbytes() > 0) std::memcpy(bytes.get(), data, static_cast<size_t>(type.nbytes()));
  return Array(type, bytes, bytes.get());
}

const Array::Impl& Array::impl() const {
  COMPOSIT_ASSERT(defined(), "an Array without a value");
  return *impl_;
}

const Type& Array::type() const { return impl().type; }
const std::byte* Array::data() const { return impl().data; }
const std::shared_ptr<const void>& Array::owner() const { return impl().owner; }

Array Array::contiguous() const { return with_strides(contiguous_strides(type().sizes)); }

Array Array::with_strides(std::vector<int64_t> strides) const {
  if (strides == type().strides) return *this;
  Type result = type();
  result.strides = std::move(strides);
  const auto size = static_cast<int64_t>(item_size(result.dtype));
  const auto bytes = zeroed_bytes(result.extent() * size);
  Elements from(type()), to(result);
  for (int64_t remaining = result.numel(); remaining > 0; --remaining, from.next(), to.next())
    std::memcpy(bytes.get() + to.offset() * size, data() + from.offset() * size,
                static_cast<size_t>(size));
  return Array(std::move(result), bytes, bytes.get());
}

Hash Array::content_hash() const {
  COMPOSIT_ASSERT(defined(), "an Array without a value");
  std::call_once(impl_->hashed, [this] {
    Hasher hasher;
    type().add_to(hasher);
    const Type distinct = without_repeats(type());
    if (is_contiguous(distinct))
      hasher.add_bytes(data(), static_cast<size_t>(distinct.nbytes()));
    else
      hash_elements(hasher, distinct, data());
    impl_->hash = hasher.finish();
  });
  return impl_->hash;
}

bool Array::operator==(const Array& other) const {
  if (!defined() || !other.defined()) return defined() == other.defined();
  return impl_ == other.impl_ || (type() == other.type() && content_hash() == other.content_hash());
}

}  // namespace composit
