// Computes large products again where that is cheaper than keeping them in memory.
//
//   program = recompute(std::move(program));
//
// A product that a derivative reads long after it was made is in no cache any more. If both the
// product and a copy of it can share loops with their readers, one round of each takes less memory
// traffic than all rounds of one. Exact: the same operations in the same order.
#pragma once

#include "flashlight/loops/program.h"

namespace flashlight::loops {

Program recompute(Program program);

}  // namespace flashlight::loops
