// Sums in the order of memory.
//
//   split_reductions(routine);      // after tilize
//
// A sum over pixels and channels (a group norm) becomes two: of each channel over a row of pixels,
// which vectors and threads take side by side, and of what that leaves. Reassociates.
#pragma once

#include "flashlight/loops/program.h"

namespace flashlight::mosaic {

void split_reductions(loops::Routine& routine);

}  // namespace flashlight::mosaic
