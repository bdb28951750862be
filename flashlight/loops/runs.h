// Finds runs of calls that a loop can make: each call takes the results of the one before it.
//
//   for (const Run& run : runs_of(function, program.functions)) ...    // twelve encoder layers
#pragma once

#include <utility>
#include <vector>

#include "flashlight/loops/program.h"

namespace flashlight::loops {

// Calls of one function at steps `first` … `first + count - 1`. They differ in their weights, and
// in `chain`: argument i of each is result j of the one before, which no other step reads.
struct Run {
  StepId first;
  size_t count = 0;
  std::vector<std::pair<size_t, size_t>> chain;  // (argument, result)
};

// Returns only runs that are long enough for a loop. `functions` has all that are called.
std::vector<Run> runs_of(const Routine& function, const Table<FunctionId, Routine>& functions);

}  // namespace flashlight::loops
