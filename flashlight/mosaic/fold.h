// Factors and offsets of the columns of a product that are known beforehand: a batch norm behind a
// convolution.
//
//   if (const auto folded = fold(product, is_known)) ...     // relu((sum - m) * s * w + b)
//                                                            //   = relu(sum' + offset)
//
// Reassociates: columns of the packed side are multiplied instead of the sums.
#pragma once

#include <functional>
#include <optional>

#include "flashlight/mosaic/ids.h"
#include "flashlight/mosaic/product.h"

namespace flashlight::mosaic {

struct Folded {
  composit::Expr factor, offset;  // over the columns' axis
  composit::Expr scaled;          // the part of the store's value that is sum * factor + offset
};

// Nothing where no factor stands behind the sum. `is_known`: values with one dimension that are
// known before the program runs.
std::optional<Folded> fold(const Product& product,
                           const std::function<bool(ValueId value)>& is_known);

}  // namespace flashlight::mosaic
