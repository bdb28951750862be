#include "composit/ir/words.h"

#include <algorithm>
#include <sstream>

namespace composit {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == text.npos) return "";
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::vector<std::string> split_at(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

std::string nearest(const std::string& name, std::vector<std::string> names) {
  constexpr size_t kMost = 10;
  const auto alike = [&](const std::string& one) {
    return std::mismatch(name.begin(), name.end(), one.begin(), one.end()).first - name.begin();
  };
  std::stable_sort(names.begin(), names.end(),
                   [&](const std::string& a, const std::string& b) { return alike(a) > alike(b); });
  std::string text;
  for (size_t i = 0; i < std::min(kMost, names.size()); ++i)
    text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kMost) text += " and " + std::to_string(names.size() - kMost) + " more";
  return text;
}

}  // namespace composit
