// Element types, devices, layouts: torch's, with torch's numbering, so that a conversion is a cast.
//
//   name(DType::float32) == "float32";   item_size(DType::float32) == 4;
//
// composit carries every dtype torch has; it computes with those of `is_computable`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace composit {

// Order and numbers are c10::ScalarType's; the tracer asserts it at compile time.
// clang-format off
enum class DType : int8_t {
  uint8, int8, int16, int32, int64, float16, float32, float64, complex32, complex64, complex128,
  bool_, qint8, quint8, qint32, bfloat16, quint4x2, quint2x4, bits1x8, bits2x4, bits4x2, bits8,
  bits16, float8_e5m2, float8_e4m3fn, float8_e5m2fnuz, float8_e4m3fnuz, uint16, uint32, uint64,
  uint1, uint2, uint3, uint4, uint5, uint6, uint7, int1, int2, int3, int4, int5, int6, int7,
  float8_e8m0fnu, float4_e2m1fn_x2,
  count_
};
// clang-format on

std::string_view name(DType dtype);                           // "float32", "bool", "bfloat16"
std::optional<DType> dtype_from_name(std::string_view name);  // inverse of `name`
size_t item_size(DType dtype);                                // bytes per element
bool is_computable(DType dtype);      // not quantised, bits, sub-byte or float8
bool is_floating_point(DType dtype);  // real floating point, complex excluded
bool is_complex(DType dtype);         // complex32, complex64, complex128
bool is_half(DType dtype);            // a floating point type of 16 bits

bool is_valid(DType dtype);  // one of the above, `count_` excluded

// Numbers are c10::DeviceType's. Index -1: the current device of that type.
struct Device {
  int8_t type = 0;    // 0: the CPU
  int8_t index = -1;  // which device of that type
  bool operator==(const Device&) const = default;
};
std::string name(Device device);  // "cpu", "cuda:0"
std::optional<Device> device_from_name(
    std::string_view name);    // inverse of `name`; nothing for other text
bool is_valid(Device device);  // a type and an index that torch has

// Numbers are c10::Layout's.
// clang-format off
enum class Layout : int8_t {
  strided, sparse, sparse_csr, mkldnn, sparse_csc, sparse_bsr, sparse_bsc, jagged, count_
};
// clang-format on
std::string_view name(Layout layout);                           // "strided", "sparse", …
std::optional<Layout> layout_from_name(std::string_view name);  // inverse of `name`
bool is_valid(Layout layout);  // one of the above, `count_` excluded

// Numbers are c10::MemoryFormat's.
enum class MemoryFormat : int8_t { contiguous, preserve, channels_last, channels_last_3d, count_ };
std::string_view name(MemoryFormat format);  // "contiguous", "preserve", …
std::optional<MemoryFormat> memory_format_from_name(std::string_view name);  // inverse of `name`
bool is_valid(MemoryFormat format);  // one of the above, `count_` excluded

}  // namespace composit
