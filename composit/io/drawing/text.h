// Text in pictures: short, and safe to put into DOT, HTML and file names whatever it came from.
#pragma once

#include <string>
#include <string_view>

#include "composit/ir/node.h"

namespace composit::drawing {

// "float32 1×64×56×56"
std::string type_text(const Type& type);
// Value of an array with one element, "0.5"; empty for complex ones.
std::string value_text(const Array& array);
// Operation, attributes, module scope and source line, for those who point at a node.
std::string tooltip_text(const Node& node);

// At most `length` characters, with an ellipsis where some were dropped. Valid UTF-8 without
// control characters.
std::string shortened(std::string_view text, size_t length);
// For HTML and for labels in angle brackets.
std::string html(std::string_view text);
// In double quotes, for DOT.
std::string quoted(std::string_view text);
// For a link to a file with this name.
std::string url(std::string_view text);

}  // namespace composit::drawing
