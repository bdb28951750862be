// A capture as a file of torch.export, which Python opens without this project.
//
//   save_pt2(load("resnet50"), "resnet50.pt2");
//
// and in Python
//
// ```text
//   program = torch.export.load("resnet50.pt2")
//   program.module()(x)                                        # the bits of the program
//   torch._inductor.aoti_compile_and_package(program)
// ```
//
// What the file says of the program: its operators under their ATen names, parameters and buffers
// under the names that the module gave them, tied and strided ones as they are, modules and lines
// of nodes, how arguments and results are structured, what is written. What the capture takes for
// granted is asserted when the file runs: numbers that the program read, and sizes that follow from
// values.
#pragma once

#include <filesystem>

#include "composit/io/saved_capture.h"

namespace composit {

// How a program is written.
struct Pt2Options {
  // Parameters that the program writes (an optimizer's step) become buffers: torch.export knows
  // parameters that are written, AOTInductor refuses them.
  bool parameters_as_buffers = false;
};

// Replaces `file` when all is written. Needs little memory beside the capture. UserError where the
// file cannot be written, or the capture cannot: all operators without a form in ATen at once, with
// module and line, a family, numbers that follow the calls.
void save_pt2(const SavedCapture& capture, const std::filesystem::path& file,
              const Pt2Options& options = {});

}  // namespace composit
