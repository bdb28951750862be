// Values of float32 that nobody reads but products of bfloat16, which round each element: they are
// rounded once, where they are stored, take half the memory, and rows are read where they lie.
//
//   store_rounded(plan);    // behind the choice of kernels, before memory is planned
//
// No number that is multiplied changes by that.
#pragma once

#include "flashlight/mosaic/plan.h"

namespace flashlight::mosaic {

void store_rounded(Plan& plan);

}  // namespace flashlight::mosaic
