// Large products that are computed again rather than kept.
//
//   program = recompute(std::move(program));
//
// What a derivative reads of a product that was made long before is in no cache any more. Where
// both can share loops with those that read them, two products of one round each cost less than
// the memory of all rounds. Exact: the same operations in the same order.
#pragma once

#include "flashlight/loops/program.h"

namespace flashlight::loops {

Program recompute(Program program);

}  // namespace flashlight::loops
