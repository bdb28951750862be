// Weights of windows with few channels, in the order in which rows are read.
//
//   program = order_weights(std::move(program), is_frozen);
//   // sum_kc x[p + k, c] w[o, c, k] reads weights[o, k, c] = w[o, c, k]
//
// Then pixels and channels of a window's line are one run of terms. Else runs were as short as a
// pixel, of which each is an address to load, and for bfloat16 and bytes a word to fill up.
#pragma once

#include <functional>

#include "flashlight/loops/program.h"
#include "flashlight/mosaic/ids.h"

namespace flashlight::mosaic {

// In the program's own function. `is_frozen`: values that are known before the program runs. Keeps
// the numbers of values; copies are added behind them, and a step before each product that reads
// one.
loops::Program order_weights(loops::Program program,
                             const std::function<bool(ValueId value)>& is_frozen);

}  // namespace flashlight::mosaic
