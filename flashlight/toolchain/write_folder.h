// Writes sources as a folder to read, edit and build elsewhere.
//
//   write_folder(files, "resnet50_cpp", [&](const auto& folder) {
//     write_safetensors(weights, folder / "weights.safetensors");
//   });
//
// The folder appears whole or not at all. It lists in flashlight_files.txt the files that were
// written, so that writing it again replaces those only: if a user added or edited a file, it is
// refused, and no work is lost.
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "flashlight/toolchain/sources.h"

namespace flashlight::toolchain {

// Throws UserError, and leaves the folder as it is, if it has files that this function did not
// write or that changed since, or if the system refuses. `write_more` may write further files into
// the folder it gets; the target is replaced after it.
void write_folder(const std::vector<SourceFile>& files, const std::filesystem::path& folder,
                  const std::function<void(const std::filesystem::path&)>& write_more = {});

// Throws only the first of these errors, for callers that do long work before they write.
void check_replaceable(const std::filesystem::path& folder);

}  // namespace flashlight::toolchain
