// Attention among the steps of a routine: a product that makes scores, a softmax along their last
// dimension, and a product of that with values.
//
//   const std::vector<Attention> found = find_attention(routine, is_frozen);
//
// Recognised by what is computed, not by names: scores may be scaled, masked, and have anything
// added that is known for a query and a key. Scores that somebody else reads stay what they are.
#pragma once

#include <functional>
#include <vector>

#include "flashlight/mosaic/ids.h"
#include "flashlight/mosaic/product.h"

namespace flashlight::mosaic {

struct Attention {
  StepIds steps;  // of the routine, ascending; the last one stores the result
  Product scores, results;
  double scale = 1;
  composit::Expr bias = {};  // over the axes of `scores`; absent: none
  bool gives_zeros = false;  // a query that sees no key; otherwise NaN
  // Values that it reads and the one that it writes.
  ValueIds reads = {};
  ValueId result = {};
};

std::vector<Attention> find_attention(const loops::Routine& routine,
                                      const std::function<bool(ValueId value)>& is_frozen);

// True if pairs of a row's terms begin at even places on both sides, so that they are words.
bool has_pairs(const Product& product);

}  // namespace flashlight::mosaic
