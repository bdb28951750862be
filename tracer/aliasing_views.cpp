// Computes the value of a view from the storage's base, and the base after a write through a view.
#include <algorithm>
#include <utility>
#include <vector>

#include "tracer/aliasing.h"
#include "tracer/view_chain.h"

namespace flashlight::tracer {

std::vector<Alias> Aliasing::path_to_base(StorageState& state, GeometryId geometry,
                                          bool with_inverse) {
  constexpr size_t kLongest = 32;
  std::vector<Alias> path;
  if (!chains_) return path;
  while (geometry != state.base_geometry) {
    const Alias* alias = find_alias(state, geometry);
    if (alias == nullptr || alias->view == kNone || path.size() == kLongest) return {};
    const Record& record = recording_.records[alias->view];
    if (with_inverse &&
        !inverse_of(recording_, record, alias->view_output, recording_.geometries[alias->parent]))
      return {};
    path.push_back(*alias);
    geometry = alias->parent;
  }
  return path;
}

ValueId Aliasing::repeat_view(const Alias& link, ValueId operand, RecordId birth) {
  Record record = recording_.records[link.view];
  const ValueId first = record.values;
  record.replays = true;
  record.composite = recording_.current_composite;
  record.operands = recording_.operands.push(operand);
  const ValueId values = recording_.values.size();
  for (uint32_t i = 0; i < record.value_count; ++i) {
    Value value = recording_.values[first + i];
    value.record = recording_.records.size();
    value.birth = birth;
    recording_.values.push(value);
  }
  record.values = values;
  recording_.records.push(record);
  return values + link.view_output;
}

ValueId Aliasing::regenerate(StorageState& state, const at::Tensor& tensor, int64_t shift) {
  flush(state);
  ensure_base(state);
  const GeometryId geometry = recording_.geometries.intern(tensor, shift);
  ValueId value = state.base;
  if (state.has_gaps && tensor.numel() > 0 && !lies_in_alias(state, geometry))
    recording_.remark("reads memory that no operator wrote, at sizes " + c10::str(tensor.sizes()));
  if (geometry != state.base_geometry) {
    const std::vector<Alias> path = path_to_base(state, geometry, false);
    if (path.empty()) {
      const ValueId base = row_major(state.base, state.birth);
      value = emit(RecordKind::storage_view, 0, {base}, geometry, state.birth);
    } else {
      for (auto link = path.rbegin(); link != path.rend(); ++link)
        value = repeat_view(*link, value, state.birth);
    }
  }
  set_alias(state, {geometry, value, state.version, kNone, kNone, 0});
  return value;
}

// Is the geometry part of a tensor that some operator made or wrote?
bool Aliasing::lies_in_alias(const StorageState& state, GeometryId geometry) const {
  return std::any_of(state.aliases.begin(), state.aliases.end(), [&](const Alias& alias) {
    return alias.geometry != state.base_geometry &&
           lies_in(recording_.geometries[geometry], recording_.geometries[alias.geometry]);
  });
}

ValueId Aliasing::scatter(StorageState& state, const PendingWrite& write) {
  const std::vector<Alias> path = path_to_base(state, write.geometry, true);
  if (path.empty()) return scatter_by_memory(state, write);
  std::vector<ValueId> parents{state.base};  // from the base down to the parent of the written view
  for (size_t i = path.size() - 1; i > 0; --i)
    parents.push_back(repeat_view(path[i], parents.back(), state.birth));
  ValueId value = write.value;
  for (const Alias& link : path) {
    const Geometry& parent = recording_.geometries[link.parent];
    const Inverse inverse =
        *inverse_of(recording_, recording_.records[link.view], link.view_output, parent);
    const ValueId old = parents.back();
    parents.pop_back();
    if (inverse.op == nullptr) continue;
    Record record;
    record.info = inverse.op;
    record.attributes = recording_.attributes.size();
    for (const c10::IValue& attribute : inverse.attributes) recording_.attributes.push(attribute);
    record.attribute_count = static_cast<uint32_t>(inverse.attributes.size());
    const ValueId operands[] = {old, value};
    value = written_as(
        write,
        recording_.push(record, inverse.takes_parent ? c10::ArrayRef<ValueId>(operands, 2) : value,
                        link.parent, state.birth));
  }
  return value;
}

ValueId Aliasing::permute(ValueId value, c10::ArrayRef<int64_t> order, RecordId birth) {
  static const OpInfo* const info = find_op("aten::permute");
  Record record;
  record.info = info;
  record.replays = true;
  record.attributes = recording_.attributes.size();
  record.attribute_count = 1;
  recording_.attributes.push(c10::IValue(order.vec()));
  const Geometry from = recording_.geometries[recording_.values[value].geometry];
  Geometry geometry = from;
  for (size_t i = 0; i < order.size(); ++i) {
    geometry.sizes[i] = from.sizes[static_cast<size_t>(order[i])];
    geometry.strides[i] = from.strides[static_cast<size_t>(order[i])];
  }
  return recording_.push(record, value, recording_.geometries.intern(std::move(geometry)), birth);
}

// `as_strided` speaks of memory, and who computes with a graph of indices: what it reads lies in
// the order of the indices. A base with gaps stays what it is, and is read by replays alone.
ValueId Aliasing::row_major(ValueId base, RecordId birth) {
  const Geometry& geometry = recording_.geometries[recording_.values[base].geometry];
  if (geometry.layout != c10::Layout::Strided || !is_dense(geometry) || is_row_major(geometry))
    return base;
  return permute(base, memory_order(geometry), birth);
}

ValueId Aliasing::scatter_by_memory(StorageState& state, const PendingWrite& write) {
  const ValueId base = row_major(state.base, state.birth);
  const GeometryId geometry =
      base == state.base ? state.base_geometry : recording_.values[base].geometry;
  const ValueId written = written_as(write, emit(RecordKind::storage_scatter, write.geometry,
                                                 {base, write.value}, geometry, state.birth));
  if (base == state.base) return written;
  const auto order = memory_order(recording_.geometries[recording_.values[state.base].geometry]);
  std::vector<int64_t> back(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return written_as(write, permute(written, back, state.birth));
}

// Putting a write into its base belongs to the operator that wrote.
ValueId Aliasing::written_as(const PendingWrite& write, ValueId value) {
  const Record& writer = recording_.records[recording_.values[write.value].record];
  if (writer.kind != RecordKind::op || writer.grad) return value;
  Record& record = recording_.records[recording_.values[value].record];
  record.grad = false;
  record.rewrites = true;
  return value;
}

ValueId Aliasing::emit(RecordKind kind, uint32_t index, std::initializer_list<ValueId> operands,
                       GeometryId geometry, RecordId birth) {
  Record record;
  record.kind = kind;
  record.index = index;
  return recording_.push(record, operands, geometry, birth);
}

}  // namespace flashlight::tracer
