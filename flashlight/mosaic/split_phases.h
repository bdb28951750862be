// Strided sums have terms only at every s-th element; each becomes one dense sum per phase.
//
//   program = split_phases(std::move(program));
//   // y[i] = sum_k w[k] x[(i - k) / 2] for even i - k becomes y[2i] of even k and y[2i + 1] of odd
//   // k, and no condition is left
//
// Convolutions with strides, transposed, and gradients by the images of those with strides: each
// phase is a convolution without strides, which tiles compute, of as few terms as there are.
#pragma once

#include <vector>

#include "flashlight/loops/program.h"
#include "flashlight/mosaic/ids.h"

namespace flashlight::mosaic {

// Statements that compute the same together; the statement itself if it has no phases.
std::vector<loops::Statement> phases_of(const loops::Statement& statement);

// Sums of products of the program's own function, taken apart into phases. Keeps values and their
// numbers; a step becomes as many as it has phases.
loops::Program split_phases(loops::Program program);

}  // namespace flashlight::mosaic
