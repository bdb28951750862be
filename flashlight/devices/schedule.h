// The order in which devices work: parts and copies between memories, with what each waits for.
//
//   const Schedule schedule = schedule_of(partition);
//   schedule.copies.size();          // one per value and memory that needs it
//
// A device does its parts one after the other, a memory what is copied into it. What does not wait
// for each other may run at the same time.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "flashlight/devices/partition.h"

namespace flashlight::devices {

struct Copy {
  size_t value = 0;  // among Partition::values
  std::string from, to;
};

// A part or a copy.
struct Task {
  bool is_copy = false;
  size_t number = 0;   // among Partition::parts, or Schedule::copies
  size_t queue = 0;    // tasks of one queue follow each other
  Numbers after = {};  // tasks before this one that it waits for, those of its queue left out
};

struct Schedule {
  std::vector<Copy> copies;  // of each call
  std::vector<Copy> kept;    // of weights, once
  std::vector<Task> tasks;   // in an order in which one thread can do them
  size_t queues = 0;
  bool overlaps = false;  // true if two tasks of different queues do not wait for each other

  // True if the copy can be made while a device computes.
  std::vector<bool> copy_overlaps;
};

// The memory in which each value is made.
const std::string& memory_of(const Partition& partition, size_t value);
// `keeps_weights`: those are copied once, before calls.
Schedule schedule_of(const Partition& partition, bool keeps_weights);

}  // namespace flashlight::devices
