// A capture on disk: a folder that says all there is to know of a graph. Reading it runs nothing.
//
//   save({.graph = graph, .weights = {{"fc.weight", weight}}}, "perceptron");
//   SavedCapture again = load("perceptron");
//
// The folder holds
// ```text
//   graph.txt             the format's version, what made it, the schemas of its operations, and
//                         the graph (composit/ir/parse.h)
//   graph_2.txt, …        the same for further cases of a family
//   weights.safetensors   parameters, buffers, and constants too large for the text; what is tied
//                         is stored once
//   example.safetensors   inputs and outputs of the run that was captured
// ```
//
// Arrays stand there in row-major order under their own names; graph.txt has their full types.
// Loaded arrays lie in the mapped files, but for those with strides of their own, which are copied.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "composit/ir/array.h"
#include "composit/ir/graph.h"
#include "composit/ir/size_formula.h"

namespace composit {

// The content of a folder.
struct SavedCapture {
  Graph graph = {};  // the captured graph
  // The value of every parameter and buffer by its name. Tied ones share memory, and do so again
  // after loading.
  std::map<std::string, Array> weights = {};
  std::string producer = {};              // "torch 2.13.0"
  std::vector<std::string> schemas = {};  // full text, of every operation used
  std::map<std::string, std::string> properties =
      {};                  // structure of arguments and results, generator states, notes
  Formulas formulas = {};  // of a family (composit/family/family.h), in place of integers
  std::vector<Array> example_inputs =
      {};  // one per input of the graph, of the run that was captured
  std::vector<Array> example_outputs = {};  // its results
  // Further graphs of the same program, of other structure (composit/family/cases.h). They have no
  // cases themselves; weights of one name are the same array.
  std::vector<SavedCapture> cases = {};
};

// Makes `folder`, or replaces the capture in it: all or nothing, even if the machine fails. A
// folder that holds anything else than a capture is not touched. `capture` may lie in the very
// files that are replaced.
//
// UserError when a file cannot be written (the folder is then as it was), a weight is missing or is
// not what the graph expects, or a node holds an object that only this process knows.
void save(const SavedCapture& capture, const std::filesystem::path& folder);

// UserError with file and position for a folder that is no capture, or an incomplete one.
SavedCapture load(const std::filesystem::path& folder);

}  // namespace composit
