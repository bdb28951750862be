// Loops that need not be: what is computed element by element moves to where it is used, and what
// is done with the result of a reduction moves into the reduction.
//
//   fuse(program);      // relu(x * w + b): one nest, no temporary
//
// Exact: every element is computed by the same operations, some of them more than once where that
// is cheaper than memory.
#pragma once

#include "flashlight/cpp/program.h"

namespace flashlight::cpp {

void fuse(Program& program);

}  // namespace flashlight::cpp
