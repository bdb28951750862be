// A function as it will run: its schedule, its calls in loops, and the memory of its temporaries.
//
//   Table<FunctionId, ScheduledRoutine> scheduled;         // callees first
//   for (const FunctionId i : program.functions.ids())
//     scheduled.push_back(scheduled_routine(program.functions[i], program.functions, scheduled));
//
// Data between a program and its text: a writer reads it and decides nothing about memory.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "flashlight/loops/program.h"
#include "flashlight/loops/runs.h"
#include "flashlight/loops/schedule.h"

namespace flashlight::loops {

// A caller passes these to a function beside arguments, weights and results.
struct Needs {
  bool has_arena = false, has_generator = false;
  int64_t arena_bytes = 0;  // of the function, plus the most that one of its callees needs
  std::vector<std::string> sizes = {};  // names, where a text serves several sizes
};

// All calls of a run but the last write their results in turn to the halves of an array of two.
struct Turns {
  ValueId array;     // the value whose memory is the array
  StepId last_step;  // the last step that needs it
};

struct ScheduledRoutine {
  Schedule schedule;
  std::vector<Run> runs;
  std::map<ValueId, Turns> turns;
  // By value: true for a temporary on the stack; the offset in bytes from the start of the arena,
  // for a temporary in the arena.
  std::vector<bool> is_local;
  Table<ValueId, int64_t> offsets;
  int64_t own_bytes = 0;  // of the arena, without callees
  Needs needs;
};

// `functions` and `scheduled` have all functions that this one calls.
ScheduledRoutine scheduled_routine(const Routine& function,
                                   const Table<FunctionId, Routine>& functions,
                                   const Table<FunctionId, ScheduledRoutine>& scheduled);
// The same with a given schedule.
ScheduledRoutine scheduled_routine(const Routine& function,
                                   const Table<FunctionId, Routine>& functions,
                                   const Table<FunctionId, ScheduledRoutine>& scheduled,
                                   Schedule schedule);

}  // namespace flashlight::loops
