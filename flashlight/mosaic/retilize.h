// Arrays in and out of tiled memory.
//
//   const TileSchema schema = parse_tile_schema("NCHW -> N C/16 H W | 16c");
//   Array memory = tilize(image, schema);                  // one dimension; padding is 0
//   Array same = untilize(memory, Tiling(schema, {1, 40, 56, 56}));
//   std::cout << print(retilize_steps(from, to));           // the loops, and what each copies
//
// Loops that both sides have in common are one, and elements that follow each other in both are
// copied together.
#pragma once

#include <string>
#include <vector>

#include "composit/ir/array.h"
#include "flashlight/mosaic/tile_schema.h"

namespace flashlight::mosaic {

// Loops, outermost first, around the copy of one element; the innermost is one copy of bytes where
// its rounds are neighbours.
struct RetilizeSteps {
  // The elements at which the rounds of a loop begin: a stride from one to the next, or listed.
  struct Places {
    int64_t stride = 0;
    std::vector<int64_t> uneven = {};  // by round; empty if there is a stride
    int64_t at(int64_t round) const {
      return uneven.empty() ? round * stride : uneven[static_cast<size_t>(round)];
    }
  };
  struct Loop {
    std::string name;  // "C/16"; "H W" where two became one
    size_t dimension;  // that it counts
    int64_t extent;    // rounds, where the tensor does not end before
    int64_t step;      // elements of the dimension; 0: it always has all its rounds
    Places from, to;
  };
  std::vector<int64_t> sizes;
  std::vector<Loop> loops;
  bool has_run = false;      // whether rounds of the innermost loop are neighbours on both sides
  bool has_padding = false;  // `to` has elements that are nobody's: all are zeroed first
};

// UserError where the tensors differ in their sizes.
RetilizeSteps retilize_steps(const Tiling& from, const Tiling& to);
std::string print(const RetilizeSteps& steps);

// `memory`: one dimension of from.memory_size() elements. UserError for any other.
composit::Array retilize(const composit::Array& memory, const Tiling& from, const Tiling& to);
composit::Array tilize(const composit::Array& array, const TileSchema& schema);
composit::Array untilize(const composit::Array& memory, const Tiling& tiling);

}  // namespace flashlight::mosaic
