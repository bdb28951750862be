#include "composit/interchange/stablehlo/types.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include "composit/ir/error.h"
#include "composit/ops/native.h"

namespace composit::stablehlo {
namespace {

constexpr size_t kLongestList = 16;  // numbers that are written as such

std::string hex_of(const std::byte* bytes, size_t count) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string text;
  text.reserve(2 * count);
  for (size_t i = 0; i < count; ++i) {
    const auto value = std::to_integer<unsigned>(bytes[i]);
    text += kDigits[value >> 4];
    text += kDigits[value & 15];
  }
  return text;
}

// The bits of a number, the highest first, as MLIR writes what is not finite.
std::string bits_text(const std::byte* number, size_t size) {
  std::vector<std::byte> bytes(number, number + size);
  std::reverse(bytes.begin(), bytes.end());
  return "0x" + hex_of(bytes.data(), size);
}

std::string real_text(double value, const std::byte* bytes, size_t size) {
  if (!std::isfinite(value)) return bits_text(bytes, size);
  char text[32];
  std::snprintf(text, sizeof text, "%.17e", value);
  return text;
}

std::vector<std::string> numbers_of(const Array& array) {
  const DType dtype = array.type().dtype;
  std::vector<std::string> numbers;
  if (is_complex(dtype)) {
    const size_t half = item_size(dtype) / 2;
    const std::byte* at = array.data();
    for (const std::complex<double>& value : elements<std::complex<double>>(array)) {
      numbers.push_back("(" + real_text(value.real(), at, half) + ", " +
                        real_text(value.imag(), at + half, half) + ")");
      at += 2 * half;
    }
  } else if (is_floating_point(dtype)) {
    const std::byte* at = array.data();
    for (const double value : elements<double>(array)) {
      numbers.push_back(real_text(value, at, item_size(dtype)));
      at += item_size(dtype);
    }
  } else if (dtype == DType::bool_) {
    for (const int64_t value : elements<int64_t>(array))
      numbers.emplace_back(value != 0 ? "true" : "false");
  } else {
    for (const int64_t value : elements<int64_t>(array))
      numbers.push_back(dtype == DType::uint64 ? std::to_string(static_cast<uint64_t>(value))
                                               : std::to_string(value));
  }
  return numbers;
}

bool is_uniform(const Array& array) {
  const auto size = item_size(array.type().dtype);
  for (int64_t i = 1; i < array.type().numel(); ++i)
    if (std::memcmp(array.data(), array.data() + static_cast<size_t>(i) * size, size) != 0)
      return false;
  return true;
}

Array first_of(const Array& array) {
  return Array::copy_of(tensor_type(array.type().dtype, {}), array.data());
}

}  // namespace

std::string element_text(DType dtype) {
  constexpr std::pair<DType, const char*> kNames[] = {{DType::float32, "f32"},
                                                      {DType::float64, "f64"},
                                                      {DType::float16, "f16"},
                                                      {DType::bfloat16, "bf16"},
                                                      {DType::bool_, "i1"},
                                                      {DType::int8, "i8"},
                                                      {DType::int16, "i16"},
                                                      {DType::int32, "i32"},
                                                      {DType::int64, "i64"},
                                                      {DType::uint8, "ui8"},
                                                      {DType::uint16, "ui16"},
                                                      {DType::uint32, "ui32"},
                                                      {DType::uint64, "ui64"},
                                                      {DType::complex64, "complex<f32>"},
                                                      {DType::complex128, "complex<f64>"},
                                                      {DType::float8_e4m3fn, "f8E4M3FN"},
                                                      {DType::float8_e4m3fnuz, "f8E4M3FNUZ"},
                                                      {DType::float8_e5m2, "f8E5M2"},
                                                      {DType::float8_e5m2fnuz, "f8E5M2FNUZ"}};
  for (const auto& [known, text] : kNames)
    if (known == dtype) return text;
  throw UserError("StableHLO has no " + std::string(name(dtype)));
}

std::string type_text(const Type& type) {
  if (type.layout != Layout::strided) throw UserError("StableHLO has no sparse tensors");
  std::string text = "tensor<";
  for (const int64_t size : type.sizes) text += std::to_string(size) + "x";
  return text + element_text(type.dtype) + ">";
}

std::string value_text(const Array& given) {
  if (given.type().conj || given.type().neg)
    throw UserError("a constant is lazily conjugated, which StableHLO has not");
  const Array array = given.contiguous();
  const Type& type = array.type();
  if (type.numel() == 0) return "dense<>";
  if (is_uniform(array)) return "dense<" + numbers_of(first_of(array))[0] + ">";
  if (type.rank() != 1 || static_cast<size_t>(type.numel()) > kLongestList)
    return "dense<\"0x" + hex_of(array.data(), static_cast<size_t>(type.nbytes())) + "\">";
  std::string text;
  for (const std::string& number : numbers_of(array)) text += (text.empty() ? "" : ", ") + number;
  return "dense<[" + text + "]>";
}

}  // namespace composit::stablehlo
