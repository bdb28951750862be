// The tensors that torch_cases.py wrote, by case and part.
//
//   for (const auto& [name, parts] : torch_cases()) ... parts.at("result.0") ...
#pragma once

#include <map>
#include <string>

#include "composit/ir/array.h"

namespace composit::test {

using Parts = std::map<std::string, Array>;
// By "CASE|DTYPE"; the script runs once. Empty where Python has no torch: skip the test.
const std::map<std::string, Parts>& torch_cases();

}  // namespace composit::test
