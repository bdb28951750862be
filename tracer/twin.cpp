#include "tracer/twin.h"

#include <ATen/native/TypeProperties.h>

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

bool takes_indices(const c10::FunctionSchema& schema) {
  const auto& arguments = schema.arguments();
  return std::any_of(arguments.begin(), arguments.end(), [](const c10::Argument& argument) {
    return argument.name() == "index" || argument.name() == "indices";
  });
}

// True if LibTorch computes with another dtype than that of `written`. Beside a tensor with axes,
// only the category of a tensor without axes counts: `x *= 0.5`, where 0.5 is a float64.
bool promotes(const Geometry& written, const Geometry& operand) {
  at::native::ResultTypeState state;
  for (const Geometry* one : {&written, &operand}) {
    c10::ScalarType& so_far = one->sizes.empty() ? state.zeroResult : state.dimResult;
    so_far =
        so_far == c10::ScalarType::Undefined ? one->dtype : c10::promoteTypes(so_far, one->dtype);
  }
  return at::native::result_type(state) != written.dtype;
}

}  // namespace

const OpInfo* functional_twin(const Recording& recording, const Record& record) {
  const OpInfo* twin = record.info->twin;
  if (twin == nullptr) return nullptr;
  const auto geometry_of = [&recording](uint32_t value) -> const Geometry* {
    const GeometryId id = recording.values[value].geometry;
    return id == kNone ? nullptr : &recording.geometries[id];
  };
  const bool indexed = takes_indices(*record.info->schema);
  const bool to_bool = gives_bool(std::string(twin->name.base_name()));
  for (uint32_t i = 0; i < record.value_count; ++i) {
    const Geometry* result = geometry_of(record.values + i);
    if (result == nullptr) return nullptr;
    if (to_bool && result->dtype != c10::ScalarType::Bool) return nullptr;
    for (uint32_t j = 0; j < record.operand_count && !to_bool; ++j) {
      const uint32_t operand = recording.operands[record.operands + j];
      if (operand >= kListMark) continue;
      const Geometry* given = geometry_of(operand);
      if (given == nullptr || (indexed && given->dtype == c10::ScalarType::Long)) continue;
      if (promotes(*result, *given)) return nullptr;
    }
  }
  return twin;
}

}  // namespace flashlight::tracer
