// Several programs for CUDA as one text, which nvcc reads LibTorch's headers for once.
//
//   stream << joined({first, second});
#pragma once

#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "flashlight/cuda/emit.h"

namespace flashlight::cuda::test {

// Each program is in a namespace of its own, behind the includes of all; programs have distinct
// names.
inline std::string joined(const std::vector<CudaSource>& programs) {
  std::set<std::string> includes;
  std::string bodies;
  for (const CudaSource& program : programs) {
    bodies += "namespace " + program.name + "_file {\n";
    std::istringstream lines(program.text);
    for (std::string line; std::getline(lines, line);) {
      if (line.rfind("#include", 0) != 0)
        bodies += line + "\n";
      else if (line != "#include \"" + program.name + ".h\"")
        includes.insert(line);
    }
    bodies += "}  // namespace " + program.name + "_file\n";
  }
  std::string text = "#include <vector>\n";
  for (const std::string& line : includes) text += line + "\n";
  return text + bodies;
}

}  // namespace flashlight::cuda::test
