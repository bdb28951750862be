// Functions that would be too long become several.
//
//   program = split_long_functions(std::move(program));       // before emit
//
// A piece is a run of steps that few values cross the borders of; it is called after the module its
// steps come from.
#pragma once

#include "flashlight/loops/program.h"

namespace flashlight::cpp {

using namespace loops;
using loops::Program;

// Lines of a function, its comment, head and last brace included.
constexpr size_t kMaxFunctionLines = 60;

struct SplitOptions {
  // If true, the body of a long loop becomes a function. g++ 12 reports writes out of bounds in
  // such bodies where it inlines them (-Warray-bounds), and there are none.
  bool loop_bodies = true;
};

Program split_long_functions(Program program, const SplitOptions& options = {});

}  // namespace flashlight::cpp
