// Axes that indices take apart, as several axes.
//
//   program = split_axes(std::move(program));
//   // x[i / 32][i % 32] for i < 1024 becomes x[i][j] for i < 32, j < 32
//
// An access through a reshape becomes affine, as products and layouts require.
#pragma once

#include "flashlight/loops/program.h"
#include "flashlight/mosaic/ids.h"

namespace flashlight::mosaic {

loops::Statement with_split_axes(loops::Statement statement);
// The same for indices into blocks, of which the last one may be only partly filled: their axes are
// split as well, and the domain says where they end.
loops::Statement with_block_axes(loops::Statement statement);
// In all nests of the program's own function. Keeps steps and values.
loops::Program split_axes(loops::Program program);

}  // namespace flashlight::mosaic
