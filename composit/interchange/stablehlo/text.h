// A graph of StableHLO's operators as a module in MLIR's text.
#pragma once

#include <string>
#include <vector>

#include "composit/interchange/stablehlo/lower.h"

namespace composit::stablehlo {

// An input or a result of the function `main`.
struct Port {
  LazyTensor value;
  std::string key;   // "input", "weight", "output", "written", "guard"
  std::string name;  // for people, and for who gives weights by name
};

// What is written. Inputs whose values are in `globals` are no arguments: the function reads them
// by name, as IREE does from an archive of parameters.
struct Module {
  std::string name;
  std::vector<Port> inputs, globals, results;
};

// UserError for a type that MLIR has no name for.
std::string text_of(const Module& module);

}  // namespace composit::stablehlo
