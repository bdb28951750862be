#include "composit/interchange/pt2_read/archive.h"

#include "composit/ir/error.h"

namespace composit::pt2_read {
namespace {

constexpr std::string_view kFormat = "archive_format";

// All entries lie in one folder, whose name is free.
std::string root_of(const io::ZipReader& zip) {
  for (const auto& [name, content] : zip.entries()) {
    if (name == "serialized_exported_program.json")
      throw UserError(
          "an older form of torch.export's files; load it with the torch that wrote it, and save "
          "it with torch 2.8 or later");
    const size_t slash = name.find('/');
    if (slash != std::string::npos && name.substr(slash + 1) == kFormat && content == "pt2")
      return name.substr(0, slash + 1);
  }
  throw UserError("an archive, but none of torch.export: it has no entry 'archive_format'");
}

}  // namespace

Archive::Archive(const std::filesystem::path& file)
    : file_(io::MappedFile::open(file)), zip_(file_->text()), root_(root_of(zip_)) {
  if (entry("archive_version") != "0")
    throw UserError("expected version 0 of the archive, received '" +
                    std::string(entry("archive_version").substr(0, 20)) + "'");
}

std::optional<std::string_view> Archive::find(const std::string& name) const {
  return zip_.find(root_ + name);
}

std::string_view Archive::entry(const std::string& name) const {
  if (const auto found = find(name)) return *found;
  throw UserError("the archive has no entry '" + name + "'");
}

}  // namespace composit::pt2_read
