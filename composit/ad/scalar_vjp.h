// Derivatives of functions of numbers (composit/op/scalar_program.h).
//
//   ScalarProgram back = vjp(relu);      // (x, dy) -> x < 0 ? 0 : dy
//
// Decisions stay at the top, d(c ? a : b) = c ? a' : b', and only the branch taken is computed. On
// each path one pass gives the gradients of all parameters.
#pragma once

#include "composit/op/scalar_program.h"

namespace composit {

// Takes the program's parameters and a cotangent for each result; gives a gradient for each
// parameter. UserError for a function that has no derivative.
ScalarProgram vjp(const ScalarProgram& program);

}  // namespace composit
