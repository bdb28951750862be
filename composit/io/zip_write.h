// An archive in the zip format, written front to back: entries stored, not compressed.
//
//   OutputFile file("model.pt2");
//   ZipWriter archive([&](const void* data, size_t size) { file.write(data, size); });
//   archive.add("model/archive_format", "pt2");
//   archive.begin("model/data/weights/weight_0", bytes);   // then exactly so many bytes
//   archive.write(data, bytes);
//   archive.finish();
//
// The data of an entry begins at a multiple of 64 bytes, so that a mapped archive has aligned
// arrays. Sizes above 4 GB are written as zip64. Format: PKWARE's APPNOTE 6.3.10.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace composit::io {

// The CRC of `data` behind bytes that have the CRC `before`; polynomial 0xEDB88320, as zip's.
uint32_t crc32(const void* data, size_t size, uint32_t before = 0);

class ZipWriter {
 public:
  // Takes the bytes of the archive, in order.
  using Sink = std::function<void(const void* data, size_t size)>;
  explicit ZipWriter(Sink sink) : sink_(std::move(sink)) {}

  // A whole entry. Names are UTF-8, with '/' between folders.
  void add(const std::string& name, std::string_view content);
  // Begins an entry of `size` bytes, which calls of `write` then give.
  void begin(const std::string& name, uint64_t size);
  void write(const void* data, size_t size);
  // The table of entries at the end.
  void finish();

 private:
  struct Entry {
    std::string name;
    uint64_t size = 0, offset = 0;  // of the data; of the local header
    uint32_t crc = 0;
  };

  void put(std::string_view bytes);
  void finish_entry();

  Sink sink_;
  std::vector<Entry> entries_;
  uint64_t position_ = 0, left_ = 0;
  bool open_ = false;
};

}  // namespace composit::io
