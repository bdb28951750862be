// Words that the printer and the parser of programs share. For these two only.
#pragma once

#include <array>
#include <string_view>

namespace flashlight::loops {

// The words for Role, and for Control::Kind, in their order.
inline constexpr std::array<std::string_view, 5> kRoles = {"argument", "weight", "result",
                                                           "constant", "temporary"};
inline constexpr std::array<std::string_view, 5> kControlKinds = {"branch", "map", "scan", "repeat",
                                                                  "blocks"};

}  // namespace flashlight::loops
