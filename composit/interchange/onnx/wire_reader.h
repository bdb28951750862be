// Protocol Buffers' wire format, read (https://protobuf.dev/programming-guides/encoding).
//
//   WireReader reader(bytes);
//   while (reader.next())
//     if (reader.field() == 1) name = reader.text();
//
// Bytes come from anywhere: every length is bounded by what is there, and UserError says at which
// byte they are no message. Nothing is copied.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "composit/ir/error.h"

namespace composit::onnx {

class WireReader {
 public:
  // `bytes` have to outlive what is read of them.
  explicit WireReader(std::string_view bytes) : rest_(bytes), size_(bytes.size()) {}

  // Goes to the next field; false at the end of the message.
  bool next() {
    if (rest_.empty()) return false;
    const uint64_t key = varint(rest_);
    field_ = static_cast<uint32_t>(key >> 3);
    type_ = static_cast<uint32_t>(key & 7);
    if (key >> 3 == 0 || key >> 32 != 0) fail("a field has the number " + std::to_string(key >> 3));
    switch (type_) {
      case kVarint:
        integer_ = varint(rest_);
        break;
      case kFixed64:
        value_ = take(sizeof(uint64_t));
        break;
      case kBytes:
        value_ = take(varint(rest_));
        break;
      case kFixed32:
        value_ = take(sizeof(uint32_t));
        break;
      default:  // groups are Protocol Buffers 2's
        fail("a field of the kind " + std::to_string(type_));
    }
    return true;
  }

  uint32_t field() const { return field_; }
  int64_t integer() const {
    expect(kVarint);
    return static_cast<int64_t>(integer_);
  }
  float real() const {
    expect(kFixed32);
    float value = 0;
    std::memcpy(&value, value_.data(), sizeof value);
    return value;
  }
  // Text, bytes or a message.
  std::string_view text() const {
    expect(kBytes);
    return value_;
  }
  // Items of a repeated field, one by one or packed.
  void append_to(std::vector<int64_t>& items) {
    if (type_ != kBytes) return items.push_back(integer());
    for (std::string_view packed = value_; !packed.empty();)
      items.push_back(static_cast<int64_t>(varint(packed)));
  }
  void append_to(std::vector<float>& items) const { append_fixed(items, kFixed32); }
  void append_to(std::vector<double>& items) const { append_fixed(items, kFixed64); }

 private:
  enum Kind : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  [[noreturn]] void fail(const std::string& what) const {
    throw UserError("at byte " + std::to_string(size_ - rest_.size()) + " of a message: " + what);
  }
  void expect(Kind kind) const {
    if (type_ != kind)
      fail("field " + std::to_string(field_) + " is of the kind " + std::to_string(type_) +
           ", expected " + std::to_string(kind));
  }

  uint64_t varint(std::string_view& bytes) const {
    uint64_t value = 0;
    for (uint32_t shift = 0; shift < 64; shift += 7) {
      if (bytes.empty()) fail("it ends within a number");
      const auto byte = static_cast<unsigned char>(bytes.front());
      bytes.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    fail("a number has more than ten bytes");
  }

  std::string_view take(uint64_t count) {
    if (count > rest_.size())
      fail("a field of " + std::to_string(count) + " bytes, where " + std::to_string(rest_.size()) +
           " are left");
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  template <class T>
  void append_fixed(std::vector<T>& items, Kind single) const {
    if (type_ != kBytes) expect(single);
    if (value_.size() % sizeof(T) != 0) fail("packed numbers end within a number");
    const size_t old = items.size(), count = value_.size() / sizeof(T);
    items.resize(old + count);
    if (count != 0) std::memcpy(items.data() + old, value_.data(), value_.size());
  }

  std::string_view rest_, value_;
  size_t size_;
  uint64_t integer_ = 0;
  uint32_t field_ = 0, type_ = 0;
};

}  // namespace composit::onnx
