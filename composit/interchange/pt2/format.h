// The names and numbers of torch.export's files, and the types of tensors in them.
//
// Numbers are those of torch/_export/serde/schema.py, whose schema version is 8; they are not
// c10's.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

#include "composit/ir/type.h"

namespace composit::pt2 {

using Json = nlohmann::ordered_json;

inline constexpr int kMajor = 8, kMinor = 20;   // of the schema; torch compares the major one
inline constexpr int kAtenVersion = 10;         // of ATen's operators
inline constexpr const char* kModel = "model";  // torch.export.load looks for this name

// UserError for what has no number in the format: quantised dtypes, jagged tensors.
int number_of(DType dtype);
int number_of(MemoryFormat format);
int number_of(Layout layout);
// The inverse; nothing for a number that has no name.
std::optional<DType> dtype_of(int64_t number);
std::optional<MemoryFormat> memory_format_of(int64_t number);
std::optional<Layout> layout_of(int64_t number);

Json device_json(Device device);
// A tensor's type. UserError for a dtype or layout that the format does not have.
Json tensor_meta(const Type& type, bool requires_grad = false);
// A number; NaN and infinities as text.
Json float_json(double value);

}  // namespace composit::pt2
