// Turns the steps of a region into a function of one block of its axis, and a loop that calls it.
//
//   Blocks blocks = extract_blocks(function, region, 500);
//
// The function gets pointers into the caller's arrays, at the block's first element and with the
// caller's strides. Its sums add to the elements that are there.
#pragma once

#include "flashlight/loops/region.h"

namespace flashlight::loops {

struct Blocks {
  // The function for a whole block, and one for a shorter last block, if any. Without names.
  std::vector<Routine> bodies;
  Control loop;                  // without the numbers of its functions
  std::map<StepId, Nest> after;  // by step: the epilogue of a sum
};

// Adds values for incomplete sums to `function`; does not change its steps.
Blocks extract_blocks(Routine& function, const Region& region, int64_t size);

}  // namespace flashlight::loops
