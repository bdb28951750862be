// The common part of the programs that write examples/generated.
//
//   int main(int argc, char** argv) { return examples::generate(argc, argv, {}, [] { … }); }
#pragma once

#include <functional>
#include <vector>

#include "examples/programs/programs.h"
#include "flashlight/backends/cuda.h"

namespace examples {

// Arguments [--check] FOLDER: writes the C++ and the CUDA C++ of each program to the folder, or
// compares with what is there. What a main function returns: 0; 1 where something differs, which is
// printed; 2 for other arguments.
int generate(int argc, char** argv, const flashlight::Cuda& cuda,
             const std::function<std::vector<Program>()>& programs);

}  // namespace examples
