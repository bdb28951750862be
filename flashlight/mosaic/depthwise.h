// Convolutions whose channels do not mix:
//
//   y[n, h, w, c] = sum of x[n, h + i, w + j, c] * k[c, i, j]
//
//   if (const auto sides = depthwise_of(statement)) ...
//
// As a contraction its columns are the channels, and both sides have them (see is_depthwise).
#pragma once

#include <optional>

#include "flashlight/loops/contraction.h"
#include "flashlight/loops/program.h"

namespace flashlight::mosaic {

// The left side is the one with windows.
std::optional<loops::Contraction> depthwise_of(const loops::Statement& statement);
bool is_depthwise(const loops::Contraction& sides);

}  // namespace flashlight::mosaic
