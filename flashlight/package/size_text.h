// A size of a result as text over the sizes of a call, by its numbers at all of them.
//
//   size_text({"batch", "tokens"}, {{1, 4}, {1, 5}, {2, 4}, {2, 5}}, {8, 10, 8, 10}) == "2 *
//   tokens"
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace flashlight::package {

// `sizes`: numbers of the names, for each call; `numbers`: of the size, for each. An expression of
// C++ that has these numbers: a constant, a sum of multiples of sizes, a product of sizes, or a
// size halved or otherwise divided, with an offset, and rounded down. Nothing where none of these
// has.
std::optional<std::string> size_text(const std::vector<std::string>& names,
                                     const std::vector<std::vector<int64_t>>& sizes,
                                     const std::vector<int64_t>& numbers);

}  // namespace flashlight::package
