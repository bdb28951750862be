// Numbers that a size of a program may have.
//
//   const SizeRange tokens{"tokens", 64, 2048, 64};
#pragma once

#include <cstdint>
#include <string>

namespace composit {

// From `least` to `most`, in steps.
struct SizeRange {
  std::string name;   // of the size
  int64_t least = 0;  // that a call may give
  int64_t most = 0;   // that a call may give
  int64_t step = 1;   // between two numbers, from the least one on
};

}  // namespace composit
