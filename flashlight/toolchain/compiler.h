// The system's C++ compiler.
//
//   const Compiler compiler = find_compiler();
//   std::cout << compiler.found_by << ": " << compiler.version;
//
// FLASHLIGHT_CXX names it, else $CXX, else it is the one that built Flashlight if that still
// exists, else c++, g++ or clang++ on PATH. Both variables may hold arguments: "ccache g++ -m64".
#pragma once

#include <string>
#include <vector>

namespace flashlight::toolchain {

struct Compiler {
  std::vector<std::string> words;  // the program with its full path, and arguments
  std::string version;             // its answer to --version
  std::string found_by;            // "FLASHLIGHT_CXX", "CXX", "the build of Flashlight", "PATH"
};

// Asks each compiler for its version once per process. Throws UserError, with how to get one, if
// there is none, or if the one that a variable names cannot be run.
Compiler find_compiler();

}  // namespace flashlight::toolchain
