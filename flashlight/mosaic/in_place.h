// Results that are written over what their kernel reads.
//
//   if (may_overwrite(plan, kernel, result, operand)) ...     // y = relu(x): in the memory of x
//
// As far as this kernel goes: that nobody reads the operand behind it is for liveness to say.
#pragma once

#include "flashlight/mosaic/ids.h"
#include "flashlight/mosaic/plan.h"

namespace flashlight::mosaic {

// Whether each element of `operand`, which the kernel only reads, has been read for the last time
// when the element of `result` in its place is written: by the tile of a product that adds it, or
// in the same round of the loops that the kernel's nests share.
bool may_overwrite(const Plan& plan, const Kernel& kernel, ValueId result, ValueId operand);

}  // namespace flashlight::mosaic
