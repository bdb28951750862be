// A folder that takes the place of another at once, or not at all.
//
//   ReplacementFolder replacement("resnet50");     // makes ".resnet50.saving-..." beside it
//   write_files_into(replacement.path());
//   replacement.commit();                          // swaps the two and removes the old one
//
// Without commit(), as after an exception, nothing remains. What a killed process has left is
// removed by the next replacement of the same folder.
#pragma once

#include <filesystem>
#include <vector>

#include "composit/io/file.h"

namespace composit::io {

class ReplacementFolder {
 public:
  // Makes the folders around `target` that are missing.
  explicit ReplacementFolder(const std::filesystem::path& target);
  ~ReplacementFolder();
  ReplacementFolder(const ReplacementFolder&) = delete;
  ReplacementFolder& operator=(const ReplacementFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // The folder that is replaced: an absolute path, with symbolic links resolved.
  const std::filesystem::path& target() const { return target_; }
  void commit();

 private:
  void make_parents();
  void remove_parents() const;
  void create();
  void remove_leftovers() const;
  void replace();

  std::filesystem::path target_;
  std::filesystem::path path_;
  std::vector<std::filesystem::path> made_;  // folders around it, outermost first
  Descriptor lock_;                          // held as long as this process works in `path_`
};

}  // namespace composit::io
