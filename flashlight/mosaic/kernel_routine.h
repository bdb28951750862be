// A kernel of loops as a function of a program.
//
//   const KernelRoutine kernel = kernel_routine(plan.routine, steps);
//   const int64_t trips = shared_trips(kernel.routine, schedule);       // that threads divide
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "flashlight/loops/program.h"
#include "flashlight/loops/schedule.h"
#include "flashlight/mosaic/ids.h"

namespace flashlight::mosaic {

struct KernelRoutine {
  loops::Routine routine;
  ValueIds inputs, results;            // values of the whole that are passed, in order
  std::map<ValueId, ValueId> numbers;  // in the routine, by value of the whole
};

// All that these steps write are temporaries.
KernelRoutine kernel_routine(const loops::Routine& whole, const StepIds& steps);

// Temporaries that are memory of the whole become results, in the schedule as well.
void make_results(KernelRoutine& kernel, loops::Schedule& schedule,
                  const std::function<bool(ValueId value)>& is_memory);

// The name of a value in a kernel that serves several modules: "bias" for
// "encoder.layer.0.output.bias", and `letter` for a value that is no weight.
std::string local_name(const loops::Value& value, const char* letter);

// The trips of the only outermost loop of these steps; 0 where they are anything else, and where
// its rounds have to follow each other.
int64_t shared_trips(const loops::Routine& kernel, const loops::Schedule& schedule);

}  // namespace flashlight::mosaic
