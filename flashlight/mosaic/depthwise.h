// Convolutions whose channels do not mix:
//
//   y[n, h, w, c] = sum of x[n, h + i, w + j, c] * k[c, i, j]
//
//   if (const auto sides = sides_of(statement)) ...     // a product, or such a convolution
//
// As a contraction, one has its channels for columns, which both sides have: is_depthwise.
#pragma once

#include <optional>

#include "flashlight/cpp/contraction.h"
#include "flashlight/cpp/program.h"

namespace flashlight::mosaic {

// The left side is the one with windows.
std::optional<cpp::Contraction> depthwise_of(const cpp::Statement& statement);
bool is_depthwise(const cpp::Contraction& sides);

// What mosaic computes by tiles.
std::optional<cpp::Contraction> sides_of(const cpp::Statement& statement);

}  // namespace flashlight::mosaic
