// Sums in the order of memory.
//
//   program = split_reductions(std::move(program));      // after tilize
//
// A sum over pixels and channels (a group norm) becomes two: of each channel over a row of pixels,
// which vectors and threads take side by side, and of what that leaves. Reassociates.
#pragma once

#include "flashlight/loops/program.h"

namespace flashlight::mosaic {

// In the program's own function. Values keep their numbers; sums of rows are added behind them.
loops::Program split_reductions(loops::Program program);

}  // namespace flashlight::mosaic
