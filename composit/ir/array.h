// Concrete values: a typed view of memory, and a share in its ownership.
//
//   Array a = Array::copy_of(tensor_type(DType::float32, {2}), values.data());
//   Array b(type, owner, pointer);     // zero-copy: `owner` keeps the memory alive
//
// An Array is immutable as far as composit is concerned. Memory that others write to (a live
// parameter) may be viewed, but only what stays as it is may become a constant of a graph: its
// content is hashed once, on first need.
#pragma once

#include <cstddef>
#include <memory>

#include "composit/ir/hash.h"
#include "composit/ir/type.h"

namespace composit {

class Array {
 public:
  Array() = default;
  // `data` points at the element with all indices 0; strides of `type` are in elements and may be
  // 0.
  Array(Type type, std::shared_ptr<const void> owner, const void* data);
  // Copies `type.nbytes()` bytes of contiguous elements.
  static Array copy_of(const Type& type, const void* data);

  bool defined() const { return impl_ != nullptr; }  // false: default-constructed, without a value
  // The members below throw InternalError for an undefined array.
  const Type& type() const;
  const std::byte* data() const;                     // address of the element with all indices 0
  const std::shared_ptr<const void>& owner() const;  // keeps the memory alive

  // The same values in row-major order; *this if they are so already.
  Array contiguous() const;
  // The same values in memory of these strides (>= 0, in elements); *this if it has these strides.
  // If the strides make elements overlap, the last value written stays.
  Array with_strides(std::vector<int64_t> strides) const;
  // The hash of type and elements in row-major order; computed on first call.
  Hash content_hash() const;
  bool operator==(const Array& other) const;

 private:
  struct Impl;
  const Impl& impl() const;
  std::shared_ptr<Impl> impl_;
};

}  // namespace composit
