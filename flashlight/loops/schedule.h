// Which nests share their outer loops, and what that leaves of their temporaries.
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

// Where a value's elements are kept.
struct Storage {
  std::vector<bool> kept;    // per dimension: whether memory has it; others are the round of a loop
  int64_t elements = 1;      // of what is kept
  std::vector<size_t> home;  // path of items to the loop whose body it belongs to; empty: function
};

struct Schedule {
  std::vector<Item> items;
  Table<StepId, AxisIds> order;     // per step: parallel axes from the outside in
  Table<StepId, size_t> shared;     // per step: how many of them are loops around it
  Table<ValueId, Storage> storage;  // per value
};

Schedule schedule_of(const Routine& function);

// Of memory that has all elements of a value.
Storage whole_storage(const Type& type);

// The steps as the loops run them.
StepIds order_of_steps(const Schedule& schedule);

// Whether a reduction over an outer dimension should run it outside of the others, so that memory
// is read in order.
bool wants_reduction_outside(const Statement& statement);

}  // namespace flashlight::loops
