#include "composit/interchange/pt2/format.h"

#include <cmath>
#include <optional>
#include <utility>

#include "composit/ir/error.h"

namespace composit::pt2 {

namespace {

constexpr std::pair<DType, int> kDTypes[] = {{DType::uint8, 1},
                                             {DType::int8, 2},
                                             {DType::int16, 3},
                                             {DType::int32, 4},
                                             {DType::int64, 5},
                                             {DType::float16, 6},
                                             {DType::float32, 7},
                                             {DType::float64, 8},
                                             {DType::complex32, 9},
                                             {DType::complex64, 10},
                                             {DType::complex128, 11},
                                             {DType::bool_, 12},
                                             {DType::bfloat16, 13},
                                             {DType::uint16, 28},
                                             {DType::float8_e4m3fn, 29},
                                             {DType::float8_e5m2, 30},
                                             {DType::float8_e4m3fnuz, 31},
                                             {DType::float8_e5m2fnuz, 32},
                                             {DType::float8_e8m0fnu, 33},
                                             {DType::uint32, 34},
                                             {DType::uint64, 35}};

constexpr std::pair<MemoryFormat, int> kMemoryFormats[] = {{MemoryFormat::contiguous, 1},
                                                           {MemoryFormat::channels_last, 2},
                                                           {MemoryFormat::channels_last_3d, 3},
                                                           {MemoryFormat::preserve, 4}};

constexpr std::pair<Layout, int> kLayouts[] = {{Layout::sparse, 1},     {Layout::sparse_csr, 2},
                                               {Layout::sparse_csc, 3}, {Layout::sparse_bsr, 4},
                                               {Layout::sparse_bsc, 5}, {Layout::mkldnn, 6},
                                               {Layout::strided, 7}};

template <class Key, size_t size>
std::optional<int> find(const std::pair<Key, int> (&table)[size], Key key) {
  for (const auto& [known, number] : table)
    if (known == key) return number;
  return std::nullopt;
}

template <class Key, size_t size>
std::optional<Key> key_in(const std::pair<Key, int> (&table)[size], int64_t number) {
  for (const auto& [key, known] : table)
    if (known == number) return key;
  return std::nullopt;
}

template <class Key, size_t size>
int number_in(const std::pair<Key, int> (&table)[size], Key key) {
  if (const auto number = find(table, key)) return *number;
  throw UserError("'" + std::string(name(key)) + "' has no number in the format");
}

}  // namespace

int number_of(DType dtype) { return number_in(kDTypes, dtype); }
int number_of(MemoryFormat format) { return number_in(kMemoryFormats, format); }
int number_of(Layout layout) { return number_in(kLayouts, layout); }

std::optional<DType> dtype_of(int64_t number) { return key_in(kDTypes, number); }
std::optional<MemoryFormat> memory_format_of(int64_t number) {
  return key_in(kMemoryFormats, number);
}
std::optional<Layout> layout_of(int64_t number) { return key_in(kLayouts, number); }

Json device_json(Device device) {
  const std::string text = name(device);
  const size_t colon = text.find(':');
  Json index;
  if (colon != std::string::npos) index = device.index;
  return {{"type", text.substr(0, colon)}, {"index", index}};
}

Json tensor_meta(const Type& type, bool requires_grad) {
  const auto integers = [](const std::vector<int64_t>& values) {
    Json list = Json::array();
    for (const int64_t value : values) list.push_back({{"as_int", value}});
    return list;
  };
  return {{"dtype", number_of(type.dtype)},    {"sizes", integers(type.sizes)},
          {"requires_grad", requires_grad},    {"device", device_json(type.device)},
          {"strides", integers(type.strides)}, {"storage_offset", {{"as_int", 0}}},
          {"layout", number_of(type.layout)}};
}

Json float_json(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

}  // namespace composit::pt2
