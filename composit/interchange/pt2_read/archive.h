// A file of torch.export as an archive: its entries by the names they have under the root folder.
//
//   const Archive archive("model.pt2");
//   const Json program = archive.json("models/model.json");
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "composit/interchange/pt2_read/json.h"
#include "composit/io/file.h"
#include "composit/io/zip_read.h"

namespace composit::pt2_read {

class Archive {
 public:
  // UserError for a file that cannot be read, that is no archive, or none of torch.export's.
  explicit Archive(const std::filesystem::path& file);

  std::optional<std::string_view> find(const std::string& name) const;
  // UserError where there is no such entry.
  std::string_view entry(const std::string& name) const;
  Json json(const std::string& name) const { return parse_json(entry(name), name); }
  // The mapping that an entry lies in.
  const std::shared_ptr<const io::MappedFile>& file() const { return file_; }

 private:
  std::shared_ptr<const io::MappedFile> file_;
  io::ZipReader zip_;
  std::string root_;  // "model/"
};

}  // namespace composit::pt2_read
