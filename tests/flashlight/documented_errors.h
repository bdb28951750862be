// Messages of errors as docs/errors.md has them.
//
//   EXPECT_TRUE(matches("[load] …: there is no array '…'", error.what()));
#pragma once

#include <string>
#include <string_view>

namespace flashlight::test {

// `…` of a pattern stands for any text.
inline bool matches(std::string_view pattern, std::string_view text) {
  static const std::string any = "…";
  const size_t at = pattern.find(any);
  if (at == pattern.npos) return pattern == text;
  if (text.substr(0, at) != pattern.substr(0, at)) return false;
  pattern.remove_prefix(at + any.size());
  for (size_t skip = at; skip <= text.size(); ++skip)
    if (matches(pattern, text.substr(skip))) return true;
  return false;
}

}  // namespace flashlight::test
