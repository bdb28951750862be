// Runs programs of loops by definition: slowly, to define what they mean. Tests compare with it.
//
//   std::vector<Array> results = interpret(program, {x, weight});
#pragma once

#include <vector>

#include "flashlight/loops/program.h"

namespace flashlight::loops {

// Runs the last function. `inputs` are its inputs in order, without those that are constants;
// results are row-major, of the values' types. The sizes of inputs determine the program's named
// sizes (UserError as in sizes.h).
// Elements are computed as composit/eval/loops.h says, and rounded where they are stored. UserError
// if an index is out of range, a loop exceeds its limit, or a guard on a whole number fails, and
// for all other runtime calls, which only the runtime's own code defines.
std::vector<Array> interpret(const Program& program, const std::vector<Array>& inputs);

}  // namespace flashlight::loops
