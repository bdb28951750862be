// Finds steps that can run together on one block of a long axis at a time.
//
//   const Region region = region_of(program, function, value, 1);
//
// A region grows from one dimension of a temporary: the steps that index it there join, then those
// that index other temporaries of these steps by the same axis, and so on. A step belongs to it if
// it needs only a block of what the others compute. For a sum over the axis, accumulation is in the
// region; its epilogue and its readers wait for all blocks.
#pragma once

#include <map>
#include <vector>

#include "flashlight/loops/program.h"

namespace flashlight::loops {

struct Region {
  int64_t extent = 0;                    // of the axis
  std::map<StepId, AxisId> axes;         // by step of the region: its axis
  std::map<ValueId, size_t> dimensions;  // by value: the dimension that the axis indexes
  // All other steps, in order; `after` also has the region's sums, for their epilogues.
  StepIds before, after;

  bool has(StepId step) const { return axes.contains(step); }
  // True if the step sums over the axis.
  bool is_sum(const Routine& function, StepId step) const;
  // The statement that a step of the region runs for a block: a sum has no stores there.
  Statement inside(const Routine& function, StepId step) const;
  // True if no other step needs the value, so that memory for one block of it is enough.
  bool is_local(const Routine& function, ValueId value) const;
};

Region region_of(const Program& program, const Routine& function, ValueId value, size_t dimension);

}  // namespace flashlight::loops
