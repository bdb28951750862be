// Steps that can run together, a block of a long axis at a time.
//
//   const Region region = region_of(program, function, value, 1);
//
// Grown from one dimension of a temporary: who touches the temporary there, what else those touch
// at the same axis, and so on. A step belongs to it if a block of the axis is all it needs of what
// the others compute. For a sum over the axis, accumulation is in the region; its epilogue and its
// readers wait for all blocks.
#pragma once

#include <map>
#include <vector>

#include "flashlight/loops/program.h"

namespace flashlight::loops {

struct Region {
  int64_t extent = 0;                    // of the axis
  std::map<StepId, AxisId> axes;         // by step, those of the region: the axis there
  std::map<ValueId, size_t> dimensions;  // by value: the dimension that the axis counts
  // Other steps, in order; after the region also sums of the region, for what is done with them.
  StepIds before, after;

  bool has(StepId step) const { return axes.contains(step); }
  // Whether the step sums over the axis.
  bool is_sum(const Routine& function, StepId step) const;
  // What a step of the region does in a block: of a sum there are no stores.
  Statement inside(const Routine& function, StepId step) const;
  // Whether nobody else needs the value: a block of it is all there has to be.
  bool is_local(const Routine& function, ValueId value) const;
};

Region region_of(const Program& program, const Routine& function, ValueId value, size_t dimension);

}  // namespace flashlight::loops
