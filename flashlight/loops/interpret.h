// Programs of loops, run by definition: slow, and what a program means. The oracle of stages.
//
//   std::vector<Array> results = interpret(program, {x, weight});
#pragma once

#include <vector>

#include "flashlight/loops/program.h"

namespace flashlight::loops {

// Results of the last function for its inputs, in order, but for those that are constants; results
// are row-major, of the values' types. Inputs give what sizes the program leaves open (UserError as
// sizes.h says).
// Elements are computed as composit/eval/loops.h says, and rounded where they are stored. UserError
// where an index is out of range, where a loop goes on after its limit, for guards on whole
// numbers that do not hold, and for all other calls of the runtime: its own code defines those.
std::vector<Array> interpret(const Program& program, const std::vector<Array>& inputs);

}  // namespace flashlight::loops
