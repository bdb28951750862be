// Protocol Buffers' wire format, as much of it as ONNX needs
// (https://protobuf.dev/programming-guides/encoding).
//
//   Message dimension;
//   dimension.integer(1, 3);
//   Message shape;
//   shape.message(1, dimension);
//   shape.bytes();
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace composit::onnx {

class Message {
 public:
  void integer(uint32_t field, int64_t value) {
    key(field, 0);
    varint(static_cast<uint64_t>(value));
  }
  void text(uint32_t field, std::string_view value) {
    key(field, 2);
    varint(value.size());
    bytes_ += value;
  }
  void message(uint32_t field, const Message& value) { text(field, value.bytes_); }
  void real(uint32_t field, float value) {
    key(field, 5);
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    bytes_.append(raw, sizeof value);
  }

  const std::string& bytes() const { return bytes_; }

 private:
  void key(uint32_t field, uint32_t type) { varint(uint64_t{field} << 3 | type); }
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>(value | 0x80));
    bytes_.push_back(static_cast<char>(value));
  }

  std::string bytes_;
};

}  // namespace composit::onnx
