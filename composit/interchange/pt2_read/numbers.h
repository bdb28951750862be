// Python's operators on the numbers of a program: sizes, and what follows from them.
//
//   number_call("_operator.add", {Attribute(3), Attribute(4)});    // 7
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "composit/ir/attribute.h"

namespace composit::pt2_read {

// Nothing for a target that is no such operator. UserError for numbers that it does not take, a
// division by zero, a result of more than 64 bits.
std::optional<Attribute> number_call(std::string_view target, const std::vector<Attribute>& given);

}  // namespace composit::pt2_read
