#include "composit/ir/dtype.h"

#include <array>
#include <charconv>

#include "composit/ir/error.h"

namespace composit {
namespace {

struct DTypeInfo {
  std::string_view name;
  uint8_t size;
};

constexpr auto kDTypeCount = static_cast<size_t>(DType::count_);
constexpr std::array<DTypeInfo, kDTypeCount> kDTypes = {{
    {"uint8", 1},
    {"int8", 1},
    {"int16", 2},
    {"int32", 4},
    {"int64", 8},
    {"float16", 2},
    {"float32", 4},
    {"float64", 8},
    {"complex32", 4},
    {"complex64", 8},
    {"complex128", 16},
    {"bool", 1},
    {"qint8", 1},
    {"quint8", 1},
    {"qint32", 4},
    {"bfloat16", 2},
    {"quint4x2", 1},
    {"quint2x4", 1},
    {"bits1x8", 1},
    {"bits2x4", 1},
    {"bits4x2", 1},
    {"bits8", 1},
    {"bits16", 2},
    {"float8_e5m2", 1},
    {"float8_e4m3fn", 1},
    {"float8_e5m2fnuz", 1},
    {"float8_e4m3fnuz", 1},
    {"uint16", 2},
    {"uint32", 4},
    {"uint64", 8},
    {"uint1", 1},
    {"uint2", 1},
    {"uint3", 1},
    {"uint4", 1},
    {"uint5", 1},
    {"uint6", 1},
    {"uint7", 1},
    {"int1", 1},
    {"int2", 1},
    {"int3", 1},
    {"int4", 1},
    {"int5", 1},
    {"int6", 1},
    {"int7", 1},
    {"float8_e8m0fnu", 1},
    {"float4_e2m1fn_x2", 1},
}};

constexpr std::array<std::string_view, 8> kLayouts = {"strided",    "sparse",     "sparse_csr",
                                                      "mkldnn",     "sparse_csc", "sparse_bsr",
                                                      "sparse_bsc", "jagged"};
constexpr std::array<std::string_view, 4> kMemoryFormats = {"contiguous_format", "preserve_format",
                                                            "channels_last", "channels_last_3d"};
// c10::DeviceType's names by number.
constexpr std::array<std::string_view, 21> kDevices = {
    "cpu",  "cuda", "mkldnn", "opengl", "opencl", "ideep", "hip",
    "fpga", "maia", "xla",    "vulkan", "metal",  "xpu",   "mps",
    "meta", "hpu",  "ve",     "lazy",   "ipu",    "mtia",  "privateuseone"};

template <class Enum, size_t N>
std::optional<Enum> from_name(const std::array<std::string_view, N>& names, std::string_view name) {
  for (size_t i = 0; i < N; ++i)
    if (names[i] == name) return static_cast<Enum>(i);
  return std::nullopt;
}

template <class Enum, size_t N>
std::string_view checked(const std::array<std::string_view, N>& names, Enum value) {
  const auto index = static_cast<size_t>(value);
  COMPOSIT_ASSERT(index < N, "enumerator out of range");
  return names[index];
}

const DTypeInfo& info(DType dtype) {
  const auto index = static_cast<size_t>(dtype);
  COMPOSIT_ASSERT(index < kDTypeCount, "dtype out of range");
  return kDTypes[index];
}

}  // namespace

std::string_view name(DType dtype) { return info(dtype).name; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (size_t i = 0; i < kDTypeCount; ++i)
    if (kDTypes[i].name == name) return static_cast<DType>(i);
  return std::nullopt;
}

size_t item_size(DType dtype) { return info(dtype).size; }

bool is_valid(DType dtype) { return static_cast<size_t>(dtype) < kDTypeCount; }

bool is_floating_point(DType dtype) {
  return dtype == DType::float16 || dtype == DType::bfloat16 || dtype == DType::float32 ||
         dtype == DType::float64;
}

bool is_half(DType dtype) { return dtype == DType::float16 || dtype == DType::bfloat16; }

bool is_complex(DType dtype) {
  return dtype == DType::complex32 || dtype == DType::complex64 || dtype == DType::complex128;
}

bool is_computable(DType dtype) {
  const bool integer = dtype <= DType::int64 || (dtype >= DType::uint16 && dtype <= DType::uint64);
  return integer || is_floating_point(dtype) || is_complex(dtype) || dtype == DType::bool_;
}

std::string name(Device device) {
  const auto type = static_cast<size_t>(device.type);
  COMPOSIT_ASSERT(type < kDevices.size(), "device type out of range");
  std::string text(kDevices[type]);
  if (device.index >= 0) text += ":" + std::to_string(device.index);
  return text;
}

std::optional<Device> device_from_name(std::string_view name) {
  const auto colon = name.find(':');
  const auto type = from_name<int>(kDevices, name.substr(0, colon));
  if (!type) return std::nullopt;
  Device device{static_cast<int8_t>(*type), -1};
  if (colon == std::string_view::npos) return device;
  const char* const end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + colon + 1, end, device.index);
  if (error != std::errc() || stop != end || device.index < 0) return std::nullopt;
  return device;
}

bool is_valid(Device device) {
  return static_cast<uint8_t>(device.type) < kDevices.size() && device.index >= -1;
}
bool is_valid(Layout layout) { return static_cast<size_t>(layout) < kLayouts.size(); }
bool is_valid(MemoryFormat format) { return static_cast<size_t>(format) < kMemoryFormats.size(); }

std::string_view name(Layout layout) { return checked(kLayouts, layout); }
std::optional<Layout> layout_from_name(std::string_view name) {
  return from_name<Layout>(kLayouts, name);
}
std::string_view name(MemoryFormat format) { return checked(kMemoryFormats, format); }
std::optional<MemoryFormat> memory_format_from_name(std::string_view name) {
  return from_name<MemoryFormat>(kMemoryFormats, name);
}

}  // namespace composit
