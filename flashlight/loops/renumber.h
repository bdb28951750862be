// Steps of one function as steps of another one, where values have other numbers.
#pragma once

#include <map>

#include "flashlight/loops/program.h"

namespace flashlight::loops {

// `numbers` has every value that `step` touches.
Step renumbered(Step step, const std::map<ValueId, ValueId>& numbers);

}  // namespace flashlight::loops
