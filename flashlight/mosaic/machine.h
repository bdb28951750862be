// The processor that code is written for.
#pragma once

#include <string>

namespace flashlight::mosaic {

// What code for a processor is made of.
struct Machine {
  int vector_bytes = 0;
  bool has_matrix_unit = false;
};
// The processor that compilers call `march`. UserError where its vectors are wider than this one's:
// weights are prepared by code for it, here.
Machine machine_of(const std::string& march);

}  // namespace flashlight::mosaic
