// The programs of examples/generated that need no LibTorch: functions and their gradients.
#pragma once

#include <string>
#include <vector>

#include "composit/ir/graph.h"

namespace examples {

struct Program {
  std::string name;  // and of the file
  composit::Graph graph;
  std::vector<std::string> results = {};  // what they are called
};

std::vector<Program> programs();

}  // namespace examples
