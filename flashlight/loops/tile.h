// Takes long axes in blocks where steps pass each other more data than a cache holds.
//
//   program = tile(std::move(program));                       // after recompute, before split
//
// For example, the values that a loop over Gaussians computes for all points leave the cache before
// they are read. So the points are taken in blocks: the steps become a function of one block,
// called in a loop, and temporaries between them are as long as a block. Only sizes and axes
// decide. Sums over the axis add up block by block, in order; all else is computed as before.
#pragma once

#include "flashlight/loops/program.h"

namespace flashlight::loops {

Program tile(Program program);

}  // namespace flashlight::loops
