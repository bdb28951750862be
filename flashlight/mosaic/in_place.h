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

// True if each element of `operand`, which the kernel only reads, has been read for the last time
// when the kernel writes the element of `result` at the same offset: the tile of a product adds it,
// or the same round of the loops that the kernel's nests share reads it; or nothing reads it but a
// copy that is needless then (`needless_steps`).
bool may_overwrite(const Plan& plan, const Kernel& kernel, ValueId result, ValueId operand);

// The same of the loops of a function; those of `needless` steps are not run.
bool loops_may_overwrite(const loops::Routine& routine, const loops::Schedule& schedule,
                         const StepIds& needless, ValueId result, ValueId operand);
// The steps, of these, that are needless where `result` is written over `operand`: one that copies
// all of the operand to it, and what writes only there before that. Of a cache that gets the keys
// of one more token, what is left writes these. None if nothing would be left, or if somebody reads
// the result before the copy.
StepIds needless_steps(const loops::Routine& routine, const StepIds& steps, ValueId result,
                       ValueId operand);
// True if all of these steps are needless then: they make a copy of the operand, and nothing else.
bool only_copies(const loops::Routine& routine, const StepIds& steps, ValueId result,
                 ValueId operand);
// True if the statement reads `value` only at the index that the store writes, and writes each
// index once.
bool reads_own_place(const loops::Statement& statement, const composit::Store& store,
                     ValueId value);

}  // namespace flashlight::mosaic
