#include "composit/io/zip_write.h"

#include <array>
#include <cstring>

#include "composit/ir/error.h"

namespace composit::io {
namespace {

constexpr uint64_t kAlign = 64;
constexpr uint32_t kMax32 = 0xffffffff;
constexpr uint16_t kMax16 = 0xffff;
constexpr uint16_t kVersion = 45;      // zip64
constexpr uint16_t kFlags = 0x0808;    // sizes behind the data too, names in UTF-8
constexpr uint16_t kDate = 0x21;       // 1 January 1980: archives of equal content are equal
constexpr uint16_t kZip64 = 0x0001;    // extra fields
constexpr uint16_t kPadding = 0x4246;  // "FB", as torch's archives have it
constexpr size_t kLocalHeader = 30, kZip64Local = 20, kFieldHeader = 4;

// Eight bytes at a time: table i gives the CRC of a byte that i zero bytes follow.
using Tables = std::array<std::array<uint32_t, 256>, 8>;
constexpr Tables make_tables() {
  Tables tables = {};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0u);
    tables[0][byte] = crc;
  }
  for (size_t i = 1; i < 8; ++i)
    for (size_t byte = 0; byte < 256; ++byte)
      tables[i][byte] = tables[i - 1][byte] >> 8 ^ tables[0][tables[i - 1][byte] & 0xff];
  return tables;
}
constexpr Tables kTables = make_tables();

// Little-endian fields one after another.
class Fields {
 public:
  Fields& u16(uint64_t value) { return add(value, 2); }
  Fields& u32(uint64_t value) { return add(value, 4); }
  Fields& u64(uint64_t value) { return add(value, 8); }
  Fields& text(std::string_view text) {
    bytes_ += text;
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  Fields& add(uint64_t value, int count) {
    for (int i = 0; i < count; ++i) bytes_.push_back(static_cast<char>(value >> 8 * i & 0xff));
    return *this;
  }
  std::string bytes_;
};

uint64_t clamped(uint64_t value) { return value < kMax32 ? value : kMax32; }

}  // namespace

uint32_t crc32(const void* data, size_t size, uint32_t before) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  uint32_t crc = ~before;
  for (; size >= 8; size -= 8, bytes += 8) {
    uint32_t low = 0, high = 0;
    std::memcpy(&low, bytes, 4);
    std::memcpy(&high, bytes + 4, 4);
    low ^= crc;
    crc = 0;
    for (int i = 0; i < 4; ++i)
      crc ^= kTables[7 - i][low >> 8 * i & 0xff] ^ kTables[3 - i][high >> 8 * i & 0xff];
  }
  for (; size > 0; --size) crc = crc >> 8 ^ kTables[0][(crc ^ *bytes++) & 0xff];
  return ~crc;
}

void ZipWriter::put(std::string_view bytes) {
  sink_(bytes.data(), bytes.size());
  position_ += bytes.size();
}

void ZipWriter::begin(const std::string& name, uint64_t size) {
  finish_entry();
  if (name.size() > kMax16)
    throw UserError(
        "[write] the name of an entry has more than 65535 bytes: " + name.substr(0, 60) + "…");
  entries_.push_back({name, size, position_, 0});
  const uint64_t data = position_ + kLocalHeader + name.size() + kZip64Local + kFieldHeader;
  const uint64_t padding = (kAlign - data % kAlign) % kAlign;
  Fields header;
  header.u32(0x04034b50).u16(kVersion).u16(kFlags).u16(0).u16(0).u16(kDate);
  header.u32(0).u32(kMax32).u32(kMax32);  // CRC: behind the data; sizes: in the extra field
  header.u16(name.size()).u16(kZip64Local + kFieldHeader + padding).text(name);
  header.u16(kZip64).u16(16).u64(size).u64(size);
  header.u16(kPadding).u16(padding).text(std::string(padding, '\0'));
  put(header.bytes());
  left_ = size;
  open_ = true;
}

void ZipWriter::write(const void* data, size_t size) {
  COMPOSIT_ASSERT(open_ && size <= left_, "more bytes than the entry was said to have");
  entries_.back().crc = crc32(data, size, entries_.back().crc);
  sink_(data, size);
  position_ += size;
  left_ -= size;
}

void ZipWriter::finish_entry() {
  if (!open_) return;
  COMPOSIT_ASSERT(left_ == 0, "fewer bytes than the entry was said to have");
  const Entry& entry = entries_.back();
  put(Fields().u32(0x08074b50).u32(entry.crc).u64(entry.size).u64(entry.size).bytes());
  open_ = false;
}

void ZipWriter::add(const std::string& name, std::string_view content) {
  begin(name, content.size());
  write(content.data(), content.size());
}

void ZipWriter::finish() {
  finish_entry();
  const uint64_t begin = position_;
  for (const Entry& entry : entries_) {
    Fields extra;
    if (entry.size >= kMax32) extra.u64(entry.size).u64(entry.size);
    if (entry.offset >= kMax32) extra.u64(entry.offset);
    const size_t length = extra.bytes().empty() ? 0 : extra.bytes().size() + kFieldHeader;
    Fields fields;
    fields.u32(0x02014b50).u16(kVersion).u16(kVersion).u16(kFlags).u16(0).u16(0).u16(kDate);
    fields.u32(entry.crc).u32(clamped(entry.size)).u32(clamped(entry.size));
    fields.u16(entry.name.size()).u16(length).u16(0).u16(0).u16(0).u32(0);
    fields.u32(clamped(entry.offset)).text(entry.name);
    if (length > 0) fields.u16(kZip64).u16(extra.bytes().size()).text(extra.bytes());
    put(fields.bytes());
  }
  const uint64_t end = position_, size = end - begin, count = entries_.size();
  Fields fields;
  fields.u32(0x06064b50).u64(44).u16(kVersion).u16(kVersion).u32(0).u32(0);
  fields.u64(count).u64(count).u64(size).u64(begin);
  fields.u32(0x07064b50).u32(0).u64(end).u32(1);
  const uint64_t count16 = count < kMax16 ? count : kMax16;
  fields.u32(0x06054b50).u16(0).u16(0).u16(count16).u16(count16);
  fields.u32(clamped(size)).u32(clamped(begin)).u16(0);
  put(fields.bytes());
}

}  // namespace composit::io
