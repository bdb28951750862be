#include "tracer/aliasing.h"

#include <algorithm>

#include "composit/ir/error.h"
#include "tracer/memory_view.h"
#include "tracer/view_chain.h"

namespace flashlight::tracer {
namespace {

int64_t storage_bytes(const at::Tensor& tensor) {
  return static_cast<int64_t>(tensor.unsafeGetTensorImpl()->unsafe_storage().nbytes());
}

const c10::StorageImpl* storage_of(const at::Tensor& tensor) {
  return tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
}

WeakTensor weak(const at::Tensor& tensor) { return WeakTensor(tensor.getIntrusivePtr()); }

Geometry flat_bytes(int64_t nbytes, c10::Device device) {
  Geometry geometry;
  geometry.sizes = {nbytes};
  geometry.strides = {1};
  geometry.dtype = c10::ScalarType::Byte;
  geometry.device = device;
  return geometry;
}

}  // namespace

Aliasing::Aliasing(Recording& recording, bool chains, FromOutside from_outside)
    : recording_(recording), chains_(chains), from_outside_(std::move(from_outside)) {}

Aliasing::Place Aliasing::find(const at::Tensor& tensor) const {
  const auto found = places_.find(storage_of(tensor));
  return found == places_.end() ? Place() : found->second;
}

StorageState& Aliasing::add(const at::Tensor& tensor, bool outside) {
  if (!outside) release_some();
  StorageState* state;
  if (free_states_.empty()) {
    state = &states_.emplace_back(StorageState{tensor.storage().getWeakStorageImpl()});
  } else {
    state = free_states_.back();
    free_states_.pop_back();
    state->storage = tensor.storage().getWeakStorageImpl();
  }
  state->nbytes = storage_bytes(tensor);
  state->device = tensor.device();
  state->outside = outside;
  state->birth = outside ? 0 : recording_.records.size();
  const c10::StorageImpl* storage = storage_of(tensor);
  if (!outside) made_.emplace_back(storage, state);
  places_[storage] = {state, 0};
  return *state;
}

// The weak reference keeps the address of a dead storage from being used again, so a lookup needs
// no test of life. Here dead ones go, soon after their end: what is left of them lies between large
// blocks of memory, and would keep those from being used for still larger ones.
void Aliasing::release_some() {
  constexpr int kAtATime = 8;
  for (int i = 0; i < kAtATime && !made_.empty(); ++i) {
    if (next_made_ >= made_.size()) next_made_ = 0;
    const auto [storage, state] = made_[next_made_];
    if (!state->storage.expired()) {
      ++next_made_;
      continue;
    }
    made_[next_made_] = made_.back();
    made_.pop_back();
    places_.erase(storage);
    state->storage.reset();
    state->version = state->base_version = 0;
    state->has_gaps = false;
    state->unwritten = kNone;
    state->filled = false;
    state->owners.clear();
    state->base = state->base_geometry = kNone;
    state->aliases.clear();
    state->tensors.clear();
    state->pending.clear();
    free_states_.push_back(state);
  }
}

// Two storages over one memory (`from_blob` twice) are one as far as values go.
Aliasing::Place Aliasing::place_outside(const at::Tensor& tensor) {
  const auto begin = reinterpret_cast<uintptr_t>(storage_of(tensor)->data());
  const auto end = begin + static_cast<uintptr_t>(storage_bytes(tensor));
  if (begin == end || begin == 0) return {&add(tensor, true), 0};  // meta tensors are nowhere
  auto next = outside_by_address_.lower_bound(end);
  if (next != outside_by_address_.begin()) {
    const auto& [other_begin, other] = *std::prev(next);
    const auto other_end = other_begin + static_cast<uintptr_t>(other->nbytes);
    if (other_end > begin) {
      if (other_begin > begin || other_end < end)
        throw composit::UserError(
            "[trace] two tensors were made over memory that overlaps in part; pass views of one "
            "tensor instead");
      const Place place{other, static_cast<int64_t>(begin - other_begin)};
      places_[storage_of(tensor)] = place;
      return place;
    }
  }
  StorageState& state = add(tensor, true);
  outside_by_address_[begin] = &state;
  return {&state, 0};
}

bool Aliasing::knows(const at::Tensor& tensor) const {
  if (!tensor.has_storage()) return without_storage_.count(tensor.unsafeGetTensorImpl()) > 0;
  return find(tensor).state != nullptr;
}

bool Aliasing::same_storage(const at::Tensor& a, const at::Tensor& b) const {
  return a.has_storage() && b.has_storage() && find(a).state == find(b).state;
}

bool Aliasing::made_inside(const at::Tensor& tensor) const {
  const Place place = tensor.has_storage() ? find(tensor) : Place();
  return place.state != nullptr && !place.state->outside;
}

Aliasing::Memory Aliasing::memory(const c10::StorageImpl* storage) const {
  const auto found = places_.find(storage);
  if (found == places_.end()) return Memory::unknown;
  const StorageState& state = *found->second.state;
  if (!state.outside) return Memory::inside;
  Memory memory = Memory::constant;
  for (const ValueId owner : state.owners) {
    const Record& record = recording_.records[recording_.values[owner].record];
    if (record.kind != RecordKind::input) continue;
    if (recording_.inputs[record.index].kind != composit::InputKind::user_input)
      return Memory::parameter;
    memory = Memory::argument;
  }
  return memory;
}

bool Aliasing::is_untouched(const at::Tensor& tensor) const {
  const Place place = find(tensor);
  return place.state != nullptr && place.state->outside && place.state->version == 0;
}

std::vector<Survivor> Aliasing::survivors() const {
  std::vector<Survivor> survivors;
  for (const auto& [storage, state] : made_) {
    if (state->storage.expired() || state->nbytes == 0) continue;
    Survivor& survivor = survivors.emplace_back(Survivor{state->storage, {}, {}});
    for (const WeakTensor& tensor : state->tensors)
      if (!tensor.expired()) survivor.tensors.push_back(tensor);
    for (const Alias& alias : state->aliases)
      if (valid(*state, alias)) survivor.views.push_back({alias.geometry, alias.value});
  }
  return survivors;
}

bool Aliasing::is_unwritten(const at::Tensor& tensor) const {
  const Place place = tensor.has_storage() ? find(tensor) : Place();
  return place.state != nullptr && place.state->unwritten != kNone;
}

GeometryId Aliasing::geometry(const at::Tensor& tensor) {
  return recording_.geometries.intern(tensor, tensor.has_storage() ? find(tensor).shift : 0);
}

bool Aliasing::was_changed(const at::Tensor& tensor, ValueId value) const {
  if (!tensor.has_storage()) {
    const auto found = without_storage_.find(tensor.unsafeGetTensorImpl());
    return found == without_storage_.end() || found->second.value != value;
  }
  const Place place = find(tensor);
  return was_moved(tensor, value) || place.state->version > 0 ||
         !matches(recording_.geometries[recording_.values[value].geometry], tensor, place.shift);
}

bool Aliasing::was_moved(const at::Tensor& tensor, ValueId value) const {
  if (!tensor.has_storage()) return false;
  const Place place = find(tensor);
  if (place.state == nullptr) return true;
  const auto& owners = place.state->owners;
  const Geometry before = recording_.geometries[recording_.values[value].geometry];
  return std::find(owners.begin(), owners.end(), value) == owners.end() ||
         geometry_of(tensor, place.shift).offset != before.offset;
}

// ---- aliases ------------------------------------------------------------------------------------

// Values made inside a composite that has ended are seen outside only as its results: another value
// of the same geometry is preferred, so that composites stay closed.
bool Aliasing::visible(ValueId value) const {
  uint32_t composite = recording_.records[recording_.values[value].record].composite;
  while (composite != kNone && recording_.composites[composite].ended) {
    const auto& results = recording_.composites[composite].results;
    if (std::find(results.begin(), results.end(), value) == results.end()) return false;
    composite = recording_.composites[composite].parent;
  }
  return true;
}

bool Aliasing::valid(const StorageState& state, const Alias& alias) const {
  if (alias.value == kNone) return false;
  if (alias.version == state.version) return true;
  if (alias.version < state.base_version) return false;
  const ByteRange range = byte_range(recording_.geometries[alias.geometry]);
  return std::none_of(state.pending.begin(), state.pending.end(), [&](const PendingWrite& write) {
    return write.version > alias.version &&
           byte_range(recording_.geometries[write.geometry]).intersects(range);
  });
}

Alias* Aliasing::find_alias(StorageState& state, const at::Tensor& tensor, int64_t shift) {
  Alias* found = nullptr;
  for (Alias& alias : state.aliases) {
    if (!matches(recording_.geometries[alias.geometry], tensor, shift) || !valid(state, alias))
      continue;
    if (visible(alias.value)) return &alias;
    found = &alias;
  }
  return found;
}

Alias* Aliasing::find_alias(StorageState& state, GeometryId geometry) {
  for (Alias& alias : state.aliases)
    if (alias.geometry == geometry) return &alias;
  return nullptr;
}

// Replaces a stale entry of the same geometry; keeps how the view was made where the new entry does
// not know.
void Aliasing::set_alias(StorageState& state, const Alias& alias) {
  for (Alias& old : state.aliases) {
    if (old.geometry != alias.geometry || valid(state, old)) continue;
    old.value = alias.value;
    old.version = alias.version;
    if (alias.view != kNone) {
      old.parent = alias.parent;
      old.view = alias.view;
      old.view_output = alias.view_output;
    }
    return;
  }
  state.aliases.push_back(alias);
}

ValueId Aliasing::read(const at::Tensor& tensor, bool content) {
  if (!tensor.defined()) return kNone;
  if (!tensor.has_storage()) {
    const auto found = without_storage_.find(tensor.unsafeGetTensorImpl());
    return found != without_storage_.end() ? found->second.value : from_outside_(tensor);
  }
  const Place place = find(tensor);
  if (place.state == nullptr) return from_outside_(tensor);
  StorageState& state = *place.state;
  if (content && state.unwritten != kNone) make_constant(state, tensor);
  if (!detached_.empty()) {
    const auto found = detached_.find(tensor.unsafeGetTensorImpl());
    if (found != detached_.end() && found->second.version == state.version &&
        found->second.state == &state &&
        recording_.values[found->second.value].birth == state.birth &&
        matches(recording_.geometries[recording_.values[found->second.value].geometry], tensor,
                place.shift))
      return found->second.value;
  }
  resize_if_changed(state, tensor);
  if (const Alias* alias = find_alias(state, tensor, place.shift)) return alias->value;
  return regenerate(state, tensor, place.shift);
}

void Aliasing::bind(const at::Tensor& tensor, ValueId value, ValueId operand) {
  if (!tensor.has_storage()) {
    without_storage_.insert_or_assign(tensor.unsafeGetTensorImpl(), Weak{weak(tensor), value, 0});
    return;
  }
  const Place place = find(tensor);
  const GeometryId geometry = recording_.values[value].geometry;
  if (place.state == nullptr) {
    StorageState& state = add(tensor, false);
    state.aliases.push_back({geometry, value, 0, kNone, kNone, 0});
    state.tensors.push_back(weak(tensor));
    recording_.values[value].birth = state.birth;
    if (covers(recording_.geometries[geometry], state.nbytes)) {
      state.base = value;
      state.base_geometry = geometry;
    } else {
      state.pending.push_back({geometry, value, 0});
    }
    return;
  }
  StorageState& state = *place.state;
  if (!state.outside) state.tensors.push_back(weak(tensor));
  recording_.values[value].birth = state.birth;
  resize_if_changed(state, tensor);
  const Alias* known = find_alias(state, tensor, place.shift);
  if (known != nullptr && visible(known->value)) return;  // the operator returned what was there
  const Value& made = recording_.values[value];
  Alias alias{geometry, value, state.version, kNone, kNone, 0};
  if (operand != kNone && is_view_operator(*recording_.records[made.record].info)) {
    alias.parent = recording_.values[operand].geometry;
    alias.view = made.record;
    alias.view_output = made.output;
  }
  set_alias(state, alias);
}

void Aliasing::mark_unwritten(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage()) return;
  const Place place = find(tensor);
  if (place.state != nullptr && !place.state->outside)
    place.state->unwritten = recording_.records.size() - 1;
}

bool Aliasing::fill_on_host(const at::Tensor& tensor) {
  constexpr int64_t kSmall = 4096;
  if (!tensor.has_storage()) return false;
  const Place place = find(tensor);
  if (place.state == nullptr || place.state->unwritten == kNone || place.state->nbytes > kSmall)
    return false;
  return place.state->filled = true;
}

void Aliasing::make_constant(StorageState& state, const at::Tensor& tensor) {
  state.filled = false;
  Record& record = recording_.records[std::exchange(state.unwritten, kNone)];
  if (state.version > 0 || state.nbytes != storage_bytes(tensor)) return;
  const Geometry& geometry = recording_.geometries[recording_.values[record.values].geometry];
  const int64_t begin = tensor.storage_offset() * static_cast<int64_t>(tensor.itemsize());
  const at::Tensor made = view_memory(tensor, geometry.dtype, geometry.sizes, geometry.strides,
                                      geometry.offset - begin / geometry.item_size());
  record.kind = RecordKind::constant;
  record.index = static_cast<uint32_t>(recording_.constants.size());
  record.info = nullptr;
  record.operand_count = record.attribute_count = 0;
  record.composite = kNone;
  recording_.values[record.values].birth = 0;
  recording_.constants.push_back({copy_keeping_strides(made), true, {}});
}

ValueId Aliasing::bind_outside(const at::Tensor& tensor, ValueId value) {
  if (!tensor.has_storage()) {
    without_storage_.insert_or_assign(tensor.unsafeGetTensorImpl(), Weak{weak(tensor), value, 0});
    return kNone;
  }
  Place place = find(tensor);
  if (place.state == nullptr) place = place_outside(tensor);
  StorageState& state = *place.state;
  const GeometryId geometry = recording_.geometries.intern(tensor, place.shift);
  recording_.values[value].geometry = geometry;
  state.aliases.push_back({geometry, value, 0, kNone, kNone, 0});
  const ValueId first = state.owners.empty() ? kNone : state.owners.front();
  state.owners.push_back(value);
  if (state.base == kNone && place.shift == 0 &&
      covers(recording_.geometries[geometry], state.nbytes)) {
    state.base = value;
    state.base_geometry = geometry;
  }
  return first;
}

void Aliasing::bind_unwritten(const at::Tensor& tensor) { add(tensor, false); }

void Aliasing::bind_detached(const at::Tensor& tensor, ValueId value) {
  if (!tensor.has_storage()) return bind(tensor, value, kNone);
  StorageState* state = find(tensor).state;
  if (!state->outside) state->tensors.push_back(weak(tensor));
  recording_.values[value].birth = state->birth;
  detached_.insert_or_assign(tensor.unsafeGetTensorImpl(),
                             Weak{weak(tensor), value, state->version, state});
}

// ---- writes -------------------------------------------------------------------------------------

void Aliasing::write(const at::Tensor& tensor, ValueId value) {
  if (!tensor.has_storage()) return bind(tensor, value, kNone);
  const Place place = find(tensor);
  COMPOSIT_ASSERT(place.state != nullptr, "a write into memory that was never read");
  StorageState& state = *place.state;
  resize_if_changed(state, tensor);
  const GeometryId id = recording_.geometries.intern(tensor, place.shift);
  const Geometry& geometry = recording_.geometries[id];
  recording_.values[value].birth = state.birth;
  const bool covering = covers(geometry, state.nbytes);
  const bool readable = !geometry.conj && !geometry.neg && !overlaps_itself(geometry);
  if (state.filled && !covering) make_constant(state, tensor);
  ++state.version;
  state.unwritten = kNone;
  if (covering) {
    state.base = value;
    state.base_geometry = id;
    state.base_version = state.version;
    state.pending.clear();
  } else if (!state.pending.empty() && state.pending.back().geometry == id) {
    state.pending.back() = {id, value, state.version};
  } else {
    state.pending.push_back({id, value, state.version});
  }
  if (readable) set_alias(state, {id, value, state.version, kNone, kNone, 0});
}

ValueId Aliasing::base_of(const at::Tensor& tensor) {
  const Place place = find(tensor);
  if (place.state == nullptr) return kNone;
  resize_if_changed(*place.state, tensor);
  flush(*place.state);
  ensure_base(*place.state);
  return place.state->base;
}

GeometryId Aliasing::base_geometry(const at::Tensor& tensor) {
  const Place place = find(tensor);
  const int64_t nbytes = storage_bytes(tensor);
  if (place.shift != 0 || nbytes == place.state->nbytes) return place.state->base_geometry;
  return recording_.geometries.intern(flat_bytes(nbytes, tensor.device()));
}

void Aliasing::write_base(const at::Tensor& tensor, ValueId value) {
  const GeometryId geometry = base_geometry(tensor);
  StorageState& state = *find(tensor).state;
  if (geometry != state.base_geometry) state.nbytes = storage_bytes(tensor);
  state.base_geometry = geometry;
  recording_.values[value].birth = state.birth;
  if (state.filled) make_constant(state, tensor);
  state.base = value;
  state.base_version = ++state.version;
  state.unwritten = kNone;
  state.pending.clear();
  set_alias(state, {state.base_geometry, value, state.version, kNone, kNone, 0});
}

// resize_ and out= may let a storage grow: the base then is bytes.
void Aliasing::resize_if_changed(StorageState& state, const at::Tensor& tensor) {
  const int64_t nbytes = storage_bytes(tensor);
  if (find(tensor).shift != 0 || nbytes == state.nbytes) return;
  flush(state);
  ensure_base(state);
  const GeometryId bytes = recording_.geometries.intern(flat_bytes(nbytes, tensor.device()));
  state.base = emit(RecordKind::storage_resize, 0, {state.base}, bytes, state.birth);
  state.base_geometry = bytes;
  state.base_version = ++state.version;
  state.has_gaps = state.has_gaps || nbytes > state.nbytes;
  state.nbytes = nbytes;
}

void Aliasing::ensure_base(StorageState& state) {
  if (state.base != kNone) return;
  const Geometry bytes = flat_bytes(state.nbytes, state.device);
  state.base_geometry = recording_.geometries.intern(bytes);
  if (state.outside)
    state.base = emit(RecordKind::storage_of, 0, {state.owners.front()}, state.base_geometry, 0);
  else
    state.base = emit(RecordKind::storage_zeros, 0, {}, state.base_geometry, state.birth);
  state.has_gaps = !state.outside;
}

void Aliasing::flush(StorageState& state) {
  if (state.pending.empty()) return;
  ensure_base(state);
  const auto pending = std::move(state.pending);
  state.pending.clear();
  for (const PendingWrite& write : pending) state.base = scatter(state, write);
  state.base_version = state.version;
  set_alias(state, {state.base_geometry, state.base, state.version, kNone, kNone, 0});
}

}  // namespace flashlight::tracer
