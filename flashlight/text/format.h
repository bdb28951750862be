// Line breaks where clang-format puts them (Google's style, 100 columns), for the shapes of code
// that this folder writes.
//
//   formatted("for (int i = 0; i < 3; ++i)\n  y[i] = 0.0f;\n")
//       == "for (int i = 0; i < 3; ++i) y[i] = 0.0f;\n"
#pragma once

#include <string>

namespace flashlight::text {

// Loops and conditions of one short statement on one line; lambdas that are too long for one
// opened; assignments that are too long broken behind the sign.
std::string formatted(const std::string& text);

// Lines of a text whose last one is complete.
int line_count(const std::string& text);

}  // namespace flashlight::text
