#include "tracer/memory_view.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/TensorImpl.h>
#include <c10/core/alignment.h>

#include <cstring>

#include "composit/ir/error.h"
#include "tracer/convert.h"

namespace flashlight::tracer {

at::Tensor view_memory(const at::Tensor& base, c10::ScalarType dtype, c10::IntArrayRef sizes,
                       c10::IntArrayRef strides, int64_t offset, bool conj, bool neg) {
  const auto keys =
      base.key_set().remove(c10::DispatchKey::Conjugate).remove(c10::DispatchKey::Negative);
  const auto item = static_cast<int64_t>(c10::elementSize(dtype));
  const int64_t begin = base.storage_offset() * static_cast<int64_t>(base.itemsize());
  COMPOSIT_ASSERT(begin % item == 0, "a view whose begin is not a multiple of its element size");
  at::Tensor view = at::detail::make_tensor<c10::TensorImpl>(
      c10::TensorImpl::VIEW, c10::Storage(base.storage()), keys, c10::scalarTypeToTypeMeta(dtype));
  view.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, begin / item + offset);
  if (conj) view._set_conj(true);
  if (neg) view._set_neg(true);
  return view;
}

int64_t address_of(const at::Tensor& tensor) {
  auto* storage = tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
  return static_cast<int64_t>(
             reinterpret_cast<intptr_t>(storage->_mutable_data_ptr_no_checks().get())) +
         tensor.storage_offset() * static_cast<int64_t>(tensor.itemsize());
}

int64_t span_of(const at::Tensor& tensor) {
  int64_t elements = tensor.numel() == 0 ? 0 : 1;
  for (int64_t axis = 0; elements > 0 && axis < tensor.dim(); ++axis)
    elements += (tensor.size(axis) - 1) * tensor.stride(axis);
  return elements * static_cast<int64_t>(tensor.itemsize());
}

namespace {

at::Tensor bytes_of_storage(const at::Tensor& tensor, int64_t first, int64_t count) {
  const auto keys =
      tensor.key_set().remove(c10::DispatchKey::Conjugate).remove(c10::DispatchKey::Negative);
  at::Tensor bytes = at::detail::make_tensor<c10::TensorImpl>(
      c10::TensorImpl::VIEW, c10::Storage(tensor.storage()), keys,
      c10::scalarTypeToTypeMeta(c10::kByte));
  bytes.unsafeGetTensorImpl()->set_sizes_and_strides(c10::IntArrayRef{count}, c10::IntArrayRef{1},
                                                     first);
  return bytes;
}

// The offset of the element with all indices 0 from the begin of the storage.
int64_t place_in_storage(const at::Tensor& tensor) {
  return tensor.storage_offset() * static_cast<int64_t>(tensor.itemsize());
}

}  // namespace

at::Tensor all_bytes(const at::Tensor& tensor) {
  return bytes_of_storage(tensor, 0, static_cast<int64_t>(tensor.storage().nbytes()));
}

at::Tensor bytes_around(const at::Tensor& tensor, int64_t begin, int64_t count) {
  COMPOSIT_ASSERT(has_bytes_around(tensor, begin, count), "bytes outside of the storage");
  return bytes_of_storage(tensor, place_in_storage(tensor) - begin, count);
}

bool has_bytes_around(const at::Tensor& tensor, int64_t begin, int64_t count) {
  const int64_t first = place_in_storage(tensor) - begin;
  return first >= 0 && first + count <= static_cast<int64_t>(tensor.storage().nbytes());
}

namespace {

// Memory of `count` bytes that lies `shift` bytes after a boundary of LibTorch's alignment.
c10::Storage shifted_storage(size_t count, size_t shift) {
  c10::Allocator* allocator = c10::GetCPUAllocator();
  auto* whole = new c10::DataPtr(allocator->allocate(count + shift));
  c10::DataPtr shifted(
      static_cast<char*>(whole->get()) + shift, whole,
      [](void* memory) { delete static_cast<c10::DataPtr*>(memory); }, c10::Device(c10::kCPU));
  return c10::Storage(c10::Storage::use_byte_size_t(), count, std::move(shifted), allocator,
                      /*resizable=*/true);
}

at::Tensor empty_like_memory_of(const at::Tensor& tensor) {
  at::Tensor empty = at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options());
  if (!tensor.device().is_cpu() || tensor.numel() == 0) return empty;
  const auto shift = static_cast<size_t>(address_of(tensor)) % c10::gAlignment;
  if (shift != 0)
    empty.unsafeGetTensorImpl()->set_storage_keep_dtype(
        shifted_storage(empty.storage().nbytes(), shift));
  return empty;
}

}  // namespace

at::Tensor copy_keeping_strides(const at::Tensor& tensor) {
  if (!tensor.has_storage() || tensor.layout() != c10::Layout::Strided) return tensor.clone();
  at::Tensor copy = empty_like_memory_of(tensor);
  if (tensor.is_conj()) copy._set_conj(true);
  if (tensor.is_neg()) copy._set_neg(true);
  // Elements that lie on each other cannot be written one by one.
  const bool in_one_piece = tensor.is_non_overlapping_and_dense() ||
                            at::has_internal_overlap(tensor) == at::MemOverlap::Yes;
  if (in_one_piece && tensor.device().is_cpu() && tensor.numel() > 0)
    std::memcpy(copy.data_ptr(), tensor.const_data_ptr(), copy.storage().nbytes());
  else
    copy_bits(copy, tensor);
  return copy;
}

void copy_bits(const at::Tensor& to, const at::Tensor& from) {
  const auto bytes = [](const at::Tensor& tensor) {
    return view_memory(tensor, c10::kByte, tensor.sizes(), tensor.strides(), 0);
  };
  if (to.scalar_type() == c10::kBool && from.scalar_type() == c10::kBool && to.has_storage() &&
      from.has_storage())
    bytes(to).copy_(bytes(from));
  else
    to.copy_(from);
}

bool lies_in_order(const at::Tensor& tensor, const composit::Type& type) {
  if (tensor.numel() == 0) return true;
  for (size_t i = 0; i < type.rank(); ++i)
    if (type.sizes[i] > 1 && tensor.stride(static_cast<int64_t>(i)) != type.strides[i])
      return false;
  return true;
}

at::Tensor with_strides(const at::Tensor& tensor, const composit::Type& type) {
  if (type.layout != composit::Layout::strided || tensor.strides() == type.strides) return tensor;
  if (lies_in_order(tensor, type))
    return view_memory(tensor, tensor.scalar_type(), tensor.sizes(), type.strides, 0,
                       tensor.is_conj(), tensor.is_neg());
  at::Tensor copy = empty_of(type);
  copy_bits(copy, tensor);
  return copy;
}

at::Tensor empty_of(const composit::Type& type) {
  const auto options = at::TensorOptions().dtype(to_c10(type.dtype)).device(to_c10(type.device));
  at::Tensor tensor = at::empty_strided(type.sizes, type.strides, options);
  if (type.conj) tensor._set_conj(true);
  if (type.neg) tensor._set_neg(true);
  return tensor;
}

at::Tensor with_number(const at::Tensor& constant, const c10::Scalar& number) {
  at::Tensor tensor = copy_keeping_strides(constant).fill_(number);
  if (constant.unsafeGetTensorImpl()->is_wrapped_number())
    tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

}  // namespace flashlight::tracer
