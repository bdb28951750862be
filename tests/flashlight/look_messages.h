// Errors while a capture is confirmed, beside their messages in docs/errors.md.
//
//   EXPECT_THAT(error_of([&] { captured(x); }), HasSubstr("found a difference"));
#pragma once

#include <exception>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "tests/flashlight/documented_errors.h"

namespace flashlight::test {

// The messages of its table in docs/errors.md.
inline const std::vector<std::string>& documented_of_looks() {
  static const std::vector<std::string> messages = [] {
    std::vector<std::string> found;
    std::ifstream file(FLASHLIGHT_SOURCE_DIR "/docs/errors.md");
    bool here = false;
    for (std::string line; std::getline(file, line);) {
      if (line.rfind("## ", 0) == 0) here = line == "## While a capture is confirmed";
      const size_t begin = line.find("| `"), end = line.find("` |");
      if (here && begin != line.npos) found.push_back(line.substr(begin + 3, end - begin - 3));
    }
    return found;
  }();
  return messages;
}
// Those that `error_of` has seen.
inline std::set<std::string>& caused() {
  static std::set<std::string> messages;
  return messages;
}

// The message of what `work` throws.
template <class F>
std::string error_of(F work) {
  try {
    work();
  } catch (const std::exception& error) {
    for (const std::string& pattern : documented_of_looks())
      if (matches(pattern, error.what())) caused().insert(pattern);
    return error.what();
  }
  return "no error";
}

}  // namespace flashlight::test
