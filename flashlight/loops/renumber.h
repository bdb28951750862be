// Moves steps of one function to another one, where values have other numbers.
#pragma once

#include <map>

#include "flashlight/loops/program.h"

namespace flashlight::loops {

// `numbers` has an entry for every value that `step` reads or writes.
Step renumbered(Step step, const std::map<ValueId, ValueId>& numbers);

}  // namespace flashlight::loops
