// The place of a tensor in its storage, and how its bytes are read. Interned: most tensors of a
// program repeat a few.
//
//   GeometryId id = table.intern(tensor);     table[id].sizes
//
// Two tensors over one storage with equal geometry hold the same value; that is the recorder's
// notion of identity.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <vector>

#include "composit/ir/type.h"

namespace flashlight::tracer {

using GeometryId = uint32_t;

struct Geometry {
  c10::SmallVector<int64_t, 5> sizes, strides;  // strides empty for layouts without them
  int64_t offset = 0;                           // in elements
  c10::ScalarType dtype = c10::ScalarType::Float;
  c10::Layout layout = c10::Layout::Strided;
  c10::Device device = c10::kCPU;
  bool conj = false;
  bool neg = false;

  bool operator==(const Geometry&) const = default;
  int64_t numel() const;
  int64_t item_size() const { return static_cast<int64_t>(c10::elementSize(dtype)); }
};

// Half-open range of bytes within the storage that the geometry touches; empty for no elements.
struct ByteRange {
  int64_t begin = 0;
  int64_t end = 0;
  bool intersects(const ByteRange& other) const { return begin < other.end && other.begin < end; }
};
ByteRange byte_range(const Geometry& geometry);

// `shift` is added to the tensor's offset, in bytes: its storage may begin within another one's
// memory.
Geometry geometry_of(const at::Tensor& tensor, int64_t shift = 0);
bool matches(const Geometry& geometry, const at::Tensor& tensor, int64_t shift);

// No element lies on another, none is skipped.
bool is_dense(const Geometry& geometry);
// The axes in the order in which the elements lie, the outermost first: 0, 1, … for row-major ones.
// Axes of size 1 keep their place among those.
c10::SmallVector<int64_t, 5> memory_order(const Geometry& geometry);
// Dense, and in the order of the indices.
bool is_row_major(const Geometry& geometry);
// Dense, from the first byte to the last of `nbytes`.
bool covers(const Geometry& geometry, int64_t nbytes);
bool overlaps_itself(const Geometry& geometry);
// Is each byte of `inner` one of an element of `outer`? Where it would take long to tell: does it
// lie between the first and the last one?
bool lies_in(const Geometry& inner, const Geometry& outer);

composit::Type type_of(const Geometry& geometry);
composit::Type type_of(const at::Tensor& tensor);

class GeometryTable {
 public:
  GeometryId intern(const at::Tensor& tensor, int64_t shift = 0);
  GeometryId intern(Geometry geometry);
  const Geometry& operator[](GeometryId id) const { return geometries_[id]; }
  GeometryId size() const { return static_cast<GeometryId>(geometries_.size()); }

 private:
  void grow();

  std::vector<Geometry> geometries_;
  std::vector<GeometryId> ids_;  // by hash, the next free place where that is taken
};

}  // namespace flashlight::tracer
