// Kernels of loops, and what one thread does alone: functions that the writer of loops writes.
#pragma once

#include <string>
#include <vector>

#include "flashlight/mosaic/kernel_routine.h"
#include "flashlight/mosaic/kernels/forms.h"

namespace flashlight::mosaic {

struct LoopsData : KernelData {
  explicit LoopsData(int64_t trips) : trips(trips) {}
  int64_t trips;  // of the loop that threads divide; 0: one thread does all
};

// `alone`: one thread does all. `ends`: why the next step is not in them.
Kernel loops_kernel(const loops::Routine& routine, StepIds steps, bool alone,
                    const std::string& ends);

// Trips of the loop that threads would divide; 0: the steps share none.
int64_t trips_of(const loops::Routine& routine, const StepIds& steps);

// A kernel of loops of a plan whose values have their homes.
KernelRoutine routine_of(const Plan& plan, const Kernel& kernel);

// Bytes for temporaries of a kernel of loops: in all, or, where threads divide it, of each of them.
int64_t scratch_bytes(const Plan& plan, const Kernel& kernel);

}  // namespace flashlight::mosaic
