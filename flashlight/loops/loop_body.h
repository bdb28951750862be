// Moves the body of a loop that steps share into a function of its own.
//
//   if (auto body = extract_loop_body(function, {3, 4, 5}, "residuals_body", 2)) ...
//
// Such a function is split like any other if it is long; the loop around it could not be.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "flashlight/loops/program.h"

namespace flashlight::loops {

// `steps` are consecutive, and all that their loop runs. Replaces them in `function` by a Control
// that maps the body, function number `number`, over the rounds, and returns the body. Returns
// nothing and changes nothing if the body would need the index of the round.
std::optional<Routine> extract_loop_body(Routine& function, const StepIds& steps,
                                         const std::string& name, FunctionId number);

}  // namespace flashlight::loops
