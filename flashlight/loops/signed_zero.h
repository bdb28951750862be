// Drops additions of 0 that no result shows.
//
//   program = drop_zero_terms(std::move(program));  // after fuse: x * y + 0.0 becomes x * y
//
// x + 0 is x, except that -0 becomes 0. The gradient of a slice is zero outside the slice, so many
// such additions appear. One is dropped if x cannot be -0, or if the sign of its zero is lost
// anyway: in a sum with a term that is never -0, in a comparison.
//
// Exact: results have the same bits.
#pragma once

#include "flashlight/loops/program.h"

namespace flashlight::loops {

Program drop_zero_terms(Program program);

}  // namespace flashlight::loops
