// A tiling as a picture (SVG): the elements of two dimensions with their places in memory.
//
//   std::ofstream("tiling.svg") << draw(Tiling(parse_tile_schema("MK -> M/4 K/8 | 4m | 8k"),
//                                              {10, 20}), 0, 1);
//
// A number is an element's offset, a line goes through them in the order of memory. Blocks of the
// outermost loops have a colour in turns and thick edges, blocks within them thinner ones; padding
// is grey.
#pragma once

#include <string>

#include "flashlight/mosaic/tile_schema.h"

namespace flashlight::mosaic {

// Rows and columns are dimensions; all others are at index 0. UserError for more than 64 rows or
// columns, with padding.
std::string draw(const Tiling& tiling, size_t rows, size_t columns);

}  // namespace flashlight::mosaic
