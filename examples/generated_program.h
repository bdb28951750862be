// The common part of the programs that write examples/generated.
//
//   int main(int argc, char** argv) { return examples::generate(argc, argv, {}, [] { … }); }
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "composit/op/backend.h"
#include "examples/programs/programs.h"
#include "flashlight/backends/cuda.h"

namespace examples {

// A program at several sizes, by size: one text of C++ for all of them.
struct SizedProgram {
  std::string name;
  std::vector<composit::SizedGraph> shown;
};

// Arguments [--check] FOLDER: writes the C++ and the CUDA C++ of each program to the folder, or
// compares with what is there. What a main function returns: 0; 1 where something differs, which is
// printed; 2 for other arguments.
int generate(int argc, char** argv, const flashlight::Cuda& cuda,
             const std::function<std::vector<Program>()>& programs,
             const std::function<std::vector<SizedProgram>()>& sized = {});

}  // namespace examples
