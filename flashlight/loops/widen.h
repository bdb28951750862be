// 16-bit floats as what they are in memory: arithmetic on them is written as that of float32.
//
//   routine = with_wide_arithmetic(std::move(routine));   // sum of float32(x[i]), not of bfloat16
//   routine = with_wide_temporaries(std::move(routine));  // what no memory outside has is float32
//
// Expressions of 16-bit floats are computed in float32 in any case. As such they are what stages
// and writers know: sums in lanes, numbers that need no conversion. Where the program rounds by
// itself (a cast), it is rounded.
#pragma once

#include "flashlight/loops/program.h"

namespace flashlight::loops {

Routine with_wide_arithmetic(Routine routine);
// What nests add to is float32 and rounded at the end: 256 + 1 is no bfloat16, where a sum of ones
// would stand still. Expects that values are read behind all nests that write them.
Routine with_wide_sums(Routine routine);
// Temporaries of 16-bit floats hold what was computed, which rounding would only bring farther from
// it. What is not written and read by nests alone keeps its type.
Routine with_wide_temporaries(Routine routine);

}  // namespace flashlight::loops
