// The steps of a region as a function of one block of its axis, and the loop that calls it.
//
//   Blocks blocks = take_blocks(function, region, 500);
//
// The function's arrays are those of the whole from the block's first element on, with the
// strides that they have; sums are added to what is there.
#pragma once

#include "flashlight/loops/region.h"

namespace flashlight::loops {

struct Blocks {
  // Of a block, and of what is left behind the last one, if anything is. Without names.
  std::vector<Routine> bodies;
  Control loop;                  // without the numbers of its functions
  std::map<StepId, Nest> after;  // by step: what is done with a sum when it is complete
};

// `function` gets values for sums on the way; its steps stay as they are.
Blocks take_blocks(Routine& function, const Region& region, int64_t size);

}  // namespace flashlight::loops
