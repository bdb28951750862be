// Additions of 0 that nobody sees.
//
//   program = drop_zero_terms(std::move(program));      // after fuse: sum += x * y + 0.0 becomes
//   sum += x * y
//
// x + 0 is x, but for -0, which becomes 0. Derivatives of slices add many of these: they are zeros
// around what is a part. One goes where x is never -0, or where the sign of its zero is lost
// anyway: in a sum with what is never -0, in a comparison.
//
// Exact: results have the same bits.
#pragma once

#include "flashlight/loops/program.h"

namespace flashlight::loops {

Program drop_zero_terms(Program program);

}  // namespace flashlight::loops
