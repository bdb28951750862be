// Runs tasks in queues, each on a thread of its own.
//
//   run_in_queues(schedule, [&](size_t task) { ... });
#pragma once

#include <functional>

#include "flashlight/devices/schedule.h"

namespace flashlight::devices {

// Calls `work` once for each task, when those it waits for are done. After an error no
// later task begins; the error of the first task in order is thrown. With `threads` false, and
// where nothing overlaps, all run on this thread in order.
void run_in_queues(const Schedule& schedule, bool threads,
                   const std::function<void(size_t task)>& work);

}  // namespace flashlight::devices
