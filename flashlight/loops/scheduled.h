// A function as it will run: its schedule, its calls in loops, and where its temporaries lie.
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
#include <vector>

#include "flashlight/loops/program.h"
#include "flashlight/loops/runs.h"
#include "flashlight/loops/schedule.h"

namespace flashlight::loops {

// What a caller gives to a function beside arguments, weights and results.
struct Needs {
  bool has_arena = false, has_generator = false;
  int64_t arena_bytes = 0;  // of the function and the deepest of its callees
};

// Results of the calls of a run but the last one take turns in an array of two.
struct Turns {
  ValueId array;     // the value that has the array's place
  StepId last_step;  // how long it is needed
};

struct ScheduledRoutine {
  Schedule schedule;
  std::vector<Run> runs;
  std::map<ValueId, Turns> turns;
  // By value: whether it is a temporary on the stack; bytes from the arena's begin, for a temporary
  // in the arena.
  std::vector<bool> is_local;
  Table<ValueId, int64_t> offsets;
  int64_t own_bytes = 0;  // of the arena, without callees
  Needs needs;
};

// `functions` and `scheduled` have all functions that this one calls.
ScheduledRoutine scheduled_routine(const Routine& function,
                                   const Table<FunctionId, Routine>& functions,
                                   const Table<FunctionId, ScheduledRoutine>& scheduled);
// The same with a schedule that is known.
ScheduledRoutine scheduled_routine(const Routine& function,
                                   const Table<FunctionId, Routine>& functions,
                                   const Table<FunctionId, ScheduledRoutine>& scheduled,
                                   Schedule schedule);

}  // namespace flashlight::loops
