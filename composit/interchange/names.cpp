#include "composit/interchange/names.h"

#include <algorithm>
#include <cctype>

#include "composit/ir/scope.h"

namespace composit::interchange {

bool is_python_keyword(std::string_view word) {
  static constexpr std::string_view kWords[] = {
      "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
      "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
      "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
      "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};
  return std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords);
}

std::string UsedNames::identifier(const std::string& prefix, std::string_view text) {
  std::string name = prefix + std::string(text);
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0) name = "_" + name;
  if (is_python_keyword(name) || name == "self") name += "_";
  return unused_name(name, taken_);
}

}  // namespace composit::interchange
