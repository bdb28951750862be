// C++ sources in memory, which a backend emits and this folder compiles or writes down.
//
//   Sources sources;
//   sources.units.push_back({"model.cpp", text});
//   sources.headers.push_back({"kernels.h", kernels});      // found by #include "kernels.h"
//   sources.origins.push_back({"model.cpp", 12, 20, "aten::mm at model.py:7 (encoder.layer.0)"});
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace flashlight::toolchain {

// A file in memory.
struct SourceFile {
  std::string name;  // with a path relative to the folder of all: "kernels/mm.cpp"
  std::string text;  // its content
};

// The node that lines of a file were emitted for. Ranges may nest: the narrowest one is shown.
struct LineOrigin {
  std::string file;                   // a unit's or header's name
  int first_line = 1, last_line = 1;  // both included, counted from 1
  std::string origin;                 // the operation, and its source location in the user's model
};

struct Sources {
  std::vector<SourceFile> units;         // each compiled alone, several at once
  std::vector<SourceFile> headers = {};  // found by #include
  std::vector<LineOrigin> origins = {};  // for messages about errors
};

// Throws UserError if a name is empty, absolute, leads out of the folder, or occurs twice.
void check_names(const Sources& sources);

// The unit or header of this name, or nullptr.
const SourceFile* find_file(const Sources& sources, std::string_view name);

// Writes files, and the folders they need. Throws UserError if the system refuses.
void write_files(const std::vector<SourceFile>& files, const std::filesystem::path& folder);

}  // namespace flashlight::toolchain
