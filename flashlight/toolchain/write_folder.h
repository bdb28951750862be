// Sources as a folder to read, edit and build elsewhere.
//
//   write_folder(files, "resnet50_cpp", [&](const auto& folder) {
//     write_safetensors(weights, folder / "weights.safetensors");
//   });
//
// The folder appears whole or not at all. It lists in flashlight_files.txt what was written, so
// that writing it again replaces that, and loses no work of others: where a file was added or
// edited, it is refused.
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "flashlight/toolchain/sources.h"

namespace flashlight::toolchain {

// Throws UserError, and leaves the folder as it is, where it holds what was not written by this
// function or was changed since, or where the system refuses. `write_more` may write further files
// into the folder it gets; the target is replaced after it.
void write_folder(const std::vector<SourceFile>& files, const std::filesystem::path& folder,
                  const std::function<void(const std::filesystem::path&)>& write_more = {});

// The first of these errors alone, for who would work long for a folder that is refused.
void check_replaceable(const std::filesystem::path& folder);

}  // namespace flashlight::toolchain
