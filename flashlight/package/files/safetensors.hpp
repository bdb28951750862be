// Tensors by name in a mapped file of the safetensors format
// (https://huggingface.co/docs/safetensors). POSIX.
//
//   const fl::Safetensors file("weights.safetensors");
//   const float(*weight)[768] = file.tensor<float>("pooler.dense.weight", {768, 768});
//   const auto& bias = file.array<float[768]>("pooler.dense.bias");
//
// Throws a std::runtime_error that names the file and the tensor, if the file is incomplete or
// invalid, or if a tensor is missing or has another dtype or shape. The file is not copied: it must
// not be truncated as long as it is open.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "flashlight.hpp"

namespace fl {

// The type and position of a tensor; offsets count from the start of the data.
struct TensorEntry {
  std::string dtype;  // "F32"
  std::vector<std::uint64_t> shape, offsets;
};

// The header of a file: JSON, of which the format needs objects, strings and numbers.
class SafetensorsHeader {
 public:
  SafetensorsHeader(const char* begin, const char* end) : now_(begin), end_(end) { read(); }
  const std::map<std::string, TensorEntry>& entries() const { return entries_; }
  const std::map<std::string, std::string>& remarks() const { return remarks_; }

 private:
  [[noreturn]] static void fail(const std::string& what) { throw std::runtime_error(what); }

  void skip_spaces() {
    while (now_ != end_ && (*now_ == ' ' || *now_ == '\t' || *now_ == '\n' || *now_ == '\r'))
      ++now_;
  }
  bool accept(char c) {
    skip_spaces();
    const bool is_there = now_ != end_ && *now_ == c;
    if (is_there) ++now_;
    return is_there;
  }
  void expect(char c) {
    if (!accept(c)) fail(std::string("header: expected '") + c + "'");
  }
  // Calls `item` for each item up to `close`, which ends the list.
  template <class Item>
  void list(char open, char close, Item item) {
    expect(open);
    if (accept(close)) return;
    do item();
    while (accept(','));
    expect(close);
  }

  unsigned hexadecimal() {
    unsigned value = 0;
    for (int i = 0; i < 4; ++i) {
      const char c = now_ != end_ ? *now_++ : '\0';
      const bool digit = c >= '0' && c <= '9', lower = c >= 'a' && c <= 'f',
                 upper = c >= 'A' && c <= 'F';
      if (!digit && !lower && !upper) fail("header: expected four hexadecimal digits");
      value =
          value * 16 + static_cast<unsigned>(digit ? c - '0' : (lower ? c - 'a' : c - 'A') + 10);
    }
    return value;
  }
  // Reads the code of one character after a backslash and a 'u'; returns it as UTF-8.
  std::string code_point() {
    unsigned code = hexadecimal();
    if (code >= 0xdc00 && code < 0xe000) fail("header: half a character in a string");
    if (code >= 0xd800 && code < 0xdc00) {
      if (end_ - now_ < 2 || *now_++ != '\\' || *now_++ != 'u')
        fail("header: half a character in a string");
      const unsigned low = hexadecimal();
      if (low < 0xdc00 || low >= 0xe000) fail("header: half a character in a string");
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    const auto byte = [](unsigned bits) { return static_cast<char>(bits); };
    const auto more = [&](int shift) { return byte(0x80 | ((code >> shift) & 0x3f)); };
    if (code < 0x80) return {byte(code)};
    if (code < 0x800) return {byte(0xc0 | (code >> 6)), more(0)};
    if (code < 0x10000) return {byte(0xe0 | (code >> 12)), more(6), more(0)};
    return {byte(0xf0 | (code >> 18)), more(12), more(6), more(0)};
  }
  std::string escaped() {
    static const char* const kNames = "\"\\/bfnrt";
    static const char* const kMeanings = "\"\\/\b\f\n\r\t";
    if (now_ == end_) fail("header: a string without end");
    const char c = *now_++;
    if (c == 'u') return code_point();
    const char* const known = c == '\0' ? nullptr : std::strchr(kNames, c);
    if (known == nullptr) fail("header: an unknown escape in a string");
    return {kMeanings[known - kNames]};
  }
  std::string string() {
    expect('"');
    std::string text;
    for (;;) {
      if (now_ == end_) fail("header: a string without end");
      const char c = *now_++;
      if (c == '"') return text;
      if (static_cast<unsigned char>(c) < 0x20) fail("header: a control character in a string");
      if (c == '\\')
        text += escaped();
      else
        text += c;
    }
  }
  std::uint64_t number() {
    skip_spaces();
    const char* const first = now_;
    std::uint64_t value = 0;
    for (; now_ != end_ && *now_ >= '0' && *now_ <= '9'; ++now_)
      if (__builtin_mul_overflow(value, std::uint64_t{10}, &value) ||
          __builtin_add_overflow(value, static_cast<std::uint64_t>(*now_ - '0'), &value))
        fail("header: a number above 64 bits");
    if (now_ == first) fail("header: expected a number without sign");
    if (*first == '0' && now_ - first > 1) fail("header: a number that starts with 0");
    return value;
  }
  std::vector<std::uint64_t> numbers() {
    std::vector<std::uint64_t> all;
    list('[', ']', [&] { all.push_back(number()); });
    return all;
  }

  TensorEntry entry(const std::string& name) {
    TensorEntry one;
    std::map<std::string, bool> seen;
    list('{', '}', [&] {
      const std::string key = string();
      if (seen[key]) fail("tensor '" + name + "': '" + key + "' stands twice");
      seen[key] = true;
      expect(':');
      if (key == "dtype")
        one.dtype = string();
      else if (key == "shape")
        one.shape = numbers();
      else if (key == "data_offsets")
        one.offsets = numbers();
      else
        fail("tensor '" + name + "': unknown key '" + key + "'");
    });
    for (const char* key : {"dtype", "shape", "data_offsets"})
      if (!seen[key]) fail("tensor '" + name + "': '" + key + "' is missing");
    if (one.offsets.size() != 2) fail("tensor '" + name + "': expected 2 data_offsets");
    return one;
  }
  void read_remarks() {
    list('{', '}', [&] {
      const std::string key = string();
      expect(':');
      remarks_[key] = string();
    });
  }
  void read() {
    bool has_remarks = false;
    list('{', '}', [&] {
      const std::string name = string();
      expect(':');
      const bool is_remark = name == "__metadata__";
      if (is_remark ? has_remarks : entries_.count(name) != 0)
        fail("header: '" + name + "' stands twice");
      has_remarks |= is_remark;
      if (is_remark)
        read_remarks();
      else
        entries_[name] = entry(name);
    });
    skip_spaces();
    if (now_ != end_) fail("header: more text behind its end");
  }

  const char* now_;
  const char* const end_;
  std::map<std::string, TensorEntry> entries_;
  std::map<std::string, std::string> remarks_;
};

// A file in memory, read on demand.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) throw std::runtime_error(std::strerror(errno));
    struct stat status;
    const bool is_file = ::fstat(file, &status) == 0 && S_ISREG(status.st_mode);
    size_ = is_file ? static_cast<std::uint64_t>(status.st_size) : 0;
    void* const data =
        size_ > 0 ? ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
    const std::string problem = size_ > 0 ? std::strerror(errno) : "no file, or an empty one";
    ::close(file);
    if (data == MAP_FAILED) throw std::runtime_error(problem);
    data_ = static_cast<const char*>(data);
  }
  ~MappedFile() { ::munmap(const_cast<char*>(data_), size_); }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const char* data() const { return data_; }
  std::uint64_t size() const { return size_; }

 private:
  const char* data_;
  std::uint64_t size_;
};

// The name that the format has for elements of type T.
template <class T>
const char* safetensors_name() {
  if constexpr (std::is_same_v<T, bool>) return "BOOL";
  if constexpr (std::is_same_v<T, float16>) return "F16";
  if constexpr (std::is_same_v<T, bfloat16>) return "BF16";
  if constexpr (std::is_same_v<T, float>) return "F32";
  if constexpr (std::is_same_v<T, double>) return "F64";
  if constexpr (std::is_same_v<T, std::complex<float>>) return "C64";
  if constexpr (std::is_same_v<T, std::complex<double>>) return "U8";  // with an axis of 16 bytes
  constexpr const char* kSigned[] = {"I8", "I16", "", "I32", "", "", "", "I64"};
  constexpr const char* kUnsigned[] = {"U8", "U16", "", "U32", "", "", "", "U64"};
  if constexpr (std::is_integral_v<T>)
    return std::is_signed_v<T> ? kSigned[sizeof(T) - 1] : kUnsigned[sizeof(T) - 1];
}

// The elements of a tensor; converts to any pointer that it is assigned to, to an element or a row.
template <class T>
struct Elements {
  const T* first;
  template <class Pointer>
  operator Pointer() const {
    return reinterpret_cast<Pointer>(first);
  }
};

class Safetensors {
 public:
  explicit Safetensors(const std::string& path) try : path_(path), file_(path) {
    std::uint64_t length = 0;
    if (file_.size() < 8) throw std::runtime_error("shorter than the length of its header");
    for (int i = 7; i >= 0; --i) length = length << 8 | static_cast<unsigned char>(file_.data()[i]);
    if (length > file_.size() - 8) throw std::runtime_error("shorter than its header");
    data_ = file_.data() + 8 + length;
    size_ = file_.size() - 8 - length;
    const SafetensorsHeader header(file_.data() + 8, data_);
    entries_ = header.entries();
    remarks_ = header.remarks();
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(path + ": " + error.what());
  }

  // A tensor of this dtype and shape.
  template <class T>
  Elements<T> tensor(const std::string& name, std::vector<std::uint64_t> shape) const {
    if constexpr (std::is_same_v<T, std::complex<double>>) shape.push_back(sizeof(T));
    const void* const data = find(name, safetensors_name<T>(), shape, sizeof(T), alignof(T));
    if constexpr (std::is_same_v<T, bool>) check_bools(name, static_cast<const char*>(data), shape);
    return {static_cast<const T*>(data)};
  }

  // The packed weights, `bytes` long and aligned to lines of the cache. Throws unless they were
  // laid out for the program that calls itself `by`.
  const std::byte* prepared(const std::string& by, std::uint64_t bytes) const {
    const auto found = remarks_.find("flashlight.prepared_by");
    if (found == remarks_.end() || found->second != by)
      throw std::runtime_error(path_ + ": was not prepared for this program and its -march, but " +
                               (found == remarks_.end() ? "for none" : "by " + found->second) +
                               "; expected " + by);
    constexpr std::uint64_t kLine = 64;
    return static_cast<const std::byte*>(find("flashlight.prepared", "U8", {bytes}, 1, kLine));
  }

  // `tensor` as a reference to Array: float[2][3], or float for a tensor without axes.
  template <class Array>
  const Array& array(const std::string& name) const {
    std::vector<std::uint64_t> shape;
    add_extents<Array>(shape);
    const Array* const first = tensor<std::remove_all_extents_t<Array>>(name, shape);
    return *first;
  }

 private:
  template <class Array>
  static void add_extents(std::vector<std::uint64_t>& shape) {
    if constexpr (std::is_array_v<Array>) {
      shape.push_back(std::extent_v<Array>);
      add_extents<std::remove_extent_t<Array>>(shape);
    }
  }

  [[noreturn]] void fail(const std::string& name, const std::string& what) const {
    throw std::runtime_error(path_ + ": tensor '" + name + "': " + what);
  }

  static std::string text(const std::string& dtype, const std::vector<std::uint64_t>& shape) {
    std::string sizes;
    for (const std::uint64_t size : shape)
      sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
    return dtype + " [" + sizes + "]";
  }

  const void* find(const std::string& name, const std::string& dtype,
                   const std::vector<std::uint64_t>& shape, std::uint64_t item_size,
                   std::uint64_t alignment) const {
    const auto found = entries_.find(name);
    if (found == entries_.end()) fail(name, "is missing");
    const TensorEntry& entry = found->second;
    if (entry.dtype != dtype || entry.shape != shape)
      fail(name,
           "expected " + text(dtype, shape) + ", the file has " + text(entry.dtype, entry.shape));
    std::uint64_t bytes = dtype == "U8" ? 1 : item_size;
    for (const std::uint64_t size : shape) bytes *= size;
    if (entry.offsets[0] > entry.offsets[1] || entry.offsets[1] > size_ ||
        entry.offsets[1] - entry.offsets[0] != bytes)
      fail(name, "needs " + std::to_string(bytes) + " bytes, data_offsets are " +
                     std::to_string(entry.offsets[0]) + " to " + std::to_string(entry.offsets[1]) +
                     " of " + std::to_string(size_));
    const char* const data = data_ + entry.offsets[0];
    if (reinterpret_cast<std::uintptr_t>(data) % alignment != 0)
      fail(name, "its elements are not aligned");
    return data;
  }

  void check_bools(const std::string& name, const char* data,
                   const std::vector<std::uint64_t>& shape) const {
    std::uint64_t count = 1;
    for (const std::uint64_t size : shape) count *= size;
    for (std::uint64_t i = 0; i < count; ++i)
      if (data[i] != 0 && data[i] != 1)
        fail(name, "element " + std::to_string(i) + " is neither 0 nor 1");
  }

  const std::string path_;
  const MappedFile file_;
  const char* data_ = nullptr;
  std::uint64_t size_ = 0;
  std::map<std::string, TensorEntry> entries_;
  std::map<std::string, std::string> remarks_;
};

}  // namespace fl
