// The common part of the programs that write examples/generated.
//
//   int main(int argc, char** argv) { return examples::generate(argc, argv, [] { … }); }
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "composit/ir/graph.h"

namespace examples {

struct Program {
  std::string name;  // and of the file
  composit::Graph graph;
  std::vector<std::string> results = {};  // what they are called
};

// Arguments [--check] FOLDER: writes the C++ of each program to the folder, or compares with what
// is there. What a main function returns: 0; 1 where something differs, which is printed; 2 for
// other arguments.
int generate(int argc, char** argv, const std::function<std::vector<Program>()>& programs);

}  // namespace examples
