// Words that the printer and the parser of loops share, and the names that text of loops uses.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace composit {

// Words that name nothing else.
inline constexpr std::array<std::string_view, 11> kLoopWords = {
    "for", "scan", "reduce", "where", "var", "new", "let", "true", "false", "inf", "nan"};

inline bool is_loop_word(std::string_view word) {
  return std::find(kLoopWords.begin(), kLoopWords.end(), word) != kLoopWords.end();
}

// `c ? a : b` binds less than every operator in the table of functions.
inline constexpr int kSelectPrecedence = 1;
inline constexpr int kLowestOperator = 2;

}  // namespace composit
