// Windows of small images, as the rows of a matrix.
//
//   auto [program, copies] = copy_windows(std::move(before), is_frozen);
//   // sum_p dy[p, o] x[p + k, c] reads windows[p, c, k] = x[p + k, c]
//
// The weight gradient of a convolution is a matrix product whose columns are the pixels of a
// window. Copying the windows makes those columns contiguous, as they are in the result. Read where
// they lie, they would come in runs as short as a line of the window, and results would be stored
// far apart. A copy has as many elements as there are terms per column, so it pays where results
// are more than terms.
#pragma once

#include <functional>
#include <vector>

#include "flashlight/loops/program.h"
#include "flashlight/mosaic/ids.h"

namespace flashlight::mosaic {

struct CopiedWindows {
  loops::Program program;
  ValueIds copies;  // which are to lie in memory in the order of their dimensions
};
// In the program's own function. Known values are read where they lie. Keeps the numbers of values;
// copies are added behind them, and a step before each product that reads one.
CopiedWindows copy_windows(loops::Program program,
                           const std::function<bool(ValueId value)>& is_known);

}  // namespace flashlight::mosaic
