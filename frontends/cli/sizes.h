// Sizes as the command line has them.
#pragma once

#include <optional>
#include <string>

#include "composit/op/size_range.h"

namespace cli {

// The numbers of "tokens=8", "tokens=8..64", "tokens=64..2048:64" (in steps); nothing for others.
std::optional<composit::SizeRange> parse_range(const std::string& text);

}  // namespace cli
