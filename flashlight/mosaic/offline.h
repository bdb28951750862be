// A graph as a folder of C++ to build and ship (flashlight/package/program_folder.h), by this
// backend.
//
//   write_program(composit::load("bert_base"), "bert_fast", {.plan = {.name = "bert"}, .threads =
//   2});
//
// Weights are prepared here, and the program maps the result: its file of weights holds packed
// panels instead of the parameters that only preparation reads. Panels are as wide as the vectors
// of the processor, so the program refuses to be compiled for others.
#pragma once

#include <filesystem>
#include <string>

#include "composit/io/saved_capture.h"
#include "composit/op/backend.h"
#include "flashlight/mosaic/plan.h"

namespace flashlight::mosaic {

struct ProgramOptions {
  PlanOptions plan = {};  // its name is that of the function, its results those of the outputs
  int threads = 0;        // of a call; 0: one per core of where it runs
  // The processor that the program is for, as compilers name it; this one has to have vectors as
  // wide. UserError otherwise.
  std::string march = "native";
};

// UserError as package::write_program, and for operations there is no code for.
void write_program(const composit::SavedCapture& capture, const std::filesystem::path& folder,
                   const ProgramOptions& options);

// The same for all sizes in ranges: `capture` is the program at an example's sizes. Each
// combination of sizes is planned here, and its plan is data in the file of weights: the code of
// steps, whose sizes are arguments, is the same for many (sized_plans.h). Sizes that the program
// refuses are refused by calls. UserError also for more than 20,000 combinations, and for results
// whose sizes follow from the program's in no simple way (flashlight/package/size_text.h).
void write_program(const composit::SavedCapture& capture, const composit::SizedGraphs& graphs,
                   const std::filesystem::path& folder, const ProgramOptions& options);

}  // namespace flashlight::mosaic
