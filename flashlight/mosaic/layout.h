// The order of a value's elements in memory, and programs whose indices are those of memory.
//
//   Layout layout = in_order(type, {0, 2, 3, 1});  // [1, 64, 56, 56], channels innermost
//   layout.before = layout.after = {0, 0, 1, 1};   // zeros around each row and column
//   routine = laid_out(std::move(routine), {{value, layout}});
//
// Laying out is a change of the program: the value gets the sizes it has in memory, a dimension per
// loop of its tiling, and whoever touches it other indices. Axes of its blocks become two, so that
// indices are affine again. What comes after knows nothing of layouts.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "flashlight/loops/program.h"
#include "flashlight/mosaic/ids.h"
#include "flashlight/mosaic/tile_schema.h"

namespace flashlight::mosaic {

struct Layout {
  Tiling tiling;                       // order and blocks of the value's elements
  std::vector<int64_t> before, after;  // zeros around them, per dimension; none of one in blocks
  int64_t fill = 0;                    // what stands there instead of zeros: a zero point of bytes
  int64_t apart = 0;                   // elements behind the innermost loop, nobody's
  bool operator==(const Layout&) const = default;
};

Layout row_major(const composit::Type& type);
// Dimensions from the outside in.
Layout in_order(const composit::Type& type, const std::vector<size_t>& order);
// UserError where the schema has another number of dimensions.
Layout in_schema(const composit::Type& type, const TileSchema& schema);
// The layout of a value from a schema of all its dimensions in the model. Dimensions that memory
// does not have are left out. UserError as above.
Layout in_model_schema(const loops::Value& value, const TileSchema& schema);
// The loops of a layout, over the dimensions of an access that are counted by the same axes as
// those of `from`; others stay outside.
TileSchema handed_on(const Layout& layout, const std::vector<composit::Expr>& from,
                     const std::vector<composit::Expr>& to);
// True if the layout has zeros around the value, which a kernel has to write. Elements that only
// fill up blocks are never read.
bool has_border(const Layout& layout);
// Makes the border at least as wide as that of `wanted`. False, and nothing is done, where another
// number stands there.
bool add_border_of(const Layout& wanted, Layout& layout);
// "zeros", or "7s": what stands around the value.
std::string fill_name(const Layout& layout);
// The sizes in memory.
composit::Type physical_type(const composit::Type& type, const Layout& layout);
// "NCHW -> N H W C, zeros before 0 0 1 1, after 0 0 1 1, 16 apart"; `dimensions`: "NCHW".
std::string print(const Layout& layout, const std::string& dimensions);

// Letters for the dimensions of a value: "NCHW" and "NCDHW" for those of images in the model,
// "ABC" for others; those of size 1 that its type leaves out are left out.
std::string letters_of(const loops::Value& value);

// Each value in its layout, in all nests of the routine.
loops::Routine laid_out(loops::Routine routine, const std::map<ValueId, Layout>& layouts);

// The number of the element that `at` says, in row-major order.
composit::Expr flat_index(const std::vector<composit::Expr>& at, const composit::Type& type);

}  // namespace flashlight::mosaic
