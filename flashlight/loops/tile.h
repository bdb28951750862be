// Long axes in blocks, where steps hand each other more than a cache holds.
//
//   program = tile(std::move(program));                       // after recompute, before split
//
// What a loop over Gaussians makes of all points is out of the cache before it is read. So the
// points are taken in blocks: the steps become a function of one block, called in a loop, and what
// they hand each other is as long as a block. Decided by sizes and axes. Sums over the axis add up
// block by block, in order; everything else is computed as before.
#pragma once

#include "flashlight/loops/program.h"

namespace flashlight::loops {

Program tile(Program program);

}  // namespace flashlight::loops
