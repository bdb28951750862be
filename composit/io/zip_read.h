// The entries of a zip archive in memory, by name: those that are stored, not compressed.
//
//   const auto file = MappedFile::open("model.pt2");
//   const ZipReader archive(file->text());
//   archive.find("model/archive_format");     // "pt2": a part of the file, no copy
//
// Sizes and places come from the directory at the end, zip64's included: archives that were written
// front to back have them nowhere else. Nothing that the archive says is believed beyond its size.
// Format: PKWARE's APPNOTE 6.3.10.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace composit::io {

// True for a file that begins as an archive with entries does.
bool looks_like_zip(std::string_view file);

class ZipReader {
 public:
  // The archive has to outlive the reader. UserError for what is no archive, or has compressed or
  // encrypted entries, a name twice, or several parts.
  explicit ZipReader(std::string_view archive);

  // The bytes of each entry.
  const std::map<std::string, std::string_view, std::less<>>& entries() const { return entries_; }
  // Nothing where there is no such entry.
  std::optional<std::string_view> find(std::string_view name) const;

 private:
  std::map<std::string, std::string_view, std::less<>> entries_;
};

}  // namespace composit::io
