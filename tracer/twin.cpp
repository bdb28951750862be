#include "tracer/twin.h"

#include <algorithm>
#include <unordered_set>

namespace flashlight::tracer {
namespace {

// Their functional forms give bool whatever the operands are.
bool gives_bool(const std::string& base) {
  static const std::unordered_set<std::string> names = {
      "eq",         "ne",          "lt",         "le",
      "gt",         "ge",          "greater",    "greater_equal",
      "less",       "less_equal",  "not_equal",  "logical_and",
      "logical_or", "logical_xor", "logical_not"};
  return names.count(base) > 0;
}

}  // namespace

const OpInfo* functional_twin(const Recording& recording, const Record& record) {
  const OpInfo* twin = record.info->twin;
  if (twin == nullptr) return nullptr;
  std::vector<c10::ScalarType> results, operands;
  for (uint32_t i = 0; i < record.value_count; ++i) {
    const GeometryId geometry = recording.values[record.values + i].geometry;
    if (geometry == kNone) return nullptr;
    results.push_back(recording.geometries[geometry].dtype);
  }
  for (uint32_t i = 0; i < record.operand_count; ++i) {
    const uint32_t operand = recording.operands[record.operands + i];
    if (operand >= kListMark || recording.values[operand].geometry == kNone) continue;
    operands.push_back(recording.geometries[recording.values[operand].geometry].dtype);
  }
  if (gives_bool(std::string(twin->name.base_name()))) {
    const bool all_bool = std::all_of(results.begin(), results.end(), [](c10::ScalarType dtype) {
      return dtype == c10::ScalarType::Bool;
    });
    return all_bool ? twin : nullptr;
  }
  // Promotion may give the twin another dtype than that of the written operand: only a widening
  // does.
  for (c10::ScalarType result : results)
    for (c10::ScalarType operand : operands)
      if (c10::promoteTypes(result, operand) != result && operand != c10::ScalarType::Long)
        return nullptr;
  return twin;
}

}  // namespace flashlight::tracer
