// Pieces of text: what parsers of short notations and errors about names share.
//
//   split_at("mosaic, aten", ',');                    // "mosaic", " aten"
//   nearest("relu_9", {"add", "relu", "relu_1"});     // "relu_1, relu, add"
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace composit {

// The text without blanks, tabs and carriage returns at both ends.
std::string_view trimmed(std::string_view text);
// The parts between separators; nothing behind the last separator is no part.
std::vector<std::string> split_at(const std::string& text, char separator);
// For an error about an unknown name: of many names, those that begin most like it ("relu, relu_1,
// relu_2 and 40 more").
std::string nearest(const std::string& name, std::vector<std::string> names);

}  // namespace composit
