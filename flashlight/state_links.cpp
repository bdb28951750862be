#include "flashlight/state_links.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <unordered_map>

#include "tracer/memory_view.h"

namespace flashlight {
namespace {

using tracer::Record;
using tracer::RecordId;
using tracer::Recording;
using tracer::RecordKind;
using tracer::Survivor;
using tracer::ValueId;

bool is_source(const Record& record) {
  return record.kind == RecordKind::input || record.kind == RecordKind::constant;
}

// The tensor as which a source came in, if the program might keep it; else undefined.
at::Tensor came_in(const Recording& recording, const Record& record) {
  if (record.kind == RecordKind::constant) {
    const auto& constant = recording.constants[record.index];
    return constant.number ? at::Tensor() : constant.tensor;
  }
  const auto& input = recording.inputs[record.index];
  if (input.kind == composit::InputKind::user_input) return {};
  return input.came_in.defined() ? input.came_in : input.tensor;
}

// "state_0", or the next number that no input has.
std::string free_name(const Recording& recording) {
  for (int number = 0;; ++number) {
    std::string name = "state_" + std::to_string(number);
    const bool taken = std::any_of(recording.inputs.begin(), recording.inputs.end(),
                                   [&](const auto& input) { return input.name == name; });
    if (!taken) return name;
  }
}

}  // namespace

std::vector<StateLink> find_links(const Recording& before, const Recording& after) {
  std::unordered_map<const c10::StorageImpl*, const Survivor*> alive;
  for (const Survivor& survivor : before.survivors)
    if (!survivor.storage.expired())
      alive.emplace(survivor.storage._unsafe_get_target(), &survivor);
  std::vector<StateLink> links;
  if (alive.empty()) return links;
  for (RecordId id = 0; id < after.records.size(); ++id) {
    if (!is_source(after.records[id])) continue;
    const at::Tensor tensor = came_in(after, after.records[id]);
    if (!tensor.defined() || !tensor.has_storage()) continue;
    const auto found = alive.find(tensor.storage().unsafeGetStorageImpl());
    if (found == alive.end()) continue;
    for (const Survivor::View& view : found->second->views)
      if (tracer::matches(before.geometries[view.geometry], tensor, 0)) {
        links.push_back({id, view.value});
        break;
      }
  }
  return links;
}

bool same_form(const Recording& a, const Recording& b) {
  if (a.records.size() != b.records.size()) return false;
  for (RecordId id = 0; id < a.records.size(); ++id) {
    const Record &x = a.records[id], &y = b.records[id];
    if (is_source(x) != is_source(y) || (!is_source(x) && x.kind != y.kind)) return false;
    if (x.info != y.info || x.operand_count != y.operand_count || x.value_count != y.value_count)
      return false;
    for (uint32_t i = 0; i < x.operand_count; ++i)
      if (a.operands[x.operands + i] != b.operands[y.operands + i]) return false;
  }
  return true;
}

bool grows(const Recording& recording, const StateLink& link) {
  const auto type = [&](ValueId value) {
    const auto geometry = recording.values[value].geometry;
    return geometry == tracer::kNone ? composit::undefined_type()
                                     : tracer::type_of(recording.geometries[geometry]);
  };
  const composit::Type now = type(recording.records[link.source].values), next = type(link.next);
  return now.dtype != next.dtype || now.sizes != next.sizes;
}

bool fits(const Recording& recording, const std::vector<StateLink>& links) {
  return std::all_of(links.begin(), links.end(), [&](const StateLink& link) {
    return link.source < recording.records.size() && link.next < recording.values.size() &&
           is_source(recording.records[link.source]);
  });
}

void apply_links(Recording& recording, const std::vector<StateLink>& links) {
  for (const StateLink& link : links) {
    Record& record = recording.records[link.source];
    if (record.kind == RecordKind::constant) {
      tracer::RecordedInput input;
      input.name = free_name(recording);
      input.kind = composit::InputKind::buffer;
      input.tensor = recording.constants[record.index].tensor;
      input.value = record.values;
      record.kind = RecordKind::input;
      record.index = static_cast<uint32_t>(recording.inputs.size());
      recording.inputs.push_back(std::move(input));
    }
    const uint32_t index = record.index;
    const bool written = std::any_of(recording.mutations.begin(), recording.mutations.end(),
                                     [&](const auto& m) { return m.input == index; });
    if (!written) recording.mutations.push_back({index, link.next});
  }
}

at::Tensor tensor_left(const Recording& recording, ValueId value) {
  for (const Survivor& survivor : recording.survivors)
    for (const Survivor::View& view : survivor.views) {
      if (view.value != value) continue;
      auto storage = survivor.storage.lock();
      if (!storage) return {};
      const tracer::Geometry& geometry = recording.geometries[view.geometry];
      at::Tensor base = at::empty({0}, at::TensorOptions().dtype(geometry.dtype));
      base.unsafeGetTensorImpl()->set_storage_keep_dtype(c10::Storage(std::move(storage)));
      return tracer::view_memory(base, geometry.dtype, geometry.sizes, geometry.strides,
                                 geometry.offset, geometry.conj, geometry.neg);
    }
  return {};
}

std::string maker_of(const Recording& recording, ValueId value) {
  const Record& record = recording.records[recording.values[value].record];
  std::string place = record.info != nullptr ? record.info->name.str() : "the program";
  if (record.place.module != tracer::kNone && !recording.modules[record.place.module].empty())
    place += " in " + recording.modules[record.place.module];
  if (record.place.line != tracer::kNone) place += " (" + recording.lines[record.place.line] + ")";
  return place;
}

}  // namespace flashlight
