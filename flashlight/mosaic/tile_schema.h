// The order of a tensor's elements in memory, as nested loops over its dimensions.
//
//   const TileSchema schema = parse_tile_schema("NCHW -> N C/16 H W | 16c");
//   const Tiling tiling(schema, {1, 40, 56, 56});
//   tiling.memory_size();            // 48 * 56 * 56: zeros fill the last block of channels
//   tiling.offset({0, 17, 0, 2});
//
// Before the arrow stand the dimensions, a capital letter each; behind it the loops, outermost
// first: "C/16" steps over C in blocks of 16, "C" over single elements, "16c" counts 16 steps
// within the block that stands further out. So "MK -> M/64 K/32 | 8m 4k | 8m 8k" has blocks of
// 64x32, in them 8x4 tiles of 8x8. A bar, which changes nothing, begins the next level: block,
// tile, vector. No extent has to divide anything.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace flashlight::mosaic {

// A letter for each.
constexpr size_t kMostDimensions = 26;

// A loop over a dimension. The outermost one of each takes as many steps as the tensor needs.
struct TileLoop {
  size_t dimension = 0;  // of the tensor
  int64_t extent = 0;    // 0: the outermost one
  bool operator==(const TileLoop&) const = default;
};

// The nested loops, as parsed.
struct TileSchema {
  std::string dimensions;                     // "NCHW"
  std::vector<std::vector<TileLoop>> levels;  // outermost first
  bool operator==(const TileSchema&) const = default;
};

// UserError that names what of the text is wrong.
TileSchema parse_tile_schema(const std::string& text);
// The text that is parsed to this schema.
std::string print(const TileSchema& schema);
// Dimensions in this order, outermost first, without blocks; called A, B, C, ...
TileSchema schema_of_order(const std::vector<size_t>& order);

// A schema for a tensor of these sizes. UserError where their number is another one, or the schema
// is none that could be parsed.
class Tiling {
 public:
  // `sizes`: of the tensor, in elements, one per dimension.
  Tiling(TileSchema schema, std::vector<int64_t> sizes);

  // A loop of memory: index / step % extent counts, and a count is worth `stride` elements.
  struct Loop {
    size_t dimension, level;       // of the tensor; of the schema
    int64_t extent, step, stride;  // in counts, in indices, in elements
    bool operator==(const Loop&) const = default;
  };
  // The schema that it was made of, and the sizes of the loops of memory, outermost first.
  const TileSchema& schema() const { return schema_; }
  const std::vector<int64_t>& sizes() const { return sizes_; }
  const std::vector<Loop>& loops() const { return loops_; }

  // Elements, with padding.
  int64_t memory_size() const;
  int64_t element_count() const;  // without padding
  // The part of an element's offset that comes from the index of one dimension.
  int64_t offset(size_t dimension, int64_t index) const;
  // The offset of an element, in elements.
  int64_t offset(const std::vector<int64_t>& index) const;
  // True if a dimension is more than one loop.
  bool is_blocked(size_t dimension) const;
  bool is_blocked() const;
  bool operator==(const Tiling&) const = default;

 private:
  TileSchema schema_;
  std::vector<int64_t> sizes_;
  std::vector<Loop> loops_;
};

}  // namespace flashlight::mosaic
