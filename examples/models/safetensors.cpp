#include "examples/models/safetensors.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <utility>
#include <vector>

namespace models {
namespace {

using nlohmann::json;
using NamedTensors = std::map<std::string, torch::Tensor>;

constexpr uint64_t kMaxHeaderSize = 100'000'000;  // as in the reference implementation

/// Where a tensor lies in a file, and what it is.
struct Entry {
  torch::ScalarType dtype;
  std::vector<int64_t> shape;
  uint64_t begin;  // bytes from the start of the data
  uint64_t end;
};
using Entries = std::map<std::string, Entry>;

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  throw std::runtime_error(path + ": " + what);
}

torch::ScalarType parse_dtype(const std::string& name) {
  static const std::map<std::string, torch::ScalarType> kTypes = {
      {"BOOL", torch::kBool},   {"U8", torch::kUInt8},      {"I8", torch::kInt8},
      {"I16", torch::kInt16},   {"I32", torch::kInt32},     {"I64", torch::kInt64},
      {"F16", torch::kFloat16}, {"BF16", torch::kBFloat16}, {"F32", torch::kFloat32},
      {"F64", torch::kFloat64},
  };
  const auto found = kTypes.find(name);
  if (found == kTypes.end()) throw std::runtime_error("unknown dtype " + name);
  return found->second;
}

uint64_t parse_unsigned(const json& value) {
  if (!value.is_number_unsigned()) {
    throw std::runtime_error("expected a non-negative integer, received " + value.dump());
  }
  return value.get<uint64_t>();
}

/// The bytes a tensor occupies. Sizes whose product overflows are an error even beside a size of 0.
uint64_t byte_size(const Entry& entry) {
  uint64_t bytes = c10::elementSize(entry.dtype);
  bool empty = false;
  for (const uint64_t size : entry.shape) {
    empty |= size == 0;
    if (size == 0) continue;
    if (bytes > INT64_MAX / size) throw std::runtime_error("the shape is too large");
    bytes *= size;
  }
  return empty ? 0 : bytes;
}

Entry parse_entry(const json& value, uint64_t data_size) {
  Entry entry;
  entry.dtype = parse_dtype(value.at("dtype").get<std::string>());
  for (const json& size : value.at("shape")) {
    entry.shape.push_back(static_cast<int64_t>(parse_unsigned(size)));
  }
  entry.begin = parse_unsigned(value.at("data_offsets").at(0));
  entry.end = parse_unsigned(value.at("data_offsets").at(1));
  if (entry.begin > entry.end || entry.end > data_size) {
    throw std::runtime_error("data_offsets " + value.at("data_offsets").dump() +
                             " lie outside the data of " + std::to_string(data_size) + " bytes");
  }
  if (entry.end - entry.begin != byte_size(entry)) {
    throw std::runtime_error("data_offsets and shape disagree");
  }
  return entry;
}

/// The format allows neither holes nor overlaps.
void check_layout(const Entries& entries, uint64_t data_size) {
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (const auto& [name, entry] : entries) ranges.emplace_back(entry.begin, entry.end);
  std::sort(ranges.begin(), ranges.end());
  uint64_t covered = 0;
  for (const auto& [begin, end] : ranges) {
    if (begin != covered) throw std::runtime_error("the tensors overlap or leave a hole");
    covered = end;
  }
  if (covered != data_size) throw std::runtime_error("the tensors do not cover the data");
}

Entries parse_header(const std::string& text, uint64_t data_size) {
  const json header = json::parse(text);
  if (!header.is_object()) throw std::runtime_error("the header is not a JSON object");
  Entries entries;
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") continue;
    try {
      entries.emplace(name, parse_entry(value, data_size));
    } catch (const std::exception& error) {
      throw std::runtime_error("tensor " + name + ": " + error.what());
    }
  }
  check_layout(entries, data_size);
  return entries;
}

/// An open file whose header has been read and checked.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path) : path_(path), stream_(path, std::ios::binary) {
    std::error_code error;
    const uint64_t file_size = std::filesystem::file_size(path, error);
    if (!stream_ || error) fail(path, "cannot be opened");
    const uint64_t header_size = read_header_size();
    if (header_size > kMaxHeaderSize || header_size > file_size - 8) {
      fail(path, "is truncated or not a safetensors file");
    }
    data_begin_ = 8 + header_size;
    std::string header(header_size, '\0');
    read_bytes(8, header.data(), header_size);
    try {
      entries_ = parse_header(header, file_size - data_begin_);
    } catch (const std::exception& caught) {
      fail(path, caught.what());
    }
  }

  const Entries& entries() const { return entries_; }

  torch::Tensor read(const Entry& entry) {
    torch::Tensor tensor = torch::empty(entry.shape, entry.dtype);
    read_bytes(data_begin_ + entry.begin, tensor.data_ptr(), entry.end - entry.begin);
    return tensor;
  }

 private:
  /// The first eight bytes, a little-endian number.
  uint64_t read_header_size() {
    std::array<unsigned char, 8> bytes = {};
    read_bytes(0, bytes.data(), bytes.size());
    uint64_t size = 0;
    for (size_t i = bytes.size(); i-- > 0;) size = size << 8 | bytes[i];
    return size;
  }

  void read_bytes(uint64_t offset, void* target, uint64_t count) {
    stream_.seekg(static_cast<std::streamoff>(offset));
    stream_.read(static_cast<char*>(target), static_cast<std::streamsize>(count));
    if (!stream_) fail(path_, "is truncated or not a safetensors file");
  }

  std::string path_;
  std::ifstream stream_;
  uint64_t data_begin_ = 0;
  Entries entries_;
};

NamedTensors parameters_and_buffers(const torch::nn::Module& module) {
  NamedTensors tensors;
  for (const auto& item : module.named_parameters()) tensors.emplace(item.key(), item.value());
  for (const auto& item : module.named_buffers()) tensors.emplace(item.key(), item.value());
  return tensors;
}

Entries renamed(const SafetensorsFile& file, const RenameTensor& rename) {
  if (!rename) return file.entries();
  Entries result;
  for (const auto& [name, entry] : file.entries()) {
    const std::string target = rename(name);
    if (!target.empty() && !result.emplace(target, entry).second) {
      throw std::runtime_error("two tensors are renamed to " + target);
    }
  }
  return result;
}

/// "title: a, b and 7 more" for the keys of `left` that `right` lacks; empty if there are none.
template <typename Left, typename Right>
std::string difference(const char* title, const Left& left, const Right& right) {
  constexpr int kShown = 5;
  std::ostringstream list;
  int count = 0;
  for (const auto& [name, value] : left) {
    if (right.count(name) > 0) continue;
    if (count < kShown) list << (count == 0 ? " " : ", ") << name;
    ++count;
  }
  if (count == 0) return "";
  if (count > kShown) list << " and " << count - kShown << " more";
  return std::string(title) + ":" + list.str();
}

template <typename Left, typename Right>
std::string compare_names(const Left& file, const Right& module) {
  Right needed = module;
  std::erase_if(needed, [](const auto& item) { return item.first.ends_with("_ids"); });
  const std::string missing = difference("missing", needed, file);
  const std::string unexpected = difference("unexpected", file, module);
  return missing + (missing.empty() || unexpected.empty() ? "" : "; ") + unexpected;
}

std::string describe(torch::ScalarType dtype, torch::IntArrayRef shape) {
  std::ostringstream text;
  text << c10::toString(dtype) << shape;
  return text.str();
}

void check_matches(const Entries& entries, const NamedTensors& tensors) {
  const std::string names = compare_names(entries, tensors);
  if (!names.empty()) throw std::runtime_error("its tensors are not those of the module; " + names);
  for (const auto& [name, entry] : entries) {
    const torch::Tensor& tensor = tensors.at(name);
    if (entry.dtype == tensor.scalar_type() && tensor.sizes() == entry.shape) continue;
    throw std::runtime_error("tensor " + name + " is " + describe(entry.dtype, entry.shape) +
                             ", but the module has " +
                             describe(tensor.scalar_type(), tensor.sizes()));
  }
}

}  // namespace

void load_safetensors(torch::nn::Module& module, const std::string& path,
                      const RenameTensor& rename) {
  SafetensorsFile file(path);
  NamedTensors tensors = parameters_and_buffers(module);
  Entries entries;
  try {
    entries = renamed(file, rename);
    check_matches(entries, tensors);
  } catch (const std::runtime_error& error) {
    fail(path, error.what());
  }
  const torch::NoGradGuard no_grad;
  for (const auto& [name, entry] : entries) tensors.at(name).copy_(file.read(entry));
}

std::map<std::string, torch::Tensor> read_safetensors(const std::string& path) {
  SafetensorsFile file(path);
  NamedTensors tensors;
  for (const auto& [name, entry] : file.entries()) tensors.emplace(name, file.read(entry));
  return tensors;
}

}  // namespace models
