// Files of a written program from texts with gaps.
//
//   filled("void @name@_close(void);", {{"name", "bert"}}) == "void bert_close(void);"
#pragma once

#include <map>
#include <string>

namespace flashlight::cpp {

// Each @key@ of `text` is replaced. InternalError for a key that is not in `values`.
std::string filled(const std::string& text, const std::map<std::string, std::string>& values);

// Texts in offline/: "main.cpp.in".
const std::string& runtime_file(const std::string& name);

}  // namespace flashlight::cpp
