// The numbers among the values of a structure by the text that says their type, too: "2" is an
// integer, "2.0" a float.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "flashlight/structure.h"

namespace flashlight {

// As numbers_in, the text of each.
std::map<std::string, std::string> number_texts_in(const Structure& structure,
                                                   const std::string& prefix);
// True for the text of an integer.
bool is_integer_text(std::string_view text);
// The same structure with other numbers, of the same types: `number_of` says which, by the names of
// numbers_in; nothing leaves one as it is.
using NumberOfPath = std::function<std::optional<double>(const std::string& path)>;
Structure with_numbers_in(const Structure& structure, const std::string& prefix,
                          const NumberOfPath& number_of);

}  // namespace flashlight
