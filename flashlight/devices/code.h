// Code of a graph whose parts run on several devices.
//
//   const composit::Compiled compiled = code_of(partition, schedule, compiled_parts, options);
#pragma once

#include <string>
#include <vector>

#include "composit/op/backend.h"
#include "flashlight/devices/schedule.h"

namespace flashlight::devices {

struct CodeOptions {
  composit::Ports ports;  // of the whole graph
  bool overlap = true;    // devices that need not wait for each other run at the same time
  // The inputs that the last results are new values of, which may be written to their memory; empty
  // where nobody asks.
  Numbers targets = {};
};

// `parts`: the code of each part, that may have to be prepared.
composit::Compiled code_of(Partition partition, Schedule schedule,
                           std::vector<composit::Compiled> parts, CodeOptions options);

}  // namespace flashlight::devices
