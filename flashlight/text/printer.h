// Lays C++ out: indentation, 100 columns, and line breaks as clang-format makes them in Google's
// style. No other code knows about layout.
//
//   str(block(If{"x > 0"}, statement("return x;"))) == "if (x > 0) return x;\n";
//
// A second language is a second printer.
#pragma once

#include <string>

#include "flashlight/text/code.h"

namespace flashlight::text {

constexpr size_t kColumns = 100, kIndent = 2;

std::string str(const Code& code, size_t column = 0);
// The number of lines of that text.
size_t line_count(const Code& code, size_t column = 0);
// Measures how much there is to read, however long the lines would be: a line for each statement
// and each header, and the lines of calls and lists.
size_t length(const Code& code, size_t column = 0);
// The columns that the assignment takes on one line.
size_t width(const Assignment& assignment);
// The call on one line, without its tail; nothing if a lambda has more than one statement.
std::optional<std::string> text_of(const Call& call);

}  // namespace flashlight::text
