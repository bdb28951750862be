// What steps that share a loop do in one round, as a function of its own.
//
//   if (auto body = take_loop_body(function, {3, 4, 5}, "residuals_body", 2)) ...
//
// A function of a row: what is long enough is split like any other function, where the loop around
// it could not be.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "flashlight/loops/program.h"

namespace flashlight::loops {

// `steps` follow each other, and are all that their loop runs. In their place in `function` comes a
// Control that maps the body, function number `number`, over the rounds. Nothing, and no change,
// where the body would need the number of the round.
std::optional<Routine> take_loop_body(Routine& function, const StepIds& steps,
                                      const std::string& name, FunctionId number);

}  // namespace flashlight::loops
