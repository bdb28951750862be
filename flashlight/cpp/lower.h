// From graph to program: the first stage.
//
//   const Program program = lower(graph, "bert");
//
// Operations become those they are defined by, repeated pieces functions, and every operation the
// loops of its row, over indices that are as simple as they get. Axes of extent 1 are left out, of
// temporaries also as dimensions.
#pragma once

#include <string>
#include <vector>

#include "composit/ir/graph.h"
#include "flashlight/cpp/program.h"

namespace flashlight::cpp {

// Inputs and results of the program are those of `graph`: outputs, then what mutated inputs become.
// UserError that lists all operations without loops ("[cpp] no code for 'aten::sort', 2 times").
// `results`: what those are called, where their operations' names do not do.
Program lower(const composit::Graph& graph, const std::string& name,
              const std::vector<std::string>& results = {});

}  // namespace flashlight::cpp
