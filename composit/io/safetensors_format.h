// The constants of the format, for the reader and the writer of safetensors files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "composit/ir/dtype.h"

namespace composit::io {

inline constexpr uint64_t kAlignment = 64;  // of the data, in bytes from the start of the file
inline constexpr uint64_t kMaxHeaderSize = 100'000'000;  // the reference implementation's limit
inline constexpr std::string_view kMetadataKey = "__metadata__";
inline constexpr std::string_view kPaddingPrefix = "__padding__.";
inline constexpr std::string_view kDTypePrefix = "composit.dtype:";

// "F32"; none for dtypes the format does not know.
std::optional<std::string_view> safetensors_name(DType dtype);
std::optional<DType> dtype_from_safetensors(std::string_view name);

}  // namespace composit::io
