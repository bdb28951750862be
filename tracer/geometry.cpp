#include "tracer/geometry.h"

#include <algorithm>

#include "composit/ir/error.h"
#include "tracer/convert.h"

namespace flashlight::tracer {
namespace {

constexpr GeometryId kFree = ~0u;

size_t mix(size_t seed, int64_t value) {
  return (seed ^ static_cast<size_t>(value)) * 0x9e3779b97f4a7c15ULL + (seed >> 29);
}

size_t hash_of(const Geometry& geometry) {
  size_t seed = static_cast<size_t>(geometry.dtype) | static_cast<size_t>(geometry.layout) << 8 |
                static_cast<size_t>(geometry.conj) << 16 | static_cast<size_t>(geometry.neg) << 17 |
                geometry.sizes.size() << 24;
  seed = mix(seed, geometry.offset);
  for (int64_t size : geometry.sizes) seed = mix(seed, size);
  for (int64_t stride : geometry.strides) seed = mix(seed, stride);
  return seed;
}

// Axes of size 1 removed, sorted by stride: the order in which memory is walked.
std::vector<std::pair<int64_t, int64_t>> strides_and_sizes(const Geometry& geometry) {
  std::vector<std::pair<int64_t, int64_t>> axes;
  for (size_t i = 0; i < geometry.strides.size(); ++i)
    if (geometry.sizes[i] != 1) axes.emplace_back(geometry.strides[i], geometry.sizes[i]);
  std::sort(axes.begin(), axes.end());
  return axes;
}

// Is there an element at `offset`? `axes` by rising stride, none on another.
bool has_element(const std::vector<std::pair<int64_t, int64_t>>& axes, int64_t offset) {
  if (offset < 0) return false;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis)
    offset -= std::min(offset / axis->first, axis->second - 1) * axis->first;
  return offset == 0;
}

// Calls `visit` with the offset of each element until it returns false; true: it never did.
template <class Visit>
bool all_elements(const Geometry& geometry, Visit visit) {
  c10::SmallVector<int64_t, 5> index(geometry.sizes.size(), 0);
  int64_t offset = geometry.offset;
  for (int64_t left = geometry.numel(); left > 0; --left) {
    if (!visit(offset)) return false;
    for (size_t axis = index.size(); axis-- > 0;) {
      offset += geometry.strides[axis];
      if (++index[axis] < geometry.sizes[axis]) break;
      offset -= geometry.strides[axis] * geometry.sizes[axis];
      index[axis] = 0;
    }
  }
  return true;
}

}  // namespace

int64_t Geometry::numel() const {
  int64_t count = 1;
  for (int64_t size : sizes) count *= size;
  return count;
}

ByteRange byte_range(const Geometry& geometry) {
  if (geometry.numel() == 0) return {};
  int64_t last = geometry.offset;
  for (size_t i = 0; i < geometry.strides.size(); ++i)
    last += (geometry.sizes[i] - 1) * geometry.strides[i];
  return {geometry.offset * geometry.item_size(), (last + 1) * geometry.item_size()};
}

Geometry geometry_of(const at::Tensor& tensor, int64_t shift) {
  if (tensor.is_nested())
    throw composit::UserError(
        "[trace] nested tensors are not captured: no type of a graph has their sizes. Of "
        "torch.nn.TransformerEncoder, enable_nested_tensor=False computes the same on padded ones");
  Geometry geometry;
  const auto sizes = tensor.sizes();
  geometry.sizes.assign(sizes.begin(), sizes.end());
  geometry.dtype = tensor.scalar_type();
  geometry.layout = tensor.layout();
  geometry.device = tensor.device();
  geometry.conj = tensor.is_conj();
  geometry.neg = tensor.is_neg();
  if (geometry.layout == c10::Layout::Strided) {
    const auto strides = tensor.strides();
    geometry.strides.assign(strides.begin(), strides.end());
    geometry.offset = tensor.storage_offset() + shift / geometry.item_size();
  }
  return geometry;
}

bool matches(const Geometry& geometry, const at::Tensor& tensor, int64_t shift) {
  return geometry.dtype == tensor.scalar_type() && geometry.layout == tensor.layout() &&
         geometry.offset == tensor.storage_offset() + shift / geometry.item_size() &&
         tensor.sizes() == geometry.sizes && tensor.strides() == geometry.strides &&
         geometry.conj == tensor.is_conj() && geometry.neg == tensor.is_neg() &&
         geometry.device == tensor.device();
}

bool is_dense(const Geometry& geometry) {
  if (geometry.numel() == 0) return true;
  int64_t expected = 1;
  for (const auto& [stride, size] : strides_and_sizes(geometry)) {
    if (stride != expected) return false;
    expected *= size;
  }
  return true;
}

c10::SmallVector<int64_t, 5> memory_order(const Geometry& geometry) {
  c10::SmallVector<int64_t, 5> order, long_ones;
  for (size_t axis = 0; axis < geometry.sizes.size(); ++axis) {
    order.push_back(static_cast<int64_t>(axis));
    if (geometry.sizes[axis] != 1) long_ones.push_back(static_cast<int64_t>(axis));
  }
  const c10::SmallVector<int64_t, 5> places = long_ones;
  std::stable_sort(long_ones.begin(), long_ones.end(), [&](int64_t a, int64_t b) {
    return geometry.strides[static_cast<size_t>(a)] > geometry.strides[static_cast<size_t>(b)];
  });
  for (size_t i = 0; i < places.size(); ++i) order[static_cast<size_t>(places[i])] = long_ones[i];
  return order;
}

bool is_row_major(const Geometry& geometry) {
  if (geometry.layout != c10::Layout::Strided || !is_dense(geometry)) return false;
  if (geometry.numel() == 0) return true;
  const auto order = memory_order(geometry);
  return std::is_sorted(order.begin(), order.end());
}

bool covers(const Geometry& geometry, int64_t nbytes) {
  return geometry.offset == 0 && geometry.numel() * geometry.item_size() == nbytes &&
         is_dense(geometry);
}

bool overlaps_itself(const Geometry& geometry) {
  if (geometry.numel() <= 1) return false;
  int64_t reach = 0;  // last element reached by the axes before
  for (const auto& [stride, size] : strides_and_sizes(geometry)) {
    if (stride <= reach) return true;
    reach += stride * (size - 1);
  }
  return false;
}

bool lies_in(const Geometry& inner, const Geometry& outer) {
  constexpr int64_t kQuick = 1 << 16;
  const ByteRange small = byte_range(inner), large = byte_range(outer);
  if (small.begin < large.begin || small.end > large.end) return false;
  if (inner.numel() > kQuick || overlaps_itself(outer)) return true;
  const auto axes = strides_and_sizes(outer);
  const int64_t item = inner.item_size(), step = std::min(item, outer.item_size());
  return all_elements(inner, [&](int64_t offset) {
    for (int64_t byte = offset * item; byte < (offset + 1) * item; byte += step)
      if (!has_element(axes, (byte - large.begin) / outer.item_size())) return false;
    return true;
  });
}

composit::Type type_of(const Geometry& geometry) {
  composit::Type type;
  type.dtype = to_composit(geometry.dtype);
  type.layout = to_composit(geometry.layout);
  type.device = to_composit(geometry.device);
  type.conj = geometry.conj;
  type.neg = geometry.neg;
  type.sizes.assign(geometry.sizes.begin(), geometry.sizes.end());
  type.strides.assign(geometry.strides.begin(), geometry.strides.end());
  return type;
}

composit::Type type_of(const at::Tensor& tensor) {
  return tensor.defined() ? type_of(geometry_of(tensor)) : composit::undefined_type();
}

GeometryId GeometryTable::intern(const at::Tensor& tensor, int64_t shift) {
  return intern(geometry_of(tensor, shift));
}

GeometryId GeometryTable::intern(Geometry geometry) {
  if (2 * (geometries_.size() + 1) > ids_.size()) grow();
  size_t place = hash_of(geometry) & (ids_.size() - 1);
  for (; ids_[place] != kFree; place = (place + 1) & (ids_.size() - 1))
    if (geometries_[ids_[place]] == geometry) return ids_[place];
  ids_[place] = size();
  geometries_.push_back(std::move(geometry));
  return ids_[place];
}

void GeometryTable::grow() {
  constexpr size_t kSmallest = 1024;
  ids_.assign(std::max(kSmallest, 2 * ids_.size()), kFree);
  for (GeometryId id = 0; id < size(); ++id) {
    size_t place = hash_of(geometries_[id]) & (ids_.size() - 1);
    while (ids_[place] != kFree) place = (place + 1) & (ids_.size() - 1);
    ids_[place] = id;
  }
}

}  // namespace flashlight::tracer
