// Kernels of loops, and what one thread does alone: functions that the writer of loops writes.
#pragma once

#include <string>

#include "flashlight/loops/scheduled.h"
#include "flashlight/mosaic/kernel_routine.h"
#include "flashlight/mosaic/kernels/forms.h"

namespace flashlight::mosaic {

struct LoopsData : KernelData {
  KernelRoutine of;                   // the kernel as a function of its own
  loops::ScheduledRoutine scheduled;  // until values have their homes, only the schedule
};

// `alone`: one thread does all. `ends`: why the next step is not in them.
Kernel loops_kernel(const loops::Routine& routine, StepIds steps, bool alone,
                    const std::string& ends = "");

// A kernel of a plan whose values have got their homes: what is memory are its results.
void set_homes(const Plan& plan, Kernel& kernel);

// Leaves out what is needless where results are written over operands: in_place.h.
void drop_needless(const Plan& plan, Kernel& kernel);

}  // namespace flashlight::mosaic
