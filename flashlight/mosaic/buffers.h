// Memory of a plan's values: where each lives, from when to when, and at which offset.
//
//   plan_buffers(plan);                    // homes, in_place, offsets, sizes
//   for (const Buffer& one : buffers_of(plan)) ...
#pragma once

#include <vector>

#include "flashlight/loops/arena.h"
#include "flashlight/mosaic/ids.h"
#include "flashlight/mosaic/plan.h"

namespace flashlight::mosaic {

// A piece of the arena, and the values that have it one after the other, each written over the one
// before it.
struct Buffer {
  ValueIds values;
  std::vector<size_t> starts;  // the kernel that each of them is first written by
  loops::Lifetime life;        // of all of them, by numbers of plan.run
};

// Values that a kernel reads or writes in memory, packed ones and scratch included; some twice.
ValueIds touched(const Plan& plan, const Kernel& kernel);

// Values that a kernel writes in memory, each once.
ValueIds written(const Plan& plan, const Kernel& kernel);

// By offset, of those at the same offset by time.
std::vector<Buffer> buffers_of(const Plan& plan);

// For a plan that has its kernels. UserError where chosen offsets cannot be.
void plan_buffers(Plan& plan);

// UserError that names two values which live at the same time at the same place, or one beyond the
// end of the arena: for plans that were changed by hand.
void check_buffers(const Plan& plan);

}  // namespace flashlight::mosaic
