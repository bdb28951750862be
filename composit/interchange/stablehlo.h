// A capture as a StableHLO module, for XLA, IREE and what else compiles it.
//
//   save_stablehlo(load("resnet50"), "resnet50.mlir");   // and resnet50.mlir.safetensors: weights
//
// The function `main` takes the inputs of the program, then its weights: each argument has the
// attribute `flashlight.input` or `flashlight.weight`, its name. Results are `flashlight.output`s,
// then what the program writes, `flashlight.written`, then a Boolean per guard, `flashlight.guard`,
// true where the module computes what the program does. A guard says as its name what it asks.
//
// Text has no promise of compatibility: versions of the two consumers are in the tests. jaxlib and
// IREE's tools make portable artifacts of it.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "composit/io/saved_capture.h"
#include "composit/op/operation.h"

namespace composit {

// How a module is written.
struct StableHloOptions {
  // Weights are no arguments: the module reads them by name from an archive "model", as IREE does
  // (`--parameters=model=resnet50.mlir.safetensors`).
  bool weights_as_parameters = false;
  // Leaves guards out: the module then gives numbers also where the program would go another way,
  // and where an index is out of range.
  bool drop_guards = false;
};

// A module and what belongs to it, by the order of the arguments of `main`.
struct StableHloModule {
  std::string text;    // in MLIR's syntax
  size_t inputs = 0;   // the first arguments: those of the graph that are no weights
  size_t outputs = 0;  // the first results; then what is written, then guards
  std::vector<std::string> written, guards;            // their names
  std::vector<std::pair<std::string, Array>> weights;  // further arguments, or parameters
};

// UserError that lists all operators that neither StableHLO nor composit defines, with module and
// line; for draws, numbers that follow the calls, and a family.
StableHloModule stablehlo_module(const SavedCapture& capture, const std::string& name,
                                 const StableHloOptions& options = {});

// Of a graph alone: all of its inputs are arguments, in order, whatever they are.
StableHloModule stablehlo_module(const Graph& graph, const std::string& name,
                                 const StableHloOptions& options = {});

// A capture as files: `file`, and beside it the weights in `file`.safetensors, each replaced when
// all is written. UserError as above, and where a file cannot be written.
void save_stablehlo(const SavedCapture& capture, const std::filesystem::path& file,
                    const StableHloOptions& options = {});

// True if StableHLO has an operation, or composit a definition, for at least some types.
bool has_stablehlo(const Operation& operation);

}  // namespace composit
