// Words of Knossos' language.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "frontends/ks/syntax.h"

namespace flashlight::ks {

struct Token {
  enum class Kind : uint8_t { open, close, open_name, close_name, word, string, number, end };
  Kind kind;
  std::string text;  // of a string: what it means
  Position at;
};

// UserError for characters that are no words, and for comments and strings that do not end.
std::vector<Token> tokens_of(std::string_view text, const std::string& file);

}  // namespace flashlight::ks
