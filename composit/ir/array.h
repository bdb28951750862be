// Concrete values: a typed view of memory that somebody owns.
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

  bool defined() const { return impl_ != nullptr; }  // whether it has a value
  // InternalError of an undefined array, as of all members below.
  const Type& type() const;
  const std::byte* data() const;                     // of the element with all indices 0
  const std::shared_ptr<const void>& owner() const;  // what keeps the memory alive

  // The same values, row-major; *this where it already is.
  Array contiguous() const;
  // The same values in memory of these strides (>= 0, in elements); *this where they are its own.
  // Elements that the strides lay over each other take the value of the last.
  Array with_strides(std::vector<int64_t> strides) const;
  // Type and element bytes in row-major order; computed on first call.
  Hash content_hash() const;
  bool operator==(const Array& other) const;

 private:
  struct Impl;
  const Impl& impl() const;
  std::shared_ptr<Impl> impl_;
};

}  // namespace composit
