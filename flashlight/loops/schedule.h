// Decides which nests share outer loops, and how much of each temporary is then in memory.
//
//   const Schedule schedule = schedule_of(function);
//
// A row of a softmax is one round of a common loop: its maximum and sum are numbers, its
// exponentials an array of one row.
#pragma once

#include <cstdint>
#include <vector>

#include "flashlight/loops/program.h"

namespace flashlight::loops {

// A step, or a loop around items.
struct Item {
  StepId step = {};
  int64_t extent = 0;  // of the loop; 0: a step
  std::vector<Item> body = {};
  bool is_loop() const { return extent > 0; }
};

// The memory of a value.
struct Storage {
  std::vector<bool> kept;    // per dimension: true if it is in memory; else a loop indexes it
  int64_t elements = 1;      // of the dimensions that are kept
  std::vector<size_t> home;  // path of items to the loop whose body declares it; empty: function
};

struct Schedule {
  std::vector<Item> items;
  Table<StepId, AxisIds> order;     // per step: parallel axes from the outside in
  Table<StepId, size_t> shared;     // per step: how many of them are shared loops around it
  Table<ValueId, Storage> storage;  // per value
};

Schedule schedule_of(const Routine& function);

// The memory of a value that keeps all dimensions.
Storage whole_storage(const Type& type);

// The steps in the order in which the loops run them.
StepIds order_of_steps(const Schedule& schedule);

// True if a reduction should run its reduced axes outside of the innermost stored axis, so that
// memory is read in order.
bool wants_reduction_outside(const Statement& statement);

}  // namespace flashlight::loops
