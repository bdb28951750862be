// The type of a tensor: everything known about it but its elements.
//
//   Type t = tensor_type(DType::float32, {2, 3});      // contiguous
//   t.numel() == 6;   is_contiguous(t);
//
// Strides belong to the type: they decide whether `view` succeeds, whether `contiguous` copies, and
// the last bit of a sum. Strides are counted in elements. `conj` and `neg` are torch's lazy
// conjugation and negation bits.
#pragma once

#include <cstdint>
#include <vector>

#include "composit/ir/dtype.h"

namespace composit {

class Hasher;

using Dims = std::vector<int64_t>;  // the sizes of a tensor

struct Type {
  DType dtype = DType::float32;     // `count_`: an undefined tensor
  Layout layout = Layout::strided;  // others: sparse ones
  Device device;                    // the CPU
  bool conj = false;                // elements are conjugated when they are read
  bool neg = false;                 // elements are negated when they are read
  Dims sizes;                       // one per axis
  std::vector<int64_t> strides;     // one per size for strided layouts, empty for all others

  size_t rank() const { return sizes.size(); }  // number of axes
  int64_t numel() const;                        // number of elements
  // Elements from the first to the last in memory, both included. For strided layouts.
  int64_t extent() const;
  // Bytes of all elements, without gaps.
  int64_t nbytes() const { return numel() * static_cast<int64_t>(item_size(dtype)); }
  bool operator==(const Type&) const = default;
  void add_to(Hasher& hasher) const;  // all of the above
};

// The type of an output that is an undefined tensor (a gradient that was not asked for).
Type undefined_type();
// False for `undefined_type()`.
inline bool is_defined(const Type& type) { return type.dtype != DType::count_; }

// A contiguous (row-major) strided tensor on the CPU.
Type tensor_type(DType dtype, Dims sizes);
// The row-major strides of these sizes, in elements.
std::vector<int64_t> contiguous_strides(const Dims& sizes);
// Strides equal to the row-major ones, the form in which a type is printed without strides.
bool is_contiguous(const Type& type);
// The axis `axis` of `rank`, counted from the front. UserError: "[op] expected an axis in
// [-rank, rank), received 3"; a zero-dimensional tensor has axis 0, as in torch.
int64_t wrap_axis(int64_t axis, int64_t rank);
// Axes of stride 0 repeat one element; this type has them shortened to size 1.
Type without_repeats(Type type);

}  // namespace composit
