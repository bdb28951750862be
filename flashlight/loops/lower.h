// Lowers a graph to a program: the first stage.
//
//   const Program program = lower(graph, {.name = "bert"});
//
// Decomposes operations into those they are defined by, makes repeated pieces functions, and turns
// every operation into the loops of its row, with simplified indices. Drops axes of extent 1, and
// dimensions of size 1 of temporaries.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "composit/ir/graph.h"
#include "flashlight/loops/aten_call.h"
#include "flashlight/loops/program.h"

namespace flashlight::loops {

struct LowerOptions {
  std::string name = "program";
  // Names for results, which replace those of their operations unless empty.
  std::vector<std::string> results = {};
  // Operations that become calls of LibTorch if they have no definition.
  AtenSchemas aten = {};
  // The schema by which LibTorch is called for an operation that stays closed, whatever defines it;
  // nullptr for others.
  std::function<const composit::Schema*(const composit::Node&)> called = {};
  // Makes functions of repeated modules, and of norms.
  bool outline = true;
  // Lowers graphs of one program at several sizes alike: slices of everything stay slices, as of a
  // part at other sizes.
  bool keep_slices = false;
};

// The inputs of the program are those of `graph`; its results are the graph's outputs, then the new
// values of mutated inputs. UserError that lists all operations without code ("[compile] no code
// for 'aten::lu', 2 times").
Program lower(const composit::Graph& graph, const LowerOptions& options = {});

}  // namespace flashlight::loops
