#include "composit/io/zip_read.h"

#include <algorithm>
#include <cstdint>

#include "composit/ir/error.h"

namespace composit::io {
namespace {

constexpr uint64_t kEndMark = 0x06054b50, kEnd64Mark = 0x06064b50, kLocator = 0x07064b50;
constexpr uint64_t kEntryMark = 0x02014b50, kLocalMark = 0x04034b50;
constexpr size_t kEndSize = 22, kEnd64Size = 56, kLocatorSize = 20, kEntrySize = 46,
                 kLocalSize = 30;
constexpr uint64_t kAll32 = 0xffffffff, kAll16 = 0xffff;
constexpr uint64_t kZip64Extra = 0x0001, kEncrypted = 0x0001;

[[noreturn]] void refuse(const std::string& what) {
  throw UserError("it is no zip archive that can be read: " + what);
}

// Bytes that are within the archive, and little-endian numbers in them.
class Bytes {
 public:
  explicit Bytes(std::string_view all) : all_(all) {}

  size_t size() const { return all_.size(); }
  std::string_view part(uint64_t begin, uint64_t size) const {
    if (begin > all_.size() || size > all_.size() - begin) refuse("it ends too early");
    return all_.substr(begin, size);
  }
  uint64_t number(uint64_t begin, uint64_t count) const {
    const std::string_view bytes = part(begin, count);
    uint64_t value = 0;
    for (size_t i = 0; i < bytes.size(); ++i)
      value |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[i])) << 8 * i;
    return value;
  }
  uint64_t u16(uint64_t begin) const { return number(begin, 2); }
  uint64_t u32(uint64_t begin) const { return number(begin, 4); }
  uint64_t u64(uint64_t begin) const { return number(begin, 8); }

 private:
  std::string_view all_;
};

struct Directory {
  uint64_t begin = 0, size = 0, count = 0;
};

// The end stands before a comment of at most 65535 bytes.
uint64_t find_end(const Bytes& bytes) {
  if (bytes.size() < kEndSize) refuse("it is too short");
  const uint64_t last = bytes.size() - kEndSize;
  const uint64_t first = last - std::min<uint64_t>(last, kAll16);
  for (uint64_t at = last + 1; at-- > first;)
    if (bytes.u32(at) == kEndMark && bytes.u16(at + 20) == last - at) return at;
  refuse("its directory is missing; an archive that was not written to its end has none");
}

Directory directory_of(const Bytes& bytes) {
  const uint64_t end = find_end(bytes);
  Directory directory{bytes.u32(end + 16), bytes.u32(end + 12), bytes.u16(end + 10)};
  uint64_t parts = bytes.u16(end + 4);
  const bool large = directory.begin == kAll32 || directory.size == kAll32 ||
                     directory.count == kAll16 || parts == kAll16;
  if (large && end >= kLocatorSize && bytes.u32(end - kLocatorSize) == kLocator) {
    const uint64_t end64 = bytes.u64(end - kLocatorSize + 8);
    bytes.part(end64, kEnd64Size);
    if (bytes.u32(end64) != kEnd64Mark) refuse("its directory is missing");
    directory = {bytes.u64(end64 + 48), bytes.u64(end64 + 40), bytes.u64(end64 + 32)};
    parts = bytes.u32(end64 + 16);
  }
  if (parts != 0) refuse("it has several parts");
  if (directory.count > directory.size / kEntrySize) refuse("its directory is too short");
  bytes.part(directory.begin, directory.size);
  return directory;
}

struct Entry {
  std::string name;
  uint64_t size = 0, local = 0;  // of the data; place of the local header
};

// Numbers that do not fit into 32 bits stand in an extra field, in this order.
void read_zip64(const Bytes& extra, Entry& entry, uint64_t& stored) {
  uint64_t at = 0;
  while (extra.size() - at >= 4) {
    const uint64_t kind = extra.u16(at), size = extra.u16(at + 2);
    if (kind == kZip64Extra) {
      const Bytes field(extra.part(at + 4, size));
      uint64_t next = 0;
      for (uint64_t* number : {&entry.size, &stored, &entry.local}) {
        if (*number != kAll32) continue;
        *number = field.u64(next);
        next += 8;
      }
      return;
    }
    extra.part(at + 4, size);
    at += 4 + size;
  }
}

// Reads the entry of the directory at `at`, and moves there past it.
Entry read_entry(const Bytes& bytes, uint64_t& at) {
  bytes.part(at, kEntrySize);
  if (bytes.u32(at) != kEntryMark) refuse("its directory has an entry that is none");
  const uint64_t name = bytes.u16(at + 28), extra = bytes.u16(at + 30),
                 comment = bytes.u16(at + 32);
  Entry entry{std::string(bytes.part(at + kEntrySize, name)), bytes.u32(at + 24),
              bytes.u32(at + 42)};
  uint64_t stored = bytes.u32(at + 20);
  read_zip64(Bytes(bytes.part(at + kEntrySize + name, extra)), entry, stored);
  if ((bytes.u16(at + 8) & kEncrypted) != 0) refuse("'" + entry.name + "' is encrypted");
  if (bytes.u16(at + 10) != 0)
    refuse("'" + entry.name +
           "' is compressed; torch writes archives without compression: save it with torch again, "
           "or pack it with `zip -0`");
  if (stored != entry.size) refuse("'" + entry.name + "' has two sizes");
  at += kEntrySize + name + extra + comment;
  return entry;
}

// The data stand behind the local header, whose name and extra field may have other lengths.
std::string_view data_of(const Bytes& bytes, const Entry& entry) {
  bytes.part(entry.local, kLocalSize);
  if (bytes.u32(entry.local) != kLocalMark) refuse("'" + entry.name + "' has no header");
  const uint64_t skipped = bytes.u16(entry.local + 26) + bytes.u16(entry.local + 28);
  return bytes.part(entry.local + kLocalSize + skipped, entry.size);
}

}  // namespace

bool looks_like_zip(std::string_view file) {
  return file.size() >= 4 && Bytes(file).u32(0) == kLocalMark;
}

ZipReader::ZipReader(std::string_view archive) {
  const Bytes bytes(archive);
  const Directory directory = directory_of(bytes);
  uint64_t at = directory.begin;
  for (uint64_t i = 0; i < directory.count; ++i) {
    const Entry entry = read_entry(bytes, at);
    if (!entries_.try_emplace(entry.name, data_of(bytes, entry)).second)
      refuse("'" + entry.name + "' is there twice");
  }
}

std::optional<std::string_view> ZipReader::find(std::string_view name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) return std::nullopt;
  return found->second;
}

}  // namespace composit::io
