// The system's C++ compiler.
//
//   const Compiler compiler = find_compiler();
//   std::cout << compiler.found_by << ": " << compiler.version;
//
// FLASHLIGHT_CXX says which one, else $CXX, else the one that built Flashlight where it is still
// there, else c++, g++ or clang++ on PATH. Both variables may hold arguments: "ccache g++ -m64".
#pragma once

#include <string>
#include <vector>

namespace flashlight::toolchain {

struct Compiler {
  std::vector<std::string> words;  // the program with its full path, and arguments
  std::string version;             // all that it answers to --version
  std::string found_by;            // "FLASHLIGHT_CXX", "CXX", "the build of Flashlight", "PATH"
};

// Asks each compiler for its version once per process. Throws UserError, with how to get one, where
// there is none, or where the one that was asked for cannot be run.
Compiler find_compiler();

}  // namespace flashlight::toolchain
