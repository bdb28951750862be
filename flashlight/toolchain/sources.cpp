#include "flashlight/toolchain/sources.h"

#include <algorithm>
#include <set>

#include "composit/io/file.h"
#include "composit/ir/error.h"

namespace flashlight::toolchain {
namespace {

// "a/../b.h" and "./b.h" are refused too: a file has one name.
bool is_inside(const std::filesystem::path& name) {
  return !name.empty() && name.is_relative() && name.has_filename() &&
         std::none_of(name.begin(), name.end(),
                      [](const auto& part) { return part == ".." || part == "."; });
}

}  // namespace

void check_names(const Sources& sources) {
  std::set<std::string> names;
  for (const auto* files : {&sources.units, &sources.headers}) {
    for (const SourceFile& file : *files) {
      if (!is_inside(file.name))
        throw composit::UserError("[sources] '" + file.name +
                                  "': expected the name of a file in the folder of all sources");
      if (!names.insert(file.name).second)
        throw composit::UserError("[sources] two files are named '" + file.name + "'");
    }
  }
}

const SourceFile* find_file(const Sources& sources, std::string_view name) {
  for (const auto* files : {&sources.units, &sources.headers})
    for (const SourceFile& file : *files)
      if (file.name == name) return &file;
  return nullptr;
}

void write_files(const std::vector<SourceFile>& files, const std::filesystem::path& folder) {
  for (const SourceFile& file : files) {
    const std::filesystem::path path = folder / file.name;
    std::error_code error;
    std::filesystem::create_directories(path.parent_path(), error);
    if (error) composit::io::throw_system_error("write", path, error.value());
    composit::io::OutputFile output(path);
    output.write(file.text);
    output.commit();
  }
}

}  // namespace flashlight::toolchain
