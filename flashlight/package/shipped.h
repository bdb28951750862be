// The files that programs are shipped with: headers of the runtime, each joined from the headers
// that it includes, and templates of the files around the code of a written program.
//
//   sources.headers.push_back(shipped_file(kRuntimeName));
//   filled("void @name@_close(void);", {{"name", "bert"}}) == "void bert_close(void);"
#pragma once

#include <map>
#include <string>

#include "flashlight/toolchain/sources.h"

namespace flashlight::package {

inline constexpr const char* kRuntimeName = "flashlight.hpp";          // for all generated code
inline constexpr const char* kArenaName = "flashlight_arena.hpp";      // for its callers
inline constexpr const char* kReaderName = "safetensors.hpp";          // for loading weights
inline constexpr const char* kProfileName = "flashlight_profile.hpp";  // for timing kernels

// The text of a file by its name: "flashlight_order.hpp", "main.cpp.in".
const std::string& shipped_text(const std::string& name);
// The same as a file.
toolchain::SourceFile shipped_file(const std::string& name);

// Replaces each @key@ in `text`. InternalError for a key that is not in `values`.
std::string filled(const std::string& text, const std::map<std::string, std::string>& values);

}  // namespace flashlight::package
