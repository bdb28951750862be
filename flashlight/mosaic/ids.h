// Numbers of the program of loops, by their own names.
#pragma once

#include "flashlight/loops/program.h"

namespace flashlight::mosaic {

using loops::axis_of;
using loops::AxisId;
using loops::AxisIds;
using loops::StepId;
using loops::StepIds;
using loops::Table;
using loops::value_of;
using loops::ValueId;
using loops::ValueIds;

}  // namespace flashlight::mosaic
