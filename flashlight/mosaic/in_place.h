// Results that are written over what their kernel reads.
//
//   if (may_overwrite(plan, kernel, result, operand)) ...     // y = relu(x): in the memory of x
//
// As far as this kernel goes: that nobody reads the operand behind it is for liveness to say.
#pragma once

#include "flashlight/loops/schedule.h"
#include "flashlight/mosaic/ids.h"
#include "flashlight/mosaic/plan.h"

namespace flashlight::mosaic {

// Whether each element of `operand`, which the kernel only reads, has been read for the last time
// when the element of `result` in its place is written: by the tile of a product that adds it, or
// in the same round of the loops that the kernel's nests share.
bool may_overwrite(const Plan& plan, const Kernel& kernel, ValueId result, ValueId operand);

// The same of the loops of a function.
bool loops_may_overwrite(const loops::Routine& routine, const loops::Schedule& schedule,
                         ValueId result, ValueId operand);
// Whether `value` is read where the store writes, and nowhere else; each place is written once.
bool reads_own_place(const loops::Statement& statement, const composit::Store& store,
                     ValueId value);

}  // namespace flashlight::mosaic
