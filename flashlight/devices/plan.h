// The plan of a graph on several devices: parts, values that pass, copies.
//
//   const Plan plan = plan_of(graph, options);
//   std::cout << print(plan);
#pragma once

#include <string>

#include "composit/op/backend.h"
#include "flashlight/devices/schedule.h"

namespace flashlight::devices {

struct Plan {
  Partition partition;
  Schedule schedule;
  std::vector<Line> unused;  // of the choices: other lines place all that they name
  std::vector<Line> remade;  // of the choices: each part that reads what they name makes it
  std::string proposal;      // as text of choices with reasons; empty if nothing was proposed
};

// With options of the backend's table. UserError for choices that cannot be.
Plan plan_of(const composit::Graph& graph, const composit::CompileOptions& options);
std::string print(const Plan& plan);

}  // namespace flashlight::devices
