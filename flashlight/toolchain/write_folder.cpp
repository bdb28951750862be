#include "flashlight/toolchain/write_folder.h"

#include <spdlog/fmt/fmt.h>

#include <map>
#include <sstream>

#include "composit/io/file.h"
#include "composit/io/replacement_folder.h"
#include "composit/ir/error.h"
#include "composit/ir/hash.h"

namespace flashlight::toolchain {
namespace {

namespace fs = std::filesystem;
using composit::UserError;

constexpr const char* kListFile = "flashlight_files.txt";
constexpr const char* kMagic =
    "Written by Flashlight, which replaces these files as long as nobody changed them:";

// Names of files, with paths relative to the folder, and hashes of their contents.
using Listing = std::map<std::string, std::string>;

std::string hash_of(const fs::path& file) {
  composit::Hasher hasher;
  hasher.add(composit::io::MappedFile::open(file)->text());
  return hasher.finish().str();
}

// The files that are in the folder now, without the list itself.
Listing list(const fs::path& folder) {
  Listing files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().lexically_relative(folder).string();
    const bool is_folder = entry.symlink_status().type() == fs::file_type::directory;
    if (!is_folder && name != kListFile) files[name] = hash_of(entry.path());
  }
  return files;
}

// The list that was written with the folder.
Listing read_list(const fs::path& folder) {
  if (!fs::is_regular_file(folder / kListFile))
    throw UserError(
        "there is a folder of this name that Flashlight did not write; it is left as it is");
  std::istringstream text(std::string(composit::io::MappedFile::open(folder / kListFile)->text()));
  Listing files;
  std::string line;
  std::getline(text, line);
  while (std::getline(text, line))
    if (const size_t space = line.find(' '); space != std::string::npos)
      files[line.substr(space + 1)] = line.substr(0, space);
  return files;
}

void write_list(const fs::path& folder) {
  std::string text = std::string(kMagic) + "\n";
  for (const auto& [name, hash] : list(folder)) text += fmt::format("{} {}\n", hash, name);
  write_files({{kListFile, text}}, folder);
}

// Throws unless all files in the folder are as Flashlight wrote them; an empty folder is fine.
void check_unchanged(const fs::path& folder) {
  if (!fs::exists(folder)) return;
  if (!fs::is_directory(folder)) throw UserError("there is a file of this name");
  if (fs::is_empty(folder)) return;
  const Listing written = read_list(folder);
  for (const auto& [name, hash] : list(folder)) {
    const auto known = written.find(name);
    if (known == written.end())
      throw UserError("'" + name + "' in it was not written by Flashlight, and would be lost");
    if (known->second != hash)
      throw UserError("'" + name + "' in it was changed since it was written, and would be lost");
  }
}

void named_by(const fs::path& folder, const std::function<void()>& work) {
  try {
    work();
  } catch (const UserError& error) {
    throw UserError("[write] " + folder.string() + ": " + error.what());
  } catch (const fs::filesystem_error& error) {
    throw UserError("[write] " + folder.string() + ": " + error.what());
  }
}

}  // namespace

void check_replaceable(const fs::path& folder) {
  named_by(folder, [&] { check_unchanged(folder); });
}

void write_folder(const std::vector<SourceFile>& files, const fs::path& folder,
                  const std::function<void(const fs::path&)>& write_more) {
  named_by(folder, [&] {
    check_names({.units = files});
    check_unchanged(folder);
    composit::io::ReplacementFolder replacement(folder);
    write_files(files, replacement.path());
    if (write_more) write_more(replacement.path());
    write_list(replacement.path());
    replacement.commit();
  });
}

}  // namespace flashlight::toolchain
