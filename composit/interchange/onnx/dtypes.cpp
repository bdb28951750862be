#include "composit/interchange/onnx/dtypes.h"

#include <string>
#include <utility>

#include "composit/ir/error.h"

namespace composit::onnx {

namespace {

constexpr std::pair<DType, int> kTypes[] = {{DType::float32, 1},
                                            {DType::uint8, 2},
                                            {DType::int8, 3},
                                            {DType::uint16, 4},
                                            {DType::int16, 5},
                                            {DType::int32, 6},
                                            {DType::int64, 7},
                                            {DType::bool_, 9},
                                            {DType::float16, 10},
                                            {DType::float64, 11},
                                            {DType::uint32, 12},
                                            {DType::uint64, 13},
                                            {DType::complex64, 14},
                                            {DType::complex128, 15},
                                            {DType::bfloat16, 16},
                                            {DType::float8_e4m3fn, 17},
                                            {DType::float8_e4m3fnuz, 18},
                                            {DType::float8_e5m2, 19},
                                            {DType::float8_e5m2fnuz, 20}};

// Two to a byte: written where a row says so, and not read.
constexpr int kInt4 = 22;

}  // namespace

std::optional<int> data_type(DType dtype) {
  if (dtype == DType::int4) return kInt4;
  for (const auto& [known, number] : kTypes)
    if (known == dtype) return number;
  return std::nullopt;
}

std::optional<DType> dtype_of(int64_t data_type) {
  for (const auto& [known, number] : kTypes)
    if (number == data_type) return known;
  return std::nullopt;
}

int data_type_of(DType dtype) {
  if (const auto number = data_type(dtype)) return *number;
  throw UserError("ONNX has no " + std::string(name(dtype)));
}

}  // namespace composit::onnx
