// The one place that knows how C++ is laid out: indentation, 100 columns, and where lines break, as
// clang-format does with Google's style.
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
// Lines of that text.
size_t line_count(const Code& code, size_t column = 0);
// How much there is to read, whatever fits one line: a line for each statement and each header, the
// lines of calls and lists.
size_t length(const Code& code, size_t column = 0);
// Columns of the assignment on one line.
size_t width(const Assignment& assignment);
// The call on one line, without its tail; nothing where a lambda has more than one statement.
std::optional<std::string> text_of(const Call& call);

}  // namespace flashlight::text
