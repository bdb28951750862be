// A capture as a file of torch.export, which Python opens without this project; and such a file as
// a capture.
//
//   save_pt2(load("resnet50"), "resnet50.pt2");
//   SavedCapture again = load_pt2("resnet50.pt2");
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
// module and line; numbers that follow the calls of a capture; of a family with cases those whose
// arguments or results have another structure, dtype or number of axes, that a value chooses
// between and that were shown at no sizes in common, or that take numbers from callers.
void save_pt2(const SavedCapture& capture, const std::filesystem::path& file,
              const Pt2Options& options = {});

// The program of a file that torch.export.save or `save_pt2` wrote, as a capture: its graph,
// weights in the mapped file, example arguments, modules and lines. Nothing is run, and no code of
// the file either. Files of `program.run_decompositions({})` are read as they are; of the training
// dialect, which torch.export.save writes otherwise, as far as writes in place can be told from the
// file. Dynamic shapes make a family (composit/family/saved_family.h).
//
// UserError for what is no such file, is damaged, or says what composit has no operations for: all
// of these at once, with module and line.
SavedCapture load_pt2(const std::filesystem::path& file);
// True for an archive of torch.export's form.
bool is_pt2(const std::filesystem::path& file);

}  // namespace composit
