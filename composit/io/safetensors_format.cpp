#include "composit/io/safetensors_format.h"

#include <array>
#include <utility>

namespace composit::io {
namespace {

// F4 and the F6s are missing: the format counts their elements in bits, torch in bytes.
constexpr std::array<std::pair<DType, std::string_view>, 19> kNames = {{
    {DType::bool_, "BOOL"},
    {DType::uint8, "U8"},
    {DType::int8, "I8"},
    {DType::int16, "I16"},
    {DType::int32, "I32"},
    {DType::int64, "I64"},
    {DType::uint16, "U16"},
    {DType::uint32, "U32"},
    {DType::uint64, "U64"},
    {DType::float16, "F16"},
    {DType::bfloat16, "BF16"},
    {DType::float32, "F32"},
    {DType::float64, "F64"},
    {DType::complex64, "C64"},
    {DType::float8_e5m2, "F8_E5M2"},
    {DType::float8_e4m3fn, "F8_E4M3"},
    {DType::float8_e8m0fnu, "F8_E8M0"},
    {DType::float8_e5m2fnuz, "F8_E5M2FNUZ"},
    {DType::float8_e4m3fnuz, "F8_E4M3FNUZ"},
}};

}  // namespace

std::optional<std::string_view> safetensors_name(DType dtype) {
  for (const auto& [known, name] : kNames)
    if (known == dtype) return name;
  return std::nullopt;
}

std::optional<DType> dtype_from_safetensors(std::string_view name) {
  for (const auto& [dtype, known] : kNames)
    if (known == name) return dtype;
  return std::nullopt;
}

}  // namespace composit::io
