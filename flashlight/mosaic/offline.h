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

}  // namespace flashlight::mosaic
