// Convolutions whose channels do not mix:
//
//   y[n, h, w, c] = sum of x[n, h + i, w + j, c] * k[c, i, j]
//
//   if (const auto sides = sides_of(nest)) ...     // a product, or such a convolution
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

// The two sides of a sum of products that register tiles can compute; nothing for other statements.
// Those of a nest that was recognised are kept in it (Nest::recognised).
std::optional<loops::Contraction> sides_of(const loops::Statement& statement);
std::optional<loops::Contraction> sides_of(const loops::Nest& nest);
// The nests of the program know their sides: each is looked at once, until its statement changes.
loops::Program with_sides(loops::Program program);

}  // namespace flashlight::mosaic
