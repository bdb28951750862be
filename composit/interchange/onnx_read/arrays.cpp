#include "composit/interchange/onnx_read/arrays.h"

#include <algorithm>
#include <cstring>

#include "composit/interchange/onnx/dtypes.h"
#include "composit/ir/error.h"
#include "composit/ir/literal.h"

namespace composit::onnx_read {
namespace {

namespace fs = std::filesystem;

std::string quoted(std::string_view name) { return "'" + std::string(name) + "'"; }

// The offset or the length of a tensor in another file.
uint64_t number_of(std::string_view key, std::string_view text) {
  const auto number = parse_int(text);
  if (!number || *number < 0)
    throw UserError(std::string(key) + ": expected a number of bytes, received " + quoted(text));
  return static_cast<uint64_t>(*number);
}

void expect_bytes(const Type& type, uint64_t received) {
  if (received != static_cast<uint64_t>(type.nbytes()))
    throw UserError("expected " + std::to_string(type.nbytes()) + " bytes for " +
                    std::to_string(type.numel()) + " elements of " + std::string(name(type.dtype)) +
                    ", received " + std::to_string(received));
}

template <class T>
void expect_count(const std::vector<T>& items, int64_t expected) {
  if (items.size() != static_cast<uint64_t>(expected))
    throw UserError("expected " + std::to_string(expected) + " elements, received " +
                    std::to_string(items.size()));
}

// What a byte that is neither 0 nor 1 is as a bool is not said.
Array bools_of(const Type& type, std::string_view bytes) {
  std::string bools(bytes);
  for (char& byte : bools) byte = byte == 0 ? 0 : 1;
  return Array::copy_of(type, bools.data());
}

}  // namespace

Type type_of(int64_t data_type, const std::vector<int64_t>& sizes) {
  const auto dtype = onnx::dtype_of(data_type);
  if (!dtype)
    throw UserError(data_type == 8 ? "texts are no tensors here"
                                   : "there is no dtype for ONNX's data type " +
                                         std::to_string(data_type) + " here");
  int64_t bytes = static_cast<int64_t>(item_size(*dtype));
  for (const int64_t size : sizes) {
    if (size < 0) throw UserError("a size is " + std::to_string(size));
    // A size of 0 does not make others small: strides are products of them.
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(size, 1), &bytes))
      throw UserError("sizes ask for more than 2^63 bytes");
  }
  return tensor_type(*dtype, sizes);
}

Array TensorReader::read(const TensorProto& tensor) {
  try {
    if (tensor.is_segment) throw UserError("tensors in segments are not read");
    const Type type = type_of(tensor.data_type, tensor.dims);
    if (tensor.is_external) return of_other_file(type, tensor);
    if (tensor.raw) return of_bytes(type, model_, *tensor.raw);
    return of_numbers(type, tensor);
  } catch (const UserError& error) {
    throw UserError("tensor " + quoted(tensor.name) + ": " + error.what());
  }
}

Array TensorReader::of_bytes(const Type& type, std::shared_ptr<const void> owner,
                             std::string_view bytes) const {
  expect_bytes(type, bytes.size());
  if (type.dtype == DType::bool_) return bools_of(type, bytes);
  const size_t unit = item_size(type.dtype) / (is_complex(type.dtype) ? 2 : 1);
  const bool aligned = reinterpret_cast<uintptr_t>(bytes.data()) % unit == 0;
  if (!aligned || bytes.empty()) return Array::copy_of(type, bytes.data());
  return Array(type, std::move(owner), bytes.data());
}

Array TensorReader::of_numbers(const Type& type, const TensorProto& tensor) const {
  const int64_t count = type.numel();
  if (type.dtype == DType::float32 || type.dtype == DType::complex64) {
    expect_count(tensor.floats, is_complex(type.dtype) ? 2 * count : count);
    return Array::copy_of(type, tensor.floats.data());
  }
  if (type.dtype == DType::float64 || type.dtype == DType::complex128) {
    expect_count(tensor.doubles, is_complex(type.dtype) ? 2 * count : count);
    return Array::copy_of(type, tensor.doubles.data());
  }
  expect_count(tensor.integers, count);  // of 16-bit and 8-bit floats their bits
  const size_t size = item_size(type.dtype);
  std::string bytes(static_cast<size_t>(count) * size, '\0');
  for (size_t i = 0; i < tensor.integers.size(); ++i)
    std::memcpy(bytes.data() + i * size, &tensor.integers[i], size);
  return type.dtype == DType::bool_ ? bools_of(type, bytes) : Array::copy_of(type, bytes.data());
}

const std::shared_ptr<const io::MappedFile>& TensorReader::open(std::string_view location) {
  const auto known = files_.find(location);
  if (known != files_.end()) return known->second;
  const fs::path relative{std::string(location)};
  if (location.empty() || location.find('\0') != std::string_view::npos || relative.is_absolute())
    throw UserError("its location " + quoted(location) + " is no file beside the model");
  // Links are followed, so that none leads out of the folder.
  const fs::path folder = fs::weakly_canonical(folder_.empty() ? fs::path(".") : folder_);
  const fs::path file = fs::weakly_canonical(folder / relative);
  const auto [rest, _] = std::mismatch(folder.begin(), folder.end(), file.begin(), file.end());
  if (rest != folder.end() || file == folder)
    throw UserError("its location " + quoted(location) + " lies outside of the model's folder");
  if (!fs::is_regular_file(file))
    throw UserError("there is no file " + quoted(location) + " beside the model");
  return files_.emplace(std::string(location), io::MappedFile::open(file)).first->second;
}

Array TensorReader::of_other_file(const Type& type, const TensorProto& tensor) {
  std::string_view location;
  uint64_t offset = 0, length = static_cast<uint64_t>(type.nbytes());
  for (const auto& [key, value] : tensor.external) {
    if (key == "location") location = value;
    if (key == "offset") offset = number_of(key, value);
    if (key == "length") length = number_of(key, value);
  }
  expect_bytes(type, length);
  const auto& file = open(location);
  if (offset > file->size() || length > file->size() - offset)
    throw UserError("bytes " + std::to_string(offset) + " to " + std::to_string(offset) + " + " +
                    std::to_string(length) + " of " + quoted(location) + ", which has " +
                    std::to_string(file->size()));
  const std::byte* data = file->data() + offset;
  return of_bytes(type, file, {reinterpret_cast<const char*>(data), length});
}

}  // namespace composit::onnx_read
