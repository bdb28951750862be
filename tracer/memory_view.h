// Tensors over a given piece of a storage, made without the dispatcher, and copies that keep
// strides.
#pragma once

#include <ATen/core/Tensor.h>

#include "composit/ir/type.h"

namespace flashlight::tracer {

// The bytes of `base`'s storage read as `dtype` with these strides; `offset` in elements of `dtype`
// from the first element of `base`. Shares memory.
at::Tensor view_memory(const at::Tensor& base, c10::ScalarType dtype, c10::IntArrayRef sizes,
                       c10::IntArrayRef strides, int64_t offset, bool conj = false,
                       bool neg = false);
// The address of the element with all indices 0. It works even if a guard on the storage makes the
// tensor's own methods throw.
int64_t address_of(const at::Tensor& tensor);
// Bytes from the first element to the end of the last one.
int64_t span_of(const at::Tensor& tensor);
// All bytes of the storage, as uint8. Shares memory.
at::Tensor all_bytes(const at::Tensor& tensor);
// `count` bytes as uint8, of which the one numbered `begin` is the first of the first element.
// Shares memory. They must lie in the storage.
at::Tensor bytes_around(const at::Tensor& tensor, int64_t begin, int64_t count);
bool has_bytes_around(const at::Tensor& tensor, int64_t begin, int64_t count);
// A copy with the same strides, gaps included (their content is arbitrary), and the same conj and
// neg bits. On the CPU it is aligned as `tensor` is: the last bit of BLAS's sums depends on that.
at::Tensor copy_keeping_strides(const at::Tensor& tensor);
// Copies elements of the same dtype as they are: LibTorch's copy makes every bool 0 or 1.
void copy_bits(const at::Tensor& to, const at::Tensor& from);
// True if elements lie as the strides of `type` say: those of axes of size 1 and of empty tensors
// reach nothing. Both have the same sizes.
bool lies_in_order(const at::Tensor& tensor, const composit::Type& type);
// `tensor` with the strides of `type`: itself where they agree, a copy otherwise.
at::Tensor with_strides(const at::Tensor& tensor, const composit::Type& type);
at::Tensor empty_of(const composit::Type& type);

// A constant that holds one number, with another one in it.
at::Tensor with_number(const at::Tensor& constant, const c10::Scalar& number);

}  // namespace flashlight::tracer
