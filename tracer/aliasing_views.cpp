// Computes the value of a view from the storage's base, and the base after a write through a view.
#include <algorithm>

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
      value = emit(RecordKind::storage_view, 0, {state.base}, geometry, state.birth);
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
  if (path.empty())
    return written_as(write, emit(RecordKind::storage_scatter, write.geometry,
                                  {state.base, write.value}, state.base_geometry, state.birth));
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
