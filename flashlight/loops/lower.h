// From graph to program: the first stage.
//
//   const Program program = lower(graph, {.name = "bert"});
//
// Operations become those they are defined by, repeated pieces functions, and every operation the
// loops of its row, over indices that are as simple as they get. Axes of extent 1 are left out, of
// temporaries also as dimensions.
#pragma once

#include <string>
#include <vector>

#include "composit/ir/graph.h"
#include "flashlight/loops/aten_call.h"
#include "flashlight/loops/program.h"

namespace flashlight::loops {

struct LowerOptions {
  std::string name = "program";
  // What results are called, where their operations' names do not do.
  std::vector<std::string> results = {};
  // Operations that become calls of LibTorch where there is no definition of them.
  AtenSchemas aten = {};
  // Whether modules that repeat, and norms, become functions.
  bool outline = true;
};

// Inputs and results of the program are those of `graph`: outputs, then what mutated inputs become.
// UserError that lists all operations there is no code for ("[compile] no code for 'aten::lu', 2
// times").
Program lower(const composit::Graph& graph, const LowerOptions& options = {});

}  // namespace flashlight::loops
