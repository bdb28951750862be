// What programs are shipped with: headers of the runtime, each joined from the headers that it
// includes, and files around the code of a written program, which are templates.
//
//   sources.headers.push_back(shipped_file(kRuntimeName));
//   filled("void @name@_close(void);", {{"name", "bert"}}) == "void bert_close(void);"
#pragma once

#include <map>
#include <string>

#include "flashlight/toolchain/sources.h"

namespace flashlight::package {

inline constexpr const char* kRuntimeName = "flashlight.hpp";          // of all generated code
inline constexpr const char* kArenaName = "flashlight_arena.hpp";      // of whoever calls it
inline constexpr const char* kReaderName = "safetensors.hpp";          // of whoever loads weights
inline constexpr const char* kProfileName = "flashlight_profile.hpp";  // of whoever times kernels

// The text of a file by its name: "flashlight_order.hpp", "main.cpp.in".
const std::string& shipped_text(const std::string& name);
// The file.
toolchain::SourceFile shipped_file(const std::string& name);

// Each @key@ of `text` is replaced. InternalError for a key that is not in `values`.
std::string filled(const std::string& text, const std::map<std::string, std::string>& values);

}  // namespace flashlight::package
