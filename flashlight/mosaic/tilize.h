// Which layouts a program's values get.
//
//   Tilized tilized = tilize(std::move(program), is_frozen);
//
// A product wants the index that its terms run along innermost in what it reads by rows, and its
// columns innermost in what it writes; what works element by element hands wishes on. The most
// multiplications win, unless another order lays out fewer bytes anew (layout_cost.h). Padding
// becomes zeros around a value, so that a convolution knows no borders; rows that would meet in the
// same sets of a cache are set apart.
#pragma once

#include <functional>
#include <map>

#include "flashlight/loops/program.h"
#include "flashlight/mosaic/choices.h"
#include "flashlight/mosaic/ids.h"
#include "flashlight/mosaic/layout.h"
#include "flashlight/mosaic/layout_cost.h"

namespace flashlight::mosaic {

struct Tilized {
  loops::Program program;
  std::map<ValueId, Layout> layouts = {};  // of values that are not row-major and tight
  // Values that products and other loops read or write across their order in memory, one entry per
  // nest: with these layouts, and if all values were row-major.
  ValueIds across = {}, row_major_across = {};
};

// The program's own function in terms of memory (layout.h). Values keep their numbers. Nests that
// copy what the caller gave into another layout are inserted, and those that copy values in blocks
// for products that cannot read or write them. `choices`: by value, a layout and distance of rows
// that it gets in any case; UserError where it cannot. `may_round`: values of float32 may be stored
// as bfloat16 later (rounded_values.h).
Tilized tilize(loops::Program program, const std::function<bool(ValueId value)>& is_frozen,
               const std::map<ValueId, Choice>& choices = {}, bool may_round = false);

}  // namespace flashlight::mosaic
